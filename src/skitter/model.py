"""The nouns of a crawl: what travels between the frontier, the workers and the archive.

Frozen values without behaviour beyond reading themselves, without I/O and without a clock. They are
msgspec structs rather than dataclasses: building one costs 0.2 us instead of 1.5, and the same definition
is what goes to disk and over the wire. Times are seconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated, Literal, NewType

import msgspec
from msgspec import Meta

Host = NewType("Host", str)
"""An origin as WHATWG serialises it, `http://example.org` or `https://example.org:8443`."""

UrlKey = NewType("UrlKey", bytes)
"""16 bytes: 8 of the hash of the canonical host, 8 of the hash of the rest of the canonical form."""

Token = NewType("Token", int)
"""The fencing token of a lease: grows with every lease granted, never used twice."""


class TaskKind(StrEnum):
    """What a worker is asked to do to a host."""

    ROBOTS = "robots"
    PAGE = "page"
    REQUISITE = "requisite"
    """What a page needs to look as it does."""
    PROBE = "probe"
    """A made-up URL, to see what the host says of pages that it does not have."""
    SITEMAP = "sitemap"
    """A file in which a site lists its URLs, or other such files."""
    FEED = "feed"
    """A file in which a site lists its news."""
    DECLARATION = "declaration"
    """A file in which a site says what may be done with its content."""
    RENDER = "render"
    """A page that was fetched, to be shown in a browser: no host is asked by it."""
    FORM = "form"
    """A form that users' code wants posted, once."""
    SAFE_FORM = "safe_form"
    """The same, where the code says that it changes nothing: a search, say."""


class UrlState(IntEnum):
    """Where a known URL stands; it is always in exactly one of these."""

    QUEUED = 1
    IN_PROGRESS = 2
    COMPLETED = 3
    FAILED = 4
    DEAD_LETTER = 5
    DENIED = 6
    GONE = 7
    REFUSED = 8


class Via(StrEnum):
    """How a URL was found."""

    SEED = "seed"
    LINK = "link"
    REDIRECT = "redirect"
    REQUISITE = "requisite"
    CANONICAL = "canonical"
    PROBE = "probe"
    ROBOTS = "robots"
    """Named by a robots.txt: a sitemap."""
    SITEMAP = "sitemap"
    FEED = "feed"
    PUSH = "push"
    """Told by who changed it."""
    RENDER = "render"
    """Asked for by a page while it was rendered."""


class Refusal(StrEnum):
    """Why admission said no. The wording beside it, in the verdict, names the rule and its value."""

    SCOPE = "scope"
    EXCLUDED = "excluded"
    DEPTH = "depth"
    LENGTH = "length"
    EXTENSION = "extension"
    REDIRECTS = "redirects"
    BUDGET = "budget"
    BLOCKED = "blocked"
    BLOCKLIST = "blocklist"
    TYPE = "type"
    REQUISITE = "requisite"
    TRAP = "trap"
    OFF_TOPIC = "off_topic"
    NO_HTTPS = "no_https"
    FORGOTTEN = "forgotten"
    """The operator had it removed: no row of it is kept."""


class FailureKind(StrEnum):
    """The closed set of ways a fetch can fail. `schedule/retry.py` has a row for each."""

    DNS_NOT_FOUND = "dns_not_found"
    DNS_FAILED = "dns_failed"
    DNS_TIMEOUT = "dns_timeout"
    ADDRESS_REFUSED = "address_refused"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_EXPIRED = "tls_expired"
    TLS_UNTRUSTED = "tls_untrusted"
    TLS_NAME = "tls_name"
    TLS_HANDSHAKE = "tls_handshake"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    STALLED = "stalled"
    TOTAL_TIMEOUT = "total_timeout"
    CONNECTION_LOST = "connection_lost"
    PROTOCOL = "protocol"
    HEADERS_TOO_LARGE = "headers_too_large"
    BAD_CODING = "bad_coding"
    BAD_REDIRECT = "bad_redirect"
    ENDLESS_REDIRECT = "endless_redirect"
    TYPE_UNWANTED = "type_unwanted"
    THROTTLED = "throttled"
    SERVER_ERROR = "server_error"
    PROXY_FAILED = "proxy_failed"
    """The proxy of the host's identity could not be reached, or would not connect."""
    TURNED_AWAY = "turned_away"
    """A block page, a captcha, a challenge: the host wants no crawler, or not this one now."""
    GATED = "gated"
    """A gate stood where the page should be: consent, age, login, subscription, a parked or empty site."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """A form may have been sent, and nobody knows what came of it."""
    LOGIN_FAILED = "login_failed"
    """The recipe of the host's identity did not get in, or the host threw us out at once."""


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that something pointed at, canonicalised, on its way to admission."""

    url: str
    key: UrlKey
    host: Host
    depth: int
    via: Via = Via.LINK
    parent: UrlKey | None = None
    hops: int = 0
    priority: int | None = None
    """Set by whoever asks for it (a seed's, an operator's); None leaves it to the frontier."""
    kind: TaskKind = TaskKind.PAGE
    """What it is asked for as. A redirect keeps it."""
    nesting: int = 0
    """Of a requisite: 1 for what a page needs, 2 for what such a stylesheet needs, and so on. Of a sitemap: how
    many indexes it lies in. Of a page of a focused crawl: how many pages off the topic, in a row, lead to it."""
    lastmod: float | None = None
    """When it changed last, by who told of it."""
    rel: str = ""
    """How the page that links it relates to it; of a link that users' code follows, by which extractor."""
    over_http: str = ""
    """Of a seed that was given without a scheme: its http form, asked for if its host cannot be connected."""
    changefreq: str = ""
    """How often it changes, by the sitemap that names it."""
    form: str = ""
    """Of a form: what is posted, as a browser encodes it. It is part of the key."""


