/* The open elements of a page that is being read, the strings that are kept of it, and its text as it grows.
 *
 * There is no tree: an element matters while it is open, for what it hides, separates or links. Where a tree would be
 * built other than in the order of the bytes (13.2.6.1, foster parenting) the page is given up, as is whatever is too
 * deep or too much: somebody else reads it. */

#ifndef SKITTER_MARKUP_TREE_H
#define SKITTER_MARKUP_TREE_H

#include "tokens.h"

/* turbohtml flattens what is deeper than 512. */
enum { MOST_DEPTH = 400, MOST_FORMATTING = 64, MOST_ADOPTIONS = 100, MOST_EVENTS = 20000, MOST_PROBES = 64 };
enum { NODES_PER_ANCHOR = 64, LONGEST_ANCHOR = 200, LONGEST_TITLE = 500, READ_FOR_EACH = 4 };

/* 13.2.3.2: where a charset is looked for before parsing. */
enum { PRESCANNED = 1024 };

enum { NO_TEXT, OF_DOCUMENT, OF_MAIN, OF_ARTICLE };
enum { IN_HTML, IN_SVG, IN_MATH };

enum {
    INITIAL,
    BEFORE_HTML,
    BEFORE_HEAD,
    IN_HEAD,
    IN_HEAD_NOSCRIPT,
    AFTER_HEAD,
    IN_BODY,
    IN_TABLE,
    IN_CAPTION,
    IN_COLUMN_GROUP,
    IN_TABLE_BODY,
    IN_ROW,
    IN_CELL,
    IN_SELECT,
    AFTER_BODY,
    AFTER_AFTER_BODY,
};

typedef struct {
    uint32_t serial;
    uint16_t traits;
    uint8_t tag, within;
    uint32_t anchor_read; /* how much of an anchor's text had been read when it was opened */
    const uint8_t *name;
    size_t length;
} Element;

/* An entry of the list of active formatting elements (13.2.4.3); a marker has no tag. */
typedef struct {
    uint32_t serial;
    uint16_t place;
    uint8_t tag;
} Formatting;

/* A part of `kept`; ABSENT is what Python calls None. */
typedef struct {
    uint32_t at, length;
} Span;

enum { ABSENT = UINT32_MAX };

/* ANCHOR: href, rel, text. HEAD_LINK: href, rel, type. AREA, FRAMED: href, rel. META: name, http-equiv, content.
 * CHARSET: charset, content. */
enum { ANCHOR_SEEN, HEAD_LINK_SEEN, AREA_SEEN, IFRAME_SEEN, META_SEEN, CHARSET_SEEN };

typedef struct {
    uint8_t kind;
    bool clean; /* an anchor's href, as skitter/parse/markup/href.py cleans it */
    Span parts[3];
} Event;

typedef struct {
    Span href;
    uint32_t hash;
    uint32_t state; /* 4 times the number of the round, and: 0 free, 1 seen with nofollow only, 2 settled */
} Known;

typedef struct {
    const uint8_t *body, *at, *end;
    const uint8_t *product;
    size_t product_length;
    int mode;
    bool given_up; /* nothing that was read counts any more */
    bool table_leaves_p, quirks_unknown, drop_newline, text_open, with_anchors;

    Element stack[MOST_DEPTH];
    int depth, open_p, open_templates, adoptions;
    uint32_t serial, form; /* `form`: the serial of the form element pointer, 0 for none */
    Formatting formatting[MOST_FORMATTING];
    int formatted;

    int region;                       /* which text is wanted */
    int root_depth, silent_depth;     /* the depth of what the text is of, and of what is left out of it; 0 for none */
    int verbatim;                     /* how many open elements keep white space */
    int gap;
    int mains, articles, headers;
    Bytes text;

    Bytes kept, scratch;
    Span title, base, lang, xml_lang;
    Event *events;
    size_t event_count, event_room;
    Known *known;
    size_t known_count, known_room;
    uint32_t round; /* counts pages; states of other rounds mean nothing, which spares clearing `known` for each page */
    int anchor_depth, anchor_nodes; /* of the anchor whose text is being read; 0 for none */
    size_t anchor_event;
    bool distinct; /* of no two anchors the href is the same once it is clean, and all may be followed */
    Bytes anchor_text;
    size_t charsets_in_metas;
} Page;

