"""Every setting, once: its section, name, type, default and what it means.

A part gets its own section in its constructor; nothing here is global and nothing reads it behind a
part's back. `settings/load.py` fills these from TOML, environment and flags.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skitter.model import HostPolicy
from skitter.settings.focus import FocusSettings
from skitter.settings.host_identity import HostIdentity
from skitter.settings.plugins import ExtractRule, PluginSettings
from skitter.settings.rendering import RenderSettings
from skitter.settings.rules import RuleSettings, SeedRule

Doc = Meta
Fraction = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]

# Links that end in one of these lead to no text; following them would cost the host a request and us a
# connection that has to be dropped as soon as the content type is seen.
SKIPPED_EXTENSIONS = tuple(
    """7z avi avif bin bmp bz2 class css deb dmg doc docx eot exe flac flv gif gz ico iso jar jpeg jpg js
    m4a m4v mkv mov mp3 mp4 mpeg mpg msi mjs odp ods odt ogg ogv otf png ppt pptx ps rar rpm rss svg swf tar
    tgz tif tiff ttf wasm wav webm webp wma wmv woff woff2 xls xlsx xz zip zst""".split()
)


class CrawlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to crawl, and how much of it. Changed rules act on what is known: docs/url-lifecycle.md."""

    scope: Annotated[
        str, Doc(description="How far links are followed from the seeds: host, domain, prefix or any.")
    ] = "host"
    include: Annotated[
        tuple[str, ...],
        Doc(description="Regular expressions; when given, a URL must match one (seeds are exempt)."),
    ] = ()
    exclude: Annotated[
        tuple[str, ...], Doc(description="Regular expressions; a URL that matches one is refused.")
    ] = ()
    skip_extensions: Annotated[
        tuple[str, ...], Doc(description="Path endings that are not followed, without the dot.")
    ] = SKIPPED_EXTENSIONS
    blocklists: Annotated[
        tuple[str, ...],
        Doc(
            description="Files of hosts (with their subdomains) and URL patterns that are never asked for, seeds "
            "included; read again when they change."
        ),
    ] = ()
    max_pages: Annotated[Count, Doc(description="Stop after this many pages; 0 means no limit.")] = 0
    max_depth: Annotated[Count, Doc(description="Links further than this from a seed are refused.")] = 15
    max_url_length: Annotated[AtLeastOne, Doc(description="Longer URLs are refused.")] = 2048
    workers: Annotated[
        Count,
        Doc(
            description="Processes that fetch and read pages; the first of one, two or three is the one that "
            "keeps the crawl. 0 begins with that one, and starts others, up to one for each core, when it has "
            "more to do than it can."
        ),
    ] = 0
    relief: Annotated[
        NotNegative,
        Doc(
            description="With workers = 0, seconds for which the process must have been busy all the time before "
            "others help."
        ),
    ] = 5.0
    near_duplicates: Annotated[
        bool, Doc(description="Take fingerprints of pages' texts and record which page resembles which.")
    ] = True
    requisites: Annotated[
        bool,
        Doc(
            description="Fetch what pages need to look as they do, wherever it lies: stylesheets, images, "
            "scripts, fonts, icons, and what stylesheets import or show. Turned on later, pages fetched before "
            "need a skitter refresh."
        ),
    ] = False
    render: Annotated[
        Literal["never", "auto", "always"],
        Doc(
            description="Show pages in a browser without a network: never, auto (those that are nothing without "
            "their scripts) or always."
        ),
    ] = "never"
    linger: Annotated[
        NotNegative,
        Doc(description="When only waiting is left, wait at most this long (s) for the next host or retry."),
    ] = 90.0


class KeySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which URLs are one page. Fixed when a crawl is made: the keys of what it knows follow from them."""

    rules: Annotated[
        Annotated[int, Meta(ge=1, le=2)],
        Doc(
            description="Version of the rules and of the list of tracking parameters. 1 is what crawls that know "
            "no [keys] go on with; it folds a shorter list and takes no notice of the other settings here."
        ),
    ] = 2
    tracking: Annotated[
        bool,
        Doc(description="Drop query parameters that only tell where a visitor came from (utm_*, gclid)."),
    ] = True
    sessions: Annotated[
        bool,
        Doc(description="Drop session ids of query and path: PHPSESSID, ;jsessionid=, sid if it looks it."),
    ] = True
    drop_parameters: Annotated[
        tuple[str, ...],
        Doc(description="More query parameters that make no other page; an ending `*` means any ending."),
    ] = ()
    keep_parameters: Annotated[
        tuple[str, ...], Doc(description="Query parameters that are never dropped, whatever the rest says.")
    ] = ()
    sort_query: Annotated[bool, Doc(description="The order of query parameters makes no other page.")] = True
    drop_empty: Annotated[bool, Doc(description="`?a=&b=1` is `?b=1`; `?a` without = stays.")] = False
    default_documents: Annotated[
        tuple[str, ...],
        Doc(description="Names such as index.html that stand for their folder: /a/index.html is /a/."),
    ] = ()
    trailing_slash: Annotated[bool, Doc(description="/a/ is /a.")] = False
    www: Annotated[bool, Doc(description="www.example.org is example.org.")] = False
    scheme: Annotated[bool, Doc(description="https://example.org is http://example.org.")] = False


class IdentitySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asking."""

    contact: Annotated[
        str, Doc(description="E-mail address or URL for site owners; needed to crawl public hosts.")
    ] = ""
    product: Annotated[
        str, Doc(description="Product token of the User-Agent, also what robots.txt groups are matched with.")
    ] = "skitter"
    from_address: Annotated[
        str, Doc(description="E-mail address that is sent as From with every request; empty sends none.")
    ] = ""
    signing_key: Annotated[
        str,
        Doc(
            description="File with an Ed25519 key (skitter identity makes one) that every request is signed "
            "with, as Web Bot Auth has it; empty signs none: docs/identity.md."
        ),
    ] = ""
    signature_agent: Annotated[
        str, Doc(description="https URL of the host that serves the directory with the public key.")
    ] = ""


class AboutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the crawl is, for whoever finds its archive: said in each WARC file and in exported WACZ packages."""

    title: Annotated[str, Doc(description="A name for the collection.")] = ""
    description: Annotated[str, Doc(description="What was crawled, and why.")] = ""
    publisher: Annotated[str, Doc(description="Who answers for the collection.")] = ""
    is_part_of: Annotated[str, Doc(description="The larger collection that it belongs to.")] = ""


class PolitenessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hosts are treated. robots.txt is always obeyed; that is not a setting."""

    delay: Annotated[NotNegative, Doc(description="Seconds between two request starts on one host.")] = 1.0
    max_crawl_delay: Annotated[NotNegative, Doc(description="A Crawl-delay above this (s) is cut to it.")] = (
        60.0
    )
    slow_factor: Annotated[
        NotNegative,
        Doc(description="A host is asked no more often than this times its smoothed response time."),
    ] = 1.0
    robots_ttl: Annotated[Positive, Doc(description="robots.txt is fetched again after this long (s).")] = (
        86400.0
    )
    robots_unreachable: Annotated[
        str,
        Doc(
            description="What a robots.txt means that was answered with nothing but errors for "
            "robots_unreachable_after: disallow (go on waiting) or allow (RFC 9309 2.3.1.4: the last copy read, "
            "or no rules)."
        ),
    ] = "disallow"
    robots_unreachable_after: Annotated[
        Positive, Doc(description="Seconds before robots_unreachable counts.")
    ] = 2_592_000.0
    address_rate: Annotated[
        NotNegative,
        Doc(
            description="Requests a second to one public IP address at most, over all hosts on it; "
            "0 means no limit."
        ),
    ] = 10.0
    host_budget: Annotated[Count, Doc(description="Pages fetched of one host at most; 0 means no limit.")] = (
        50_000
    )
    daily_requests: Annotated[
        Count,
        Doc(description="Requests to one host a day at most; 0 means no limit, a host's table may differ."),
    ] = 0
    daily_bytes: Annotated[
        Count,
        Doc(
            description="Bytes of answers after which a host is asked no more on that day; 0 means no limit, a "
            "host's table may differ."
        ),
    ] = 0


class RetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens after a failure; the table of kinds is in docs/failures.md."""

    attempts: Annotated[AtLeastOne, Doc(description="Fetches of one URL before it is a dead letter.")] = 5
    backoff: Annotated[
        tuple[float, ...],
        Doc(description="Waits (s) after the 1st, 2nd, ... failure in a row; the last one repeats."),
    ] = (60.0, 3600.0, 21600.0)
    quarantine_after: Annotated[
        AtLeastOne, Doc(description="Failures in a row after which a host is left alone for long.")
    ] = 6
    quarantine: Annotated[Positive, Doc(description="How long (s) a host stays in quarantine.")] = 86400.0
    quarantines: Annotated[
        AtLeastOne, Doc(description="A host that fails again after so many quarantines is given up.")
    ] = 3


class FetchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on what one request may take."""

    concurrency: Annotated[
        AtLeastOne,
        Doc(description="Requests in flight at most, over all hosts, without those that hardly move."),
    ] = 256
    connections: Annotated[
        AtLeastOne,
        Doc(
            description="Connections at most: of requests in flight, with those that hardly move, and kept for "
            "the next ones. Each takes a descriptor, and one with TLS 0.1 MB."
        ),
    ] = 4096
    dns_timeout: Annotated[
        Positive, Doc(description="Seconds to wait for a name's address, with one repetition in them.")
    ] = 10.0
    connect_timeout: Annotated[Positive, Doc(description="Seconds to connect, TLS included.")] = 10.0
    first_byte_timeout: Annotated[
        Positive, Doc(description="Seconds from the request until the response starts.")
    ] = 20.0
    stall_timeout: Annotated[
        Positive, Doc(description="Seconds a transfer may run below stall_rate before it is given up.")
    ] = 15.0
    stall_rate: Annotated[
        AtLeastOne, Doc(description="Bytes a second below which a transfer is stalled.")
    ] = 100
    total_timeout: Annotated[Positive, Doc(description="Seconds one request may take in all.")] = 60.0
    max_body: Annotated[
        AtLeastOne, Doc(description="Bytes of a body that are kept; a longer one is truncated and marked.")
    ] = 10_000_000
    body_memory: Annotated[
        AtLeastOne,
        Doc(
            description="Bytes of RAM for bodies above 64 KB that are under way; beyond it reading them pauses."
        ),
    ] = 256_000_000
    max_decoded: Annotated[
        AtLeastOne,
        Doc(description="Bytes that a body may inflate to; of a larger one 1 MB is read."),
    ] = 10_000_000
    max_ratio: Annotated[
        AtLeastOne,
        Doc(description="How many times its size a compressed body may inflate to, once that is above 1 MB."),
    ] = 250
    max_parsed: Annotated[
        AtLeastOne,
        Doc(description="Bytes of a page that its links, title and text are taken from; all of a PDF."),
    ] = 2_000_000
    reading_seconds: Annotated[
        Positive,
        Doc(
            description="CPU seconds that reading one page may take. Of a site whose page took more, less is "
            "read, and the host rests for 20 times as long as it took."
        ),
    ] = 0.25
    max_header_bytes: Annotated[AtLeastOne, Doc(description="Bytes of response headers at most.")] = 65_536
    max_header_count: Annotated[AtLeastOne, Doc(description="Response header lines at most.")] = 200
    max_redirects: Annotated[Count, Doc(description="Redirects in a row that are followed.")] = 5
    allow_private: Annotated[
        bool, Doc(description="Let names resolve to loopback, private and other special addresses.")
    ] = False
    resolve: Annotated[
        tuple[str, ...], Doc(description="HOST:PORT:ADDRESS[:PORT] overrides of DNS, `*` for any host.")
    ] = ()
    nameservers: Annotated[tuple[str, ...], Doc(description="DNS servers; empty means the system's.")] = ()
    dns_cache: Annotated[AtLeastOne, Doc(description="Host names kept in the DNS cache.")] = 50_000
    pdf_seconds: Annotated[Positive, Doc(description="Seconds that reading one PDF may take.")] = 10.0
    pdf_memory: Annotated[
        Annotated[int, Meta(ge=200_000_000)],
        Doc(description="Bytes of address space of the process that reads PDFs."),
    ] = 1_000_000_000
    verify_tls: Annotated[bool, Doc(description="Check certificates; a host's own table may differ.")] = True
    ca_file: Annotated[str, Doc(description="PEM file of trusted issuers; empty means certifi's list.")] = ""
    http2: Annotated[bool, Doc(description="Speak HTTP/2 with https hosts that offer it.")] = True


class FrontierSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the frontier keeps and hands out work."""

    tasks_per_lease: Annotated[
        AtLeastOne, Doc(description="URLs of one host handed to a worker at once, at most.")
    ] = 8
    lease_duration: Annotated[
        Positive,
        Doc(
            description="Seconds a worker may hold a host unrenewed; those a crawl starts itself at least 60."
        ),
    ] = 60.0
    importance: Annotated[
        bool,
        Doc(
            description="Pages of hosts that many others link are fetched first, by an estimate that grows with "
            "the link graph: docs/importance.md."
        ),
    ] = False
    tier_weights: Annotated[
        tuple[int, ...], Doc(description="How often the priority tiers F0 to F3 are served.")
    ] = (8, 4, 2, 1)
    sync_interval: Annotated[
        NotNegative, Doc(description="Seconds of work that a power loss may undo; 0 syncs every commit.")
    ] = 1.0
    memory: Annotated[
        Annotated[int, Meta(ge=16_000_000)],
        Doc(description="Bytes of RAM for caches, memtables and filters together."),
    ] = 256_000_000
    log: Annotated[
        str,
        Doc(
            description="PostgreSQL database that every commit goes to first, as postgresql://HOST/DATABASE, "
            "so that another machine can go on with the crawl: docs/cluster.md. Needs archive.url. Its "
            "password comes from PGPASSWORD or ~/.pgpass."
        ),
    ] = ""
    log_unreplicated: Annotated[
        bool,
        Doc(
            description="With log, take a database that has no synchronous standby: what it loses with its "
            "machine is lost."
        ),
    ] = False
    log_lapse: Annotated[
        Positive,
        Doc(description="With log, seconds of silence after which another machine may take the crawl over."),
    ] = 15.0
    checkpoint_interval: Annotated[
        Positive,
        Doc(description="With log, seconds between two checkpoints of the frontier in the object store."),
    ] = 300.0
    cached_hosts: Annotated[
        Count, Doc(description="Host records kept in memory; 0 takes a share of memory.")
    ] = 0
    recent_keys: Annotated[
        Count, Doc(description="URL keys remembered as known; 0 takes a share of memory.")
    ] = 0


class TrapSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages that go on for ever and tell nothing new: docs/traps.md."""

    mode: Annotated[
        Literal["off", "observe", "on"],
        Doc(
            description="`on` stops kinds of pages that bring nothing new, and parameters that change nothing. "
            "`observe` judges them and refuses nothing. `off` does neither."
        ),
    ] = "on"
    probe: Annotated[
        bool,
        Doc(description="Ask a host whose pages look alike once for a page that cannot exist."),
    ] = True
    host_start: Annotated[
        Count,
        Doc(
            description="Pages that a host may have before any of them was new; each new one earns eight more. "
            "0 means no limit."
        ),
    ] = 100
    entries_start: Annotated[
        Count,
        Doc(
            description="Pages of the same words, each with a title and figures of its own, that a host may have "
            "while more and more of them wait. 0 means no limit."
        ),
    ] = 5000
    domain_start: Annotated[
        Count,
        Doc(
            description="Hosts that a registrable domain may have before the first page of any was new; each new "
            "one earns eight more. 0 means no limit."
        ),
    ] = 50


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the archive looks like, and where it goes."""

    url: Annotated[
        str,
        Doc(
            description="Object store that finished segments go to: s3://BUCKET/PREFIX, gs://, az:// or file://; "
            "empty keeps them in the crawl's folder. Credentials come from the environment."
        ),
    ] = ""
    keep_local: Annotated[
        bool, Doc(description="With url, keep the crawl folder's own copy of what is stored there.")
    ] = False
    spool: Annotated[
        AtLeastOne,
        Doc(
            description="With url, bytes that may wait for upload; then the crawl pauses until they are less."
        ),
    ] = 10_000_000_000
    segment_seconds: Annotated[
        Positive, Doc(description="With url, a new WARC file is begun after this long (s), however small.")
    ] = 600.0

    segment_size: Annotated[AtLeastOne, Doc(description="Bytes after which a new WARC file is begun.")] = (
        1_000_000_000
    )
    compression: Annotated[
        str,
        Doc(
            description="Of new WARC files: gzip (.warc.gz, which all tools read) or zstd (.warc.zst, smaller). "
            "One that was begun is finished as it was begun."
        ),
    ] = "gzip"
    level: Annotated[
        Annotated[int, Meta(ge=0, le=3)],
        Doc(
            description="Of compression, 0 (fastest) to 3 (smallest): ISA-L's own, or zstd's -1, 1, 3 and 6."
        ),
    ] = 1
    prefix: Annotated[str, Doc(description="How WARC file names begin.")] = "skitter"
    tables: Annotated[
        tuple[str, ...],
        Doc(description="Parquet tables that are kept beside the WARC files: pages, links, text."),
    ] = ("pages", "links", "text")
    table_seconds: Annotated[
        Positive,
        Doc(
            description="Committed rows are in the tables, where sinks find them, after this long (s); "
            "sooner if there are many. Small values make many small files."
        ),
    ] = 600.0
    dedup_against: Annotated[
        tuple[str, ...],
        Doc(
            description="Other archives (crawls, WARC or WACZ files, folders of them, CDXJ indexes): a body "
            "that one of them holds is not stored again, but referred to by a revisit record."
        ),
    ] = ()
    metadata: Annotated[
        bool,
        Doc(
            description="Write a WARC metadata record per response: timing, and outlinks unless tables has links."
        ),
    ] = True
    min_free: Annotated[
        Count, Doc(description="Bytes of free disk below which the crawl pauses until there is more.")
    ] = 100_000_000


class SitemapSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sitemaps and feeds, in which sites list what they have: docs/sitemaps.md."""

    use: Annotated[
        str,
        Doc(
            description="also: read those that robots.txt files and pages name, beside following links. only: "
            "fetch seeds and what sitemaps name, and follow no links. off: read none but those given as seeds."
        ),
    ] = "also"
    feeds: Annotated[bool, Doc(description="Read feeds (RSS, Atom, JSON Feed) that pages name, too.")] = True
    probe: Annotated[
        bool, Doc(description="Ask for /sitemap.xml on hosts whose robots.txt names no sitemap.")
    ] = False
    trust: Annotated[
        str,
        Doc(
            description="Which URLs a sitemap may name. standard: those of its own folder and below, and all of "
            "hosts whose robots.txt names it. domain: also all of its own registrable domain. any: all."
        ),
    ] = "standard"
    max_body: Annotated[
        AtLeastOne, Doc(description="Bytes of a sitemap that are read, as it comes and after decompression.")
    ] = 52_428_800
    max_urls: Annotated[AtLeastOne, Doc(description="URLs that are read of one sitemap.")] = 50_000
    max_files: Annotated[
        AtLeastOne, Doc(description="Sitemaps and feeds of one host that are asked for.")
    ] = 10_000


class RevisitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When pages are visited again: docs/freshness.md."""

    keep_fresh: Annotated[
        bool, Doc(description="Visit pages again as they change; such a crawl goes on until it is stopped.")
    ] = False
    rule: Annotated[
        str,
        Doc(
            description="When a page is visited again: value (when a visit is worth its price), halve-double "
            "(half the interval after a change, twice as long otherwise) or fixed (after interval)."
        ),
    ] = "value"
    per_second: Annotated[
        NotNegative,
        Doc(description="Revisits a second over all hosts; 0 means a tenth of the pages known a day."),
    ] = 0.0
    share: Annotated[
        Fraction,
        Doc(description="Share of revisits among all requests while new pages wait; 0.01 to 0.99 count."),
    ] = 0.3
    interval: Annotated[Positive, Doc(description="With rule fixed, seconds between two visits.")] = 604_800.0
    min_age: Annotated[
        Positive, Doc(description="A page is visited again after this long (s) at the earliest.")
    ] = 600.0
    max_age: Annotated[
        Positive, Doc(description="A page is visited again after this long (s) at the latest.")
    ] = 2_592_000.0
    fresh_within: Annotated[
        tuple[str, ...],
        Doc(
            description="DURATION REGEX, such as `1h ^https://example.org/news/`: pages whose URL matches are "
            "visited again after that long at the latest, while politeness allows."
        ),
    ] = ()
    never: Annotated[
        tuple[str, ...], Doc(description="Regular expressions; pages that match are never visited again.")
    ] = ()
    equal_weights: Annotated[bool, Doc(description="All pages count alike, whatever their priorities.")] = (
        False
    )
    audit: Annotated[
        Fraction,
        Doc(description="Share of visits that are made at random times, to measure how fresh copies are."),
    ] = 0.005


class WallSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers that stand where a page should be: docs/walls.md."""

    mode: Annotated[
        Literal["off", "observe", "on"],
        Doc(
            description="`on` takes block pages, captchas, challenges, gates and parked domains for failures, "
            "and asks hosts less that turn us away. `observe` takes them for pages and notes what they look "
            "like. `off` does neither."
        ),
    ] = "on"