class LinkColumns(msgspec.Struct, frozen=True, array_like=True):
    """Facts of the single links of a batch, in their order; a column that nobody filled is empty."""

    lastmod: tuple[float | None, ...] = ()
    priority: tuple[int | None, ...] = ()
    rel: tuple[str, ...] = ()
    changefreq: tuple[str, ...] = ()
    form: tuple[str, ...] = ()


class LinkBatch(msgspec.Struct, frozen=True, array_like=True):
    """The links of a page, which differ in URL and key alone: two strings instead of an object a link
    (`frontier/link_batches.py`). `keys` are joined, `urls` are one a line: a normalised URL has no line break."""

    keys: bytes
    urls: str
    depth: int
    via: Via = Via.LINK
    parent: UrlKey | None = None
    hops: int = 0
    priority: int | None = None
    kind: TaskKind = TaskKind.PAGE
    nesting: int = 0
    columns: LinkColumns | None = None
    """What differs from link to link beside URL and key; None when nothing does, as with most pages."""


class VerdictKind(StrEnum):
    ADDED = "added"
    KNOWN = "known"
    REFUSED = "refused"


class Verdict(msgspec.Struct, frozen=True):
    """What admission said of one discovered URL; `reason` and `rule` are set when it was refused."""

    kind: VerdictKind
    reason: Refusal | None = None
    rule: str = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One request to make. `behalf` names another host when a robots.txt redirect led here."""

    kind: TaskKind
    key: UrlKey
    url: str
    depth: int = 0
    hops: int = 0
    attempt: int = 1
    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    """Of the body that the validators speak of: a 304 is archived as a revisit of its copy."""
    behalf: Host | None = None
    nesting: int = 0
    """As `Discovered` has it."""
    form: str = ""
    """As `Discovered` has it."""


class HostLease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to talk to one host until a deadline, and what to ask it.

    `parallel` requests may be in flight at once (1 unless the operator's policy says otherwise); starts are
    at least `delay` apart, and the first is not before `not_before`.
    """

    host: Host
    token: Token
    delay: float
    parallel: int
    not_before: float
    deadline: float
    tasks: tuple[Task, ...]
    verify_tls: bool | None = None
    """The operator's word for this host; None leaves it to `fetch.verify_tls`."""
    session: bytes = b""
    """Of a host with an identity: its cookies, sealed, as the last lease left them."""
    closes_at: float | None = None
    """When its quiet hours begin: no request starts from then on."""
    ignore_walls: bool = False
    """By the operator's word its pages are pages, whatever they look like."""
    signal: str = ""
    """The `Content-Signal` of its robots.txt."""
    tdm: str = ""
    """The rules of its tdmrep.json (`parse/declarations.py`)."""
    weighs_rendering: bool = False
    """Its pages may be rendered: their result says what they look like."""


class RenderTask(msgspec.Struct, frozen=True, kw_only=True):
    """The right to render one page until a deadline. `round` counts the times that it waited for answers."""

    key: UrlKey
    url: str
    token: Token
    deadline: float
    depth: int = 0
    nesting: int = 0
    round: int = 0
    digest: bytes = b""
    """Of what came of its last rendering: the same is not archived again."""


class Standby(StrEnum):
    """What there is of a URL for a page that asks for it while it is rendered."""

    HELD = "held"
    WAITING = "waiting"
    """It is known, and has no answer yet."""
    UNKNOWN = "unknown"
    REFUSED = "refused"
    """None will come."""


