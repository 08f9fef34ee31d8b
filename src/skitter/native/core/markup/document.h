/* A whole page of HTML, from the bytes as they came to what is kept of it. Plain C.
 *
 * The bytes are copied first: the rest of the pass relies on LANES bytes behind the end that may be read, and on bytes
 * that are UTF-8 without carriage returns or other controls. A page that is something else is left to the tree parser. */

#ifndef SKITTER_MARKUP_DOCUMENT_H
#define SKITTER_MARKUP_DOCUMENT_H

#include "../utf8.h"
#include "modes.h"

enum { LARGEST = 64 << 20, KEPT_ROOM = 1 << 20, KEPT_ENTRIES = 4096 };

/* What the caller asks for. `product` is the crawler's name in lower case: meta elements may address it. */
typedef struct {
    bool text, anchors;
    const uint8_t *product;
    size_t product_length;
} Wanted;

typedef enum { IS_READ, IS_FOR_TREE, IS_OUT_OF_MEMORY } Reading;

typedef struct {
    Page page;
    Bytes body; /* a copy of the bytes, as the pass needs them */
    bool is_ascii;
    bool has_stray_charset; /* a charset at the beginning that no meta element declares */
} Document;

typedef struct {
    bool odd, high;
} Census;

/* Copies one byte. A carriage return becomes a newline, unless a newline follows. */
static void copy_byte(Bytes *body, const uint8_t *at, const uint8_t *end, Census *census)
{
    uint8_t byte = *at;
    census->odd |= byte < ' ' && byte != '\r' && !(classes[byte] & WHITE);
    census->high |= byte >= 0x80;
    if (byte != '\r')
        body->at[body->used++] = byte;
    else if (at + 1 == end || at[1] != '\n')
        body->at[body->used++] = '\n';
}

/* Most lanes have no other control than newlines, and are copied as they are. */
static Census copy_body(Bytes *body, const uint8_t *from, size_t length)
{
    Census census = {false, false};
    const uint8_t *end = from + length;
    uint32_t high = 0;
    body->used = 0;
    if (!make_room(body, length))
        return census;
    while (end - from >= LANES) {
        Lanes lanes = lanes_at(from);
        if (at_most(lanes, ' ' - 1) != equal_to(lanes, '\n')) {
            for (const uint8_t *until = from + LANES; from < until; from++)
                copy_byte(body, from, end, &census);
            continue;
        }
        high |= above_ascii(lanes);
        put_lanes(body->at + body->used, lanes);
        body->used += LANES;
        from += LANES;
    }
    for (; from < end; from++)
        copy_byte(body, from, end, &census);
    census.high |= high != 0;
    memset(body->at + body->used, 0, LANES);
    return census;
}

/* How often a name of at least three bytes is in the body. Stops counting at `enough`. */
static size_t count_name(const Bytes *body, const char *name, size_t enough)
{
    const uint8_t *end = body->at + body->used;
    size_t found = 0;
    for (const uint8_t *at = body->at; end - at > 2 && found < enough; at += LANES) {
        uint32_t begin = equal_to(lanes_at(at), (uint8_t)name[0]) & equal_to(lanes_at(at + 1), (uint8_t)name[1]) &
                         equal_to(lanes_at(at + 2), (uint8_t)name[2]);
        for (; begin; begin &= begin - 1)
            found += begins(at + first_of(begin), end, name);
    }
    return found;
}

static void begin_page(Page *page, const Bytes *body, int region, const Wanted *wanted)
{
    page->body = body->at;
    page->end = body->at + body->used;
    page->product = wanted->product;
    page->product_length = wanted->product_length;
    page->mode = page->depth = page->open_p = page->formatted = page->adoptions = 0;
    page->open_templates = 0;
    page->given_up = page->quirks_unknown = page->drop_newline = page->text_open = false;
    page->with_anchors = wanted->anchors;
    page->serial = page->form = 0;
    page->region = region;
    page->root_depth = page->silent_depth = page->verbatim = page->gap = page->mains = page->articles = 0;
    page->text.used = page->kept.used = page->scratch.used = page->anchor_text.used = 0;
    page->event_count = page->known_count = page->charsets_in_metas = 0;
    page->anchor_depth = page->anchor_nodes = 0;
    page->round = (page->round + 1) & UINT32_MAX >> 2;
    if (!page->round && page->known) /* the counter began anew: old entries could be taken for this page's */
        memset(page->known, 0, page->known_room * sizeof *page->known);
}

/* The text is of the one `main`, else of the one `article`, else of the document. */
static int region_of(size_t mains, size_t articles)
{
    return mains == 1 ? OF_MAIN : articles == 1 ? OF_ARTICLE : OF_DOCUMENT;
}

/* Which region the text will be of is guessed from the bytes; a second pass follows where the guess was wrong. */
static void read_with_text(Document *document, const Wanted *wanted)
{
    Page *page = &document->page;
    /* Hardly a page has two: where the first stands, the rest is not searched. */
    size_t mains = count_name(&document->body, "<main", 1);
    int guessed = region_of(mains, mains ? 0 : count_name(&document->body, "<article", 2));
    begin_page(page, &document->body, guessed, wanted);
    read_markup_page(page);
    int region = region_of((size_t)page->mains, (size_t)page->articles);
    if (page->given_up || region == guessed)
        return;
    begin_page(page, &document->body, region, wanted);
    read_markup_page(page);
}

/* Reads `length` bytes, of which none behind the end is looked at. Afterwards `document->page` has what was found. */
static Reading read_document(Document *document, const uint8_t *body, size_t length, const Wanted *wanted)
{
    size_t skipped = begins(body, body + length, "\xEF\xBB\xBF") ? 3 : 0; /* a byte order mark */
    body += skipped;
    length -= skipped;
    if (length > LARGEST)
        return IS_FOR_TREE;
    Census census = copy_body(&document->body, body, length);
    if (document->body.failed)
        return IS_OUT_OF_MEMORY;
    if (census.odd || (census.high && !is_utf8(body, length)))
        return IS_FOR_TREE;
    size_t charsets = count_charsets(body, body + (length < PRESCANNED ? length : PRESCANNED));
    if (wanted->text) {
        read_with_text(document, wanted);
    } else {
        begin_page(&document->page, &document->body, NO_TEXT, wanted);
        read_markup_page(&document->page);
    }
    if (has_failed(&document->page))
        return IS_OUT_OF_MEMORY;
    document->is_ascii = !census.high;
    document->has_stray_charset = charsets > document->page.charsets_in_metas;
    return document->page.given_up ? IS_FOR_TREE : IS_READ;
}

static void release_bytes(Bytes *bytes)
{
    if (bytes->room <= KEPT_ROOM && !bytes->failed)
        return;
    free(bytes->at);
    *bytes = (Bytes){0};
}

/* Gives back what a large page took. Small buffers are kept for the next page. */
static void release_document(Document *document)
{
    Page *page = &document->page;
    release_bytes(&page->text);
    release_bytes(&page->kept);
    release_bytes(&page->scratch);
    release_bytes(&page->anchor_text);
    release_bytes(&document->body);
    if (page->known_room > KEPT_ENTRIES) {
        free(page->known);
        page->known = NULL;
        page->known_room = 0;
    }
    if (page->event_room > KEPT_ENTRIES) {
        free(page->events);
        page->events = NULL;
        page->event_room = 0;
    }
}

#endif
