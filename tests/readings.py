"""One page read in both ways, by the kernel and by the tree: whatever the kernel says, the tree says too."""

from __future__ import annotations

import random

import pytest

from skitter.parse.content import PageContent, Source
from skitter.parse.markup.html import read_in_one_pass
from skitter.parse.markup.html_tree import TreeReader

pytest.importorskip("skitter.native._kernels", reason="the kernels were not built")

_tree = TreeReader()
TAGS = """a a a b i p p div div span li ul ol dl dt dd table tr td th tbody thead caption colgroup col select
option optgroup button form input textarea title pre listing xmp h1 h2 head body html main article
header footer nav aside section svg math path g mi mo mtext desc foreignObject script style noscript
iframe noembed noframes object applet marquee nobr font code em strong br hr img image area map link
meta base ruby rb rt rp rtc template frameset frame plaintext dialog details summary menu search
address center x-y keygen wbr source param embed legend isindex command big""".split()
ATTRIBUTES = """href=x|href=y|href='z#f'|href="a b "|href=' x #q'|href|rel=nofollow|rel='Next x'|lang=fr
rel=canonical|xlink:href=xl|rel=alternate type=text/html|role=navigation|role=x|xml:lang=nl|src=i|type=hidden
name=robots content=noindex|http-equiv=refresh content='1;url=r'|http-equiv=content-language content=de
charset=utf-8|charset=koi8-r|href=a&amp;b|href=a&ampb|href=a&amp=|href='&#x41;&copy'|href=//h/p|href=mailto:x
href=#|shadowrootmode=open|/|=|a='|"x""".replace("\n", "|").split("|")
BITS = [
    *("text", "words ", " ", "\n", "\t", "\f", "\r\n", "\r", "é", "\u00a0", "\u3000", "ж", "a" * 300),
    *("&amp;", "&lt", "&notit;", "&#65;", "&#x80;", "&#0;", "&nGt;", "&", "&#", "&#10;", "&#13;", "&Aacute"),
    *("<", "</", "<!", "<?", "<!--", "-->", "--!>", "<!-- c -->", "<!---->", "<!-->", "<!--->", "</>", "< a"),
    *("<!doctype html>", '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x">', "</p>", "</br>"),
    *("<script><!--<script>", "</script>", "<pre>\n", "<textarea>\n", "<a href=q>q</a>", "<![CDATA[x]]>"),
    *("<template>", "</template>", "<template><main>", "<template><a href=t>t</a></template>", "<noframes>"),
]  # fmt: skip


def readings(body: bytes, charset: str = "utf-8") -> tuple[PageContent | None, PageContent]:
    """By the kernel, None when it left the page alone; and by the tree."""
    source = Source(
        body=body, url="http://e.org/a/b", media_type="text/html", charset=charset, with_text=True
    )
    return read_in_one_pass(source), _tree.read(source)


def nasty_tag(source: random.Random) -> str:
    tag = source.choice(TAGS)
    if source.random() < 0.4:
        return f"</{tag}>"
    attributes = (" " + source.choice(ATTRIBUTES) for _ in range(source.choice([0, 0, 0, 1, 2])))
    return f"<{tag}{''.join(attributes)}{source.choice(['>'] * 12 + ['/>', ' >', ''])}"


def nasty_page(source: random.Random) -> bytes:
    """Markup of few names at a time: misnesting needs the same name more than once."""
    few = source.sample(TAGS, 4)
    pieces = [
        source.choice(
            ["", "<!doctype html>", "<main>", "<!doctype html><table><tr><td>", "<!doctype html><p>"]
        )
    ]
    for _ in range(source.randint(1, 40)):
        chance = source.random()
        if chance < 0.3:
            pieces.append(f"<{source.choice(['', '', '/'])}{source.choice(few)}>")
        else:
            pieces.append(nasty_tag(source) if chance < 0.7 else source.choice(BITS))
    return "".join(pieces).encode()