class AnswerAt(msgspec.Struct, frozen=True):
    """Where the answer of a URL lies, if there is one; `why` there will be none. `digest` is of its body, `leads`
    where it redirects to."""

    standby: Standby
    why: str = ""
    digest: bytes = b""
    record: RecordAt | None = None
    status: int = 0
    leads: str = ""


class RecordAt(msgspec.Struct, frozen=True):
    """Where a record lies in the archive: the compressed record from `offset`, `length` bytes long."""

    segment: str
    offset: int
    length: int


class Copy(msgspec.Struct, frozen=True):
    """The first archived copy of a body: what a `revisit` record refers to, and the segment it lies in. Of one
    that another archive holds, the segment that first referred to it; empty while none has. Its `record_id` is
    empty too."""

    url: str
    fetched_at: float
    record_id: str
    segment: str = ""


class SegmentMark(msgspec.Struct, frozen=True):
    """How much of a segment is committed: bytes of the WARC file and of its journals of index lines and rows.
    `stored` when all of it is safe in the object store, and need not be here any more; `held` when the frontier
    knows what lies in it until then."""

    segment: str
    length: int
    index_length: int
    rows_length: int = 0
    stored: bool = False
    held: bool = False


class Fetched(msgspec.Struct, frozen=True, kw_only=True, tag="fetched"):
    """A response arrived whole and is in the archive. `truncated` when a limit cut it: the bytes on the wire,
    what they inflate to, or what is read of them; `note` says which, or what else was wrong with the body."""

    status: int
    content_type: str = ""
    digest: bytes = b""
    size: int = 0
    truncated: bool = False
    record: RecordAt | None = None
    copy: Copy | None = None
    etag: str = ""
    last_modified: str = ""
    title: str = ""
    directives: str = ""
    link_batches: tuple[LinkBatch, ...] = ()
    """What the page leads to, in its order."""
    already_sent: int = 0
    """Links that are not among these because an accepted page of the same host told of them."""
    already_sent_here: bytes = b""
    """The last bytes of the keys, joined, of those of them that lead within the page's own section."""
    note: str = ""
    simhash: Annotated[int, Meta(ge=0)] | None = None
    canonical: str = ""
    """The URL that the page itself calls canonical, when that is another page by its key."""
    figures: bytes = b""
    """A sample of the numbers of its text (`parse/fingerprints/figures_plain.py`)."""
    score: float | None = None
    """From 0 to 1: how much the page is about the topic of a focused crawl; None where nobody said."""
    looks: str = ""
    """Whether a rendering may bring more of it, in the words of `schedule/rendering.py`; empty where nobody
    looked."""
    promised: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0
    """For how many seconds the page says that it stays as it is; read where a crawl is kept fresh."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True, tag="rendered"):
    """What a page is after its scripts have run; or, with `awaited`, what it asks for and has not got. `ending`
    is the renderer's word. `text` and `plain_text` are lengths of its text with and without scripts, `lacking`
    requests that stayed without an answer, `seconds` its own time in the browser."""

    ending: str
    awaited: tuple[LinkBatch, ...] = ()
    keeps_tab: bool = False
    """The browser still has it, and goes on where it is as soon as there are answers."""
    link_batches: tuple[LinkBatch, ...] = ()
    digest: bytes = b""
    size: int = 0
    record: RecordAt | None = None
    title: str = ""
    simhash: Annotated[int, Meta(ge=0)] | None = None
    figures: bytes = b""
    text: Annotated[int, Meta(ge=0)] = 0
    plain_text: Annotated[int, Meta(ge=0)] = 0
    requests: Annotated[int, Meta(ge=0)] = 0
    lacking: Annotated[int, Meta(ge=0)] = 0
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    note: str = ""

    @property
    def status(self) -> int:
        """None: it is the answer of no host."""
        return 0


class NotModified(msgspec.Struct, frozen=True, kw_only=True, tag="not_modified"):
    """The validators we sent still hold: 304, no body."""

    record: RecordAt | None = None
    promised: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0


class Redirected(msgspec.Struct, frozen=True, kw_only=True, tag="redirected"):
    """The host points elsewhere; the target goes through admission like any other URL."""

    status: int
    location: str
    target: Discovered
    size: int = 0
    record: RecordAt | None = None


class RobotsRead(msgspec.Struct, frozen=True, kw_only=True, tag="robots_read"):
    """robots.txt was answered: with rules (2xx, `body`), or with none to obey (4xx, empty body). `digest` is of
    what crossed the wire, `body` is decoded."""

    status: int
    body: bytes = b""
    digest: bytes = b""
    copy: Copy | None = None
    size: int = 0
    record: RecordAt | None = None
    etag: str = ""
    last_modified: str = ""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """No usable answer. `status` is set when one came all the same, as with a 503."""

    kind: FailureKind
    detail: str = ""
    status: int = 0
    retry_after: float | None = None
    size: int = 0
    record: RecordAt | None = None


Result = Fetched | NotModified | Redirected | RobotsRead | Failed | Rendered


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task: settled by the frontier, once.

    `sent_at` is when the last byte of the request had left: an upper bound of when the host can have seen
    it, so spacing the next start from it keeps the host's own view of the gap at or above the delay.
    """

    host: Host
    token: Token
    kind: TaskKind
    key: UrlKey
    sent_at: float
    ended_at: float
    result: Result
    address: str = ""
    session: bytes | None = None
    """Of a host with an identity: its cookies from now on, sealed; None when they are as they were."""
    cpu: float = 0.0
    """Seconds of CPU that reading the page took, if they were more than `fetch.reading_seconds`."""


