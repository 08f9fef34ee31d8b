/* A batch of links without some of them: keys of 16 bytes in one string, URLs in another, one a line. Plain C.
 *
 * What it does is defined by the Python beside skitter/frontier's link batches. Strings may come from other machines:
 * nothing says that they match, and a batch whose strings do not match is refused. */

#ifndef SKITTER_LINK_BATCH_H
#define SKITTER_LINK_BATCH_H

#include <stddef.h>
#include <string.h>

enum { LINK_KEY = 16, LINK_TAIL = 4 };

typedef struct {
    const char *bytes;
    size_t length;
} Text;

/* The links that are kept, and the tails of keys of some that are not. Each has room for all. */
typedef struct {
    char *keys, *urls, *tails;
    size_t links, url_bytes, tail_bytes;
} Split;

static int starts_with(Text text, Text start)
{
    return text.length >= start.length && !memcmp(text.bytes, start.bytes, start.length);
}

static void keep_link(Split *split, const char *key, Text url)
{
    if (split->links)
        split->urls[split->url_bytes++] = '\n';
    memcpy(split->urls + split->url_bytes, url.bytes, url.length);
    memcpy(split->keys + split->links * LINK_KEY, key, LINK_KEY);
    split->url_bytes += url.length;
    split->links++;
}

/* Notes a link that lies in the page's section, but is none of the folders that the page lies in. */
static void note_left_out(Split *split, const char *key, Text url, Text section, Text page)
{
    if (!page.length || !starts_with(url, section) || starts_with(page, url))
        return;
    memcpy(split->tails + split->tail_bytes, key + LINK_KEY - LINK_TAIL, LINK_TAIL);
    split->tail_bytes += LINK_TAIL;
}

/* `is_kept` has a byte for each key. False when there are more or fewer URLs than keys. */
static int split_links(
    const char *keys, const char *is_kept, size_t links, Text urls, Text section, Text page, Split *split)
{
    const char *at = urls.bytes, *end = urls.bytes + urls.length;
    for (size_t number = 0; number < links; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        Text url = {at, (size_t)((stop ? stop : end) - at)};
        if (is_kept[number])
            keep_link(split, keys + number * LINK_KEY, url);
        else
            note_left_out(split, keys + number * LINK_KEY, url, section, page);
        if (!stop)
            return number + 1 == links;
        at = stop + 1;
    }
    return 0;
}

#endif
