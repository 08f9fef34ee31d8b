"""Which pages are worth a rendering: by what they look like, and by what renderings of their kind have brought.

Asked by the frontier when a page is settled, and told when a rendering has ended. A kind is a pattern of URLs, or
a host. The first shells of a kind are rendered; what they brought to the crawl decides on the rest, and now and
then one is weighed again. Pure.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

NEVER, AUTO, ALWAYS = "never", "auto", "always"
STATIC, SCRIPTED, SHELL = "static", "scripted", "shell"
"""What a page looks like (`Fetched.looks`): without scripts of its own, with some, or empty without them. A shell
is followed by its signs in words."""

# Of a kind so many shells are rendered before anything is concluded; as many of them must have gained.
_FIRST, _ENOUGH = 3, 2
# Under a verdict against it one shell in so many is rendered all the same.
_AGAIN_PLAIN = 200
# So many renderings in a row without gain undo the verdict to render.
_IN_VAIN = 5
# Of a host whose queue has run dry so many pages with scripts are rendered, once.
SOUNDINGS = 3
# Text that scripts brought: half as much again, and a few lines.
_MORE_TEXT, _FEW_LINES = 1.5, 100


class Verdict(StrEnum):
    UNKNOWN = "unknown"
    RENDER = "render"
    PLAIN = "plain"


class Evidence(msgspec.Struct, array_like=True):
    """On one kind of pages: how many shells were `seen` under the verdict, how many pages were rendered and
    gained, how many in a row did not. `out` are begun and have not ended."""

    seen: int = 0
    rendered: int = 0
    gained: int = 0
    in_vain: int = 0
    out: int = 0
    verdict: str = Verdict.UNKNOWN
    sounded: int = 0
    candidates: list[bytes] = msgspec.field(default_factory=list)
    """Of a host: pages with scripts that were not rendered, for its soundings."""


class Choice(msgspec.Struct, frozen=True):
    """Whether a page is rendered, and why or why not, in words."""

    is_rendered: bool
    why: str = ""


_NO = Choice(False)


def has_gained(added: int, text: int, plain_text: int) -> bool:
    """New on the page is not new to the crawl: URLs count as far as nobody knew them."""
    return added > 0 or text > _MORE_TEXT * plain_text + _FEW_LINES


def is_shell(looks: str) -> bool:
    return looks.startswith(SHELL)


def choose(mode: str, looks: str, kind: Evidence) -> Choice:
    """Of a page that was just fetched. What is chosen before there is a verdict waits for it (`may_begin`)."""
    if mode == NEVER or not looks:
        return _NO
    if mode == ALWAYS:
        return Choice(True, "every page is to be rendered (render = always)")
    if kind.verdict == Verdict.RENDER:
        if looks == STATIC:
            return Choice(False, "it has no scripts")
        return Choice(True, f"renderings of its kind bring more ({_counts(kind)})")
    if not is_shell(looks):
        # a sounding brought something; one more such page decides
        has_gained_once = kind.verdict == Verdict.UNKNOWN and kind.gained > 0 and looks == SCRIPTED
        return Choice(True, f"others of its kind brought more ({_counts(kind)})") if has_gained_once else _NO
    why = f"it looks like an empty shell ({looks.partition(': ')[2]})"
    if kind.verdict == Verdict.UNKNOWN:
        return Choice(True, why)
    if kind.seen % _AGAIN_PLAIN == _AGAIN_PLAIN - 1:
        return Choice(True, f"{why}; its kind is weighed again")
    return Choice(False, f"renderings of its kind bring nothing ({_counts(kind)})")


def may_begin(kind: Evidence) -> bool | None:
    """Whether a chosen shell is rendered now. Not yet (False) while the first of its kind are under way; not at
    all (None) once they brought nothing."""
    if kind.verdict == Verdict.PLAIN:
        return None
    return kind.verdict == Verdict.RENDER or kind.gained > 0 or kind.rendered + kind.out < _FIRST


def note_rendered(evidence: Evidence, *, gained: bool) -> None:
    """A rendering of this kind has ended."""
    evidence.out = max(0, evidence.out - 1)
    evidence.rendered += 1
    evidence.gained += gained
    evidence.in_vain = 0 if gained else evidence.in_vain + 1
    before, evidence.verdict = evidence.verdict, _verdict(evidence)
    if before != evidence.verdict:
        evidence.seen = 0


def _verdict(evidence: Evidence) -> str:
    if evidence.verdict == Verdict.RENDER and evidence.in_vain >= _IN_VAIN:
        return Verdict.PLAIN
    if evidence.gained >= _ENOUGH and evidence.in_vain < _IN_VAIN:
        return Verdict.RENDER
    if evidence.rendered >= _FIRST and not evidence.gained:
        return Verdict.PLAIN
    return evidence.verdict


def _counts(evidence: Evidence) -> str:
    return f"{evidence.gained} of {evidence.rendered} gained"


def words_of(evidence: Evidence) -> str:
    """For people: what is known of a kind; empty when nothing is."""
    if not evidence.rendered:
        return ""
    said = {Verdict.RENDER: "it is rendered", Verdict.PLAIN: "it is not rendered"}
    return f"{said.get(Verdict(evidence.verdict), 'not decided yet')}: {_counts(evidence)}"