class FaultKind(StrEnum):
    """Why an extractor made nothing of a page: a closed set."""

    RAISED = "raised"
    LATE = "late"
    MEMORY = "memory"
    DIED = "died"
    """The process that ran it ended."""
    OUTPUT = "output"
    """More items than a page may have."""
    WRONG_ITEM = "wrong_item"


class Extracted(msgspec.Struct, frozen=True, array_like=True):
    """What one extractor made of one page: so many items, or a fault of a kind, in words."""

    extractor: str
    items: int = 0
    fault: str = ""
    text: str = ""


class Exchange(msgspec.Struct, frozen=True):
    """One request and its response as they crossed the wire: what the fetcher returns, what is archived.

    `request` is the request's header block. `head` is the response's status line and headers, byte for byte,
    up to and including the empty line. `body` is the payload after transfer coding and before content
    coding: chunk framing is gone, gzip is still gzip. HTTP/2 has no such text: `request` is then the HTTP/1.1 it
    stands for, and `head` begins with `HTTP/2 200`.

    The times are in milliseconds: `dns_ms` before the request was handed over, `connect_ms` until the connection
    stood and `tls_ms` from there to the end of the handshake (both 0 on a connection that was open already),
    `first_byte_ms` and `total_ms` from the start. TLS facts are empty in the clear, and where libcurl made a new
    connection behind our back.
    """

    url: str
    request: bytes
    head: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool = False
    address: str = ""
    http_version: str = "1.1"
    tls_version: str = ""
    tls_cipher: str = ""
    sent_at: float = 0.0
    ended_at: float = 0.0
    dns_ms: float = 0.0
    connect_ms: float = 0.0
    tls_ms: float = 0.0
    first_byte_ms: float = 0.0
    total_ms: float = 0.0
    reused_connection: bool = False

    def header(self, name: str) -> str:
        """The first value of a header, by its lower-case name; empty when it is absent."""
        return next((value for key, value in self.headers if key == name), "")


class Link(msgspec.Struct, frozen=True):
    """A link as a page states it, before it is resolved against the page's base URL."""

    href: str
    text: str = ""
    rel: str = ""
    tag: str = "a"


class HostPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator decided for one host; `None` leaves the crawl's own setting in force.

    Also the form of a `[hosts."http://example.org"]` table in the settings.
    """

    delay: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Seconds between two request starts.")
    ] = None
    parallel: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Requests in flight at once.")
    ] = None
    budget: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Pages at most; 0 means no limit.")
    ] = None
    blocked: Annotated[bool, Meta(description="Do not contact this host at all.")] = False
    verify_tls: Annotated[bool | None, Meta(description="Check the host's certificate.")] = None
    max_age: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Seconds after which its pages are visited again at the latest; 0 means never."),
    ] = None
    daily_requests: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Requests a day at most; 0 means no limit.")
    ] = None
    daily_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Bytes of answers a day after which no more is asked; 0 means no limit."),
    ] = None
    quiet_hours: Annotated[
        str | None,
        Meta(description="When it is not asked, by its own clock: `22:00-06:00`, or several with commas."),
    ] = None
    weight: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        Meta(description="How urgent its pages are beside those of others, from -1 to 1."),
    ] = None
    region: Annotated[
        Annotated[str, Meta(max_length=32)] | None,
        Meta(description="The region that it is asked from, as long as a worker of it is there."),
    ] = None
    ignore_walls: Annotated[
        bool, Meta(description="Its pages are pages, whatever they look like (walls.mode).")
    ] = False
    time_zone: Annotated[
        str | None,
        Meta(
            description="Whose clock its days and quiet hours go by: a name such as Europe/Berlin; UTC if absent."
        ),
    ] = None
    render: Annotated[
        Literal["never", "auto", "always"] | None,
        Meta(description="Render its pages: never, auto (those that need it) or always."),
    ] = None