OptOut = Literal["record", "obey"]


class OptOutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What pages and sites reserve. All of it is recorded in the table `pages`; `obey` keeps less. robots.txt and
    nofollow are always obeyed: docs/opt-outs.md."""

    noindex: Annotated[OptOut, Doc(description="obey: the text of such pages is not kept.")] = "record"
    nosnippet: Annotated[OptOut, Doc(description="obey: the text of such pages is not kept.")] = "record"
    noarchive: Annotated[OptOut, Doc(description="obey: the body of such pages is not kept.")] = "record"
    unavailable_after: Annotated[
        OptOut, Doc(description="obey: the body of pages whose date has passed is not kept.")
    ] = "record"
    tdm_reservation: Annotated[
        OptOut, Doc(description="obey: the text of pages that reserve text and data mining is not kept.")
    ] = "record"
    content_signal: Annotated[
        OptOut, Doc(description="obey: the text of pages that say no to purpose is not kept.")
    ] = "record"
    purpose: Annotated[
        Literal["search", "ai-input", "ai-train"],
        Doc(description="What the crawl is for, in the words of Content-Signal."),
    ] = "search"
    files: Annotated[
        tuple[str, ...],
        Doc(
            description="Files that each host is asked for once, beside its robots.txt, and that are archived: "
            "tdmrep.json (whose rules count as those of its pages), ai.txt, llms.txt."
        ),
    ] = ()


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is told beside `skitter.log`."""

    json: Annotated[
        bool,
        Doc(
            description="Write the log's lines to standard error too, and nothing there that is not JSON: for "
            "what collects the output of services and containers."
        ),
    ] = False


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    crawl: CrawlSettings = CrawlSettings()
    keys: KeySettings = KeySettings()
    identity: IdentitySettings = IdentitySettings()
    about: AboutSettings = AboutSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    retry: RetrySettings = RetrySettings()
    fetch: FetchSettings = FetchSettings()
    frontier: FrontierSettings = FrontierSettings()
    archive: ArchiveSettings = ArchiveSettings()
    traps: TrapSettings = TrapSettings()
    sitemaps: SitemapSettings = SitemapSettings()
    revisit: RevisitSettings = RevisitSettings()
    opt_outs: OptOutSettings = OptOutSettings()
    walls: WallSettings = WallSettings()
    log: LogSettings = LogSettings()
    plugins: PluginSettings = PluginSettings()
    focus: FocusSettings = FocusSettings()
    render: RenderSettings = RenderSettings()
    rules: RuleSettings = RuleSettings()
    hosts: dict[str, HostPolicy] = {}
    extract: dict[str, ExtractRule] = {}
    seeds: dict[str, SeedRule] = {}
    identities: dict[str, HostIdentity] = {}
    """Told in the tables of `hosts` too."""