static inline void give_up(Page *page)
{
    page->given_up = true;
}

/* The text. Its twin is skitter/parse/text.py. */

static inline bool is_silent(const Page *page)
{
    return !page->root_depth || page->silent_depth;
}

static inline void leave_gap(Page *page, int gap)
{
    if (gap > page->gap && !is_silent(page))
        page->gap = gap;
}

static void write_gap(Page *page)
{
    Bytes *text = &page->text;
    int gap = page->gap;
    page->gap = 0;
    if (gap && text->used && !(gap == BLOCK && text->at[text->used - 1] == '\n'))
        text->at[text->used++] = (uint8_t)(gap == BLOCK ? '\n' : gap == CELL ? '\t' : ' ');
}

/* Words with one space between them; begins and ends with one. `out` has room for as much and LANES. */
static uint8_t *write_words(const uint8_t *from, const uint8_t *end, uint8_t *out)
{
    bool space = false;
    while (from < end) {
        size_t count = end - from < LANES ? (size_t)(end - from) : LANES;
        Lanes lanes = lanes_at(from);
        uint32_t white = among_first(at_most(lanes, ' '), count), again = white & (white << 1 | space);
        put_lanes(out, raised(lanes, ' '));
        if (again) {
            out += first_of(again);
            from = skip_white(from + first_of(again), end);
            space = true;
            continue;
        }
        space = white >> (count - 1) & 1;
        from += count;
        out += count;
    }
    return out;
}

static void write_text(Page *page, const uint8_t *from, size_t length)
{
    Bytes *text = &page->text;
    if (!make_room(text, length + 1))
        return;
    if (page->verbatim) {
        write_gap(page);
        append(text, from, length);
        return;
    }
    const uint8_t *end = from + length;
    if (is_white(*from)) {
        page->gap = page->gap ? page->gap : SPACED;
        from = skip_white(from, end);
    }
    if (from == end)
        return;
    write_gap(page);
    if (is_white(end[-1]))
        page->gap = SPACED;
    while (is_white(end[-1]))
        end--;
    text->used = (size_t)(write_words(from, end, text->at + text->used) - text->at);
}

static bool is_furniture(const Page *page, int traits)
{
    return traits & (FURNITURE | HIDDEN) || (traits & BANNER && page->region == OF_DOCUMENT);
}

static void enter_text(Page *page, const Element *opened)
{
    bool is_root = (page->region == OF_DOCUMENT && opened->tag == HTML) ||
                   (page->region == OF_MAIN && opened->tag == MAIN && page->mains == 1) ||
                   (page->region == OF_ARTICLE && opened->tag == ARTICLE && page->articles == 1);
    if (is_root && opened->within == IN_HTML && !page->open_templates) {
        page->root_depth = page->depth;
        if (page->verbatim) /* by an element around the root, which the text does not know */
            give_up(page);
        /* a role of the root itself is furniture only where it is the whole document */
        if (page->region == OF_DOCUMENT && opened->traits & FURNITURE)
            page->silent_depth = page->depth;
        return;
    }
    leave_gap(page, opened->traits & GAP);
    if (!is_silent(page) && is_furniture(page, opened->traits))
        page->silent_depth = page->depth;
}

static void leave_text(Page *page, const Element *closed)
{
    int depth = page->depth + 1; /* of what was closed */
    if (page->silent_depth == depth)
        page->silent_depth = 0;
    if (page->root_depth == depth) {
        page->root_depth = 0;
        page->region = NO_TEXT;
    }
    leave_gap(page, closed->traits & GAP);
}

/* Strings that are kept. */

static Span keep(Page *page, const uint8_t *from, size_t length)
{
    uint32_t at = (uint32_t)page->kept.used;
    return append(&page->kept, from, length) ? (Span){at, (uint32_t)length} : (Span){0, ABSENT};
}

