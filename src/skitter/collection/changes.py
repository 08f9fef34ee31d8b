"""The table `changes`: each visit that found a page new, changed or gone, as SQL over `pages`.

One definition for `skitter query`, `skitter changes` and sinks. A visit is compared with the page's visit before
it. Answers that say nothing of the page (304, redirects, failures) are no visits. Pure text, no database here.
"""

from __future__ import annotations

_CHANGES = """
select url, fetch_time,
    case when not is_page then 'gone' when was_page then 'changed' else 'new' end as change,
    fetch_status, title, content_digest,
    if(was_page, had_digest, null) as previous_digest,
    if(was_page, had_time, null) as previous_time,
    if(is_page and was_page, text_digest != had_text, null) as text_changed,
    warc_filename, warc_record_offset
from (
    select *, coalesce(lag(is_page) over visits, false) as was_page,
        last_value(if(is_page, content_digest, null) ignore nulls) over earlier as had_digest,
        last_value(if(is_page, text_digest, null) ignore nulls) over earlier as had_text,
        last_value(if(is_page, fetch_time, null) ignore nulls) over earlier as had_time
    from (
        select *, fetch_status between 200 and 299 as is_page from {pages}
        where kind = 'page' and (fetch_status between 200 and 299 or fetch_status in (404, 410))
    )
    window visits as (partition by url order by fetch_time, warc_filename, warc_record_offset),
        earlier as (visits rows between unbounded preceding and 1 preceding)
)
where was_page != is_page or (is_page and had_digest is distinct from content_digest)
"""
# A page that changed twice is listed once; one that came and went, or is again what it was, not at all.
_SINCE = """
select
    case when last_change = 'gone' then 'gone' when first_change = 'new' then 'new' else 'changed' end as change,
    url, strftime(seen, '%Y-%m-%d %H:%M:%S') as seen
from (
    select url, max(fetch_time) as seen, arg_min(change, fetch_time) as first_change,
        arg_max(change, fetch_time) as last_change, arg_min(previous_digest, fetch_time) as had,
        arg_max(content_digest, fetch_time) as has
    from changes where fetch_time >= {since} group by url
)
where if(last_change = 'gone', first_change != 'new', first_change = 'new' or had is distinct from has)
order by seen, url
"""


def select_changes(pages: str) -> str:
    """`pages` is a table, or a select in brackets, with the columns of the table."""
    return _CHANGES.format(pages=pages)


def select_since(stamp: str) -> str:
    """What has become of pages since then; `stamp` is a time in UTC as SQL writes it."""
    return _SINCE.format(since=f"timestamp '{stamp}'")