static Span keep_value(Page *page, const Tag *tag, int attribute)
{
    if (!has(tag, attribute))
        return (Span){0, ABSENT};
    Value value = tag->values[attribute];
    if (!contains(value.at, value.length, '&'))
        return keep(page, value.at, value.length);
    bool odd = false;
    size_t before = page->kept.used;
    append_resolved(&page->kept, value.at, value.length, true, &odd);
    if (odd)
        give_up(page);
    return (Span){(uint32_t)before, (uint32_t)(page->kept.used - before)};
}

static Event *add_event(Page *page, int kind)
{
    if (page->event_count == page->event_room) {
        size_t room = page->event_room ? page->event_room * 2 : 256;
        Event *grown = room > MOST_EVENTS * 2 ? NULL : realloc(page->events, room * sizeof *grown);
        if (!grown) {
            give_up(page);
            return NULL;
        }
        page->events = grown;
        page->event_room = room;
    }
    Event *event = &page->events[page->event_count++];
    event->kind = (uint8_t)kind;
    for (int i = 0; i < 3; i++)
        event->parts[i] = (Span){0, ABSENT};
    return event;
}

/* White space as Python's str.split sees it: its length in bytes, 0 when there is none. */
static size_t unicode_white(const uint8_t *at, const uint8_t *end)
{
    if (is_white(*at))
        return 1;
    if (*at < 0xC2 || end - at < 2)
        return 0;
    if (*at == 0xC2)
        return at[1] == 0x85 || at[1] == 0xA0 ? 2 : 0;
    if (end - at < 3)
        return 0;
    uint32_t code = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    bool white = code == 0xE19A80 || (code >= 0xE28080 && code <= 0xE2808A) || code == 0xE280A8 || code == 0xE280A9 ||
                 code == 0xE280AF || code == 0xE2819F || code == 0xE38080;
    return white ? 3 : 0;
}

static inline bool starts_character(uint8_t byte)
{
    return (byte & 0xC0) != 0x80;
}

/* ASCII in words with one space between them. */
static bool is_tidy(const uint8_t *from, size_t length)
{
    uint32_t before = 1; /* a space at the beginning is one too many */
    for (; length; from += LANES, length -= LANES) {
        Lanes lanes = lanes_at(from);
        uint32_t white = at_most(lanes, ' ');
        if (among_first((white & (white << 1 | before)) | (white ^ equal_to(lanes, ' ')) | above_ascii(lanes), length))
            return false;
        if (length <= LANES)
            return !(white >> (length - 1) & 1);
        before = white >> (LANES - 1) & 1;
    }
    return true;
}

/* At most `most` characters of words with one space between them. */
static Span keep_words(Page *page, const uint8_t *from, size_t length, size_t most)
{
    if (length <= most && is_tidy(from, length))
        return keep(page, from, length);
    const uint8_t *end = from + length;
    size_t before = page->kept.used, characters = 0;
    bool space = false;
    if (!make_room(&page->kept, length + 1))
        return (Span){0, ABSENT};
    uint8_t *out = page->kept.at + before;
    while (from < end) {
        size_t white = unicode_white(from, end);
        if (white) {
            space = characters > 0;
            from += white;
            continue;
        }
        if (space && characters < most) {
            *out++ = ' ';
            characters++;
        }
        space = false;
        if (characters == most)
            break;
        do
            *out++ = *from++;
        while (from < end && !starts_character(*from));
        characters++;
    }
    page->kept.used = (size_t)(out - page->kept.at);
    return (Span){(uint32_t)before, (uint32_t)(page->kept.used - before)};
}

/* The first `most` characters, in bytes. */
static size_t bytes_of(const uint8_t *from, size_t length, size_t most)
{
    if (length <= most)
        return length;
    for (size_t at = 0; at < length; at++)
        if (starts_character(from[at]) && most-- == 0)
            return at;
    return length;
}

static void read_anchor_text(Page *page, const uint8_t *from, size_t length)
{
    if (!page->text_open)
        page->anchor_nodes++;
    if (page->anchor_nodes > NODES_PER_ANCHOR || page->anchor_text.used >= READ_FOR_EACH * LONGEST_ANCHOR * 4)
        return;
    append(&page->anchor_text, from, bytes_of(from, length, READ_FOR_EACH * LONGEST_ANCHOR));
}

static void finish_anchor(Page *page)
{
    Bytes *text = &page->anchor_text;
    size_t length = bytes_of(text->at, text->used, READ_FOR_EACH * LONGEST_ANCHOR);
    page->events[page->anchor_event].parts[2] = keep_words(page, text->at, length, LONGEST_ANCHOR);
    page->anchor_depth = 0;
    text->used = 0;
}

/* Nodes come and go. */

static inline void count_node(Page *page)
{
    page->anchor_nodes++;
    page->text_open = false;
}

static void insert_text(Page *page, const uint8_t *from, size_t length)
{
    if (!length)
        return;
    if (page->anchor_depth)
        read_anchor_text(page, from, length);
    page->text_open = true;
    if (!is_silent(page))
        write_text(page, from, length);
}

static bool has_furniture_role(Page *page, const Tag *tag)
{
    static const char *const roles[] = {"navigation", "banner", "contentinfo", "search", "dialog", "complementary"};
    Value role = tag->values[ROLE];
    if (contains(role.at, role.length, '&'))
        give_up(page);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (role.length == strlen(roles[i]) && memcmp(role.at, roles[i], role.length) == 0)
            return true;
    return false;
}

static void count_landmark(Page *page, int tag)
{
    page->mains += tag == MAIN;
    page->articles += tag == ARTICLE;
}

/* Opens an element; `said` is its start tag, NULL when it is implied. */
static void push_as(Page *page, int tag, int traits, const Tag *said, int within)
{
    if (page->depth == MOST_DEPTH) {
        give_up(page);
        return;
    }
    Element *opened = &page->stack[page->depth++];
    *opened = (Element){++page->serial, (uint16_t)traits, (uint8_t)tag, (uint8_t)within,
        (uint32_t)page->anchor_text.used, NULL, 0};
    if (said) {
        opened->name = said->name;
        opened->length = said->length;
        if (has(said, ROLE) && has_furniture_role(page, said)) {
            opened->traits |= FURNITURE;
            if (opened->traits & FORMATTING) /* it may be opened again by itself */
                give_up(page);
        }
    }
    page->open_p += tag == P;
    page->open_templates += tag == TEMPLATE;
    page->verbatim += (opened->traits & VERBATIM) != 0;
    count_node(page);
    if (within == IN_HTML && !page->open_templates)
        count_landmark(page, tag);
    if (opened->traits & (GAP | FURNITURE | HIDDEN | BANNER))
        enter_text(page, opened);
}

static void push(Page *page, int tag, const Tag *said)
{
    push_as(page, tag, traits_of[tag], said, IN_HTML);
}

static void pop_one(Page *page)
{
    const Element *closed = &page->stack[--page->depth];
    page->text_open = false;
    page->open_p -= closed->tag == P;
    page->open_templates -= closed->tag == TEMPLATE;
    page->verbatim -= (closed->traits & VERBATIM) != 0;
    if (page->anchor_depth == page->depth + 1)
        finish_anchor(page);
    if (closed->traits & (GAP | FURNITURE | HIDDEN | BANNER))
        leave_text(page, closed);
}

/* A form whose end tag came too early: off the stack by the standard, but what is in it is in it still. */
static bool is_ghost(const Element *element)
{
    return element->tag == OTHER && !element->length;
}

static void pop(Page *page)
{
    do
        pop_one(page);
    while (page->depth && is_ghost(&page->stack[page->depth - 1]));
}

/* An element that has no content. */
static void insert_void(Page *page, int tag)
{
    count_node(page);
    leave_gap(page, traits_of[tag] & GAP);
}

static void pop_to(Page *page, int depth)
{
    while (page->depth > depth)
        pop(page);
}

#endif
