/* What is kept of a page besides its text: links, metas, the base and the language, from the tags as they come.
 * Anchors are most of it, and most of them repeat an href. */

#ifndef SKITTER_MARKUP_LINKS_H
#define SKITTER_MARKUP_LINKS_H

#include "tree.h"

/* Anchors. */

static uint32_t hash_of(const uint8_t *from, size_t length)
{
    uint64_t hash = length * 0x9E3779B97F4A7C15u;
    for (; length >= 8; from += 8, length -= 8) {
        hash = (hash ^ little_word(from)) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
    }
    hash = (hash ^ first_bytes(little_word(from), length)) * 0x94D049BB133111EBu;
    return (uint32_t)(hash >> 32);
}

enum { FREE, ONLY_NOFOLLOW, SETTLED };

static inline uint32_t state_of(const Page *page, const Known *known)
{
    return known->state >> 2 == page->round ? known->state & 3 : FREE;
}

static bool grow_known(Page *page)
{
    size_t room = page->known_room ? page->known_room * 4 : 256;
    Known *grown = calloc(room, sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < page->known_room; i++) {
        if (state_of(page, &page->known[i]) == FREE)
            continue;
        size_t place = page->known[i].hash & (room - 1);
        while (grown[place].state)
            place = (place + 1) & (room - 1);
        grown[place] = page->known[i];
    }
    free(page->known);
    page->known = grown;
    page->known_room = room;
    return true;
}

/* The place of an href among those known, or a free one; NULL where somebody made too many of one hash. */
static Known *place_of(Page *page, const uint8_t *href, size_t length)
{
    if (page->known_count * 2 >= page->known_room && !grow_known(page))
        return NULL;
    uint32_t hash = hash_of(href, length);
    for (size_t probe = 0; probe < MOST_PROBES; probe++) {
        Known *known = &page->known[(hash + probe) & (page->known_room - 1)];
        if (state_of(page, known) == FREE) {
            known->hash = hash;
            return known;
        }
        if (known->hash == hash && known->href.length == length &&
            memcmp(page->kept.at + known->href.at, href, length) == 0)
            return known;
    }
    return NULL;
}

static bool is_ascii(const uint8_t *from, size_t length)
{
    uint32_t high = 0;
    for (size_t at = 0; at < length; at += LANES)
        high |= among_first(above_ascii(lanes_at(from + at)), length - at);
    return !high;
}

static bool has_word(const uint8_t *from, size_t length, const char *word)
{
    const uint8_t *end = from + length;
    while (from < end) {
        from = skip_white(from, end);
        const uint8_t *begin = from;
        while (from < end && !is_white(*from))
            from++;
        if (is_named(begin, (size_t)(from - begin), word))
            return true;
    }
    return false;
}

/* Gives the page up unless the value is ASCII without references: such a rel is split and lowered here as Python would. */
static bool require_plain(Page *page, const Tag *tag, int attribute)
{
    Value value = tag->values[attribute];
    if (is_ascii(value.at, value.length) && !contains(value.at, value.length, '&'))
        return true;
    give_up(page);
    return false;
}

/* Notes an href. True when it says nothing that an earlier anchor did not: most do, and cost no more than this. */
static bool settle_href(Page *page, const uint8_t *href, size_t length, bool nofollow, Known **place)
{
    *place = place_of(page, href, length);
    if (!*place) {
        give_up(page);
        return true;
    }
    uint32_t state = state_of(page, *place);
    if (state == SETTLED || (state == ONLY_NOFOLLOW && nofollow))
        return true;
    page->known_count += state == FREE;
    (*place)->state = page->round << 2 | (nofollow ? ONLY_NOFOLLOW : SETTLED);
    return false;
}

enum { FOLLOWED, NOT_FOLLOWED, UNCERTAIN };

/* Whether `clean_href` of skitter/parse/markup/href.py leaves it as it is, or drops it for its scheme. */
static int cleanness(const uint8_t *href, size_t length)
{
    for (size_t at = 0; at < length; at += LANES) {
        Lanes lanes = lanes_at(href + at);
        if (among_first(at_most(lanes, ' ') | (at_most(lanes, '~') ^ 0xFFFF) | equal_to(lanes, '#'), length - at))
            return UNCERTAIN;
    }
    const uint8_t *colon = find(href, href + length, ':');
    size_t scheme = colon ? (size_t)(colon - href) : 0;
    if (!scheme || !(classes[href[0]] & LETTER) || is_named(href, scheme, "http") || is_named(href, scheme, "https"))
        return FOLLOWED;
    for (size_t i = 1; i < scheme; i++)
        if (!(classes[href[i]] & (LETTER | DIGIT)) && href[i] != '+' && href[i] != '.' && href[i] != '-')
            return FOLLOWED;
    return NOT_FOLLOWED;
}

/* In lower case, with one space between its words; it is known to be ASCII. */
static Span keep_rel(Page *page, const Tag *tag)
{
    if (!has(tag, REL))
        return (Span){0, ABSENT};
    Value rel = tag->values[REL];
    Span span = keep_words(page, rel.at, rel.length, rel.length);
    for (uint32_t i = 0; span.length != ABSENT && i < span.length; i++)
        page->kept.at[span.at + i] = lowered(page->kept.at[span.at + i]);
    return span;
}

/* Notes the anchor unless it is settled; its element is the next to be opened. Gives whether its text is wanted. */
static bool note_anchor(Page *page, const Tag *tag)
{
    int attribute = has(tag, HREF) ? HREF : XLINK_HREF;
    if (page->open_templates || !has(tag, attribute) || !tag->values[attribute].length)
        return false;
    bool nofollow = false;
    if (has(tag, REL)) {
        if (!require_plain(page, tag, REL))
            return false;
        nofollow = has_word(tag->values[REL].at, tag->values[REL].length, "nofollow");
    }
    size_t before = page->kept.used;
    Value value = tag->values[attribute];
    Span href = {0, ABSENT};
    bool refers;
    size_t length = (size_t)(find_end(value.at, value.at + value.length, '#', &refers) - value.at);
    if (refers) {
        href = keep_value(page, tag, attribute);
        value = (Value){page->kept.at + href.at, href.length};
        length = (size_t)(find_end(value.at, value.at + value.length, '#', &refers) - value.at);
    }
    /* the fragment is cut off here, unless it ends with a space, which has to be escaped */
    if (length && length < value.length && value.at[length - 1] <= ' ')
        length = value.length;
    Known *place = NULL;
    if (page->kept.failed || page->given_up || !length || settle_href(page, value.at, length, nofollow, &place)) {
        page->kept.used = before;
        return false;
    }
    int clean = cleanness(value.at, length);
    if (href.length == ABSENT)
        href = keep(page, value.at, length);
    href.length = (uint32_t)length;
    place->href = href;
    if (clean == NOT_FOLLOWED)
        return false;
    page->distinct &= clean == FOLLOWED && !nofollow;
    Event *event = add_event(page, ANCHOR_SEEN);
    if (!event)
        return false;
    event->parts[0] = href;
    event->clean = clean == FOLLOWED;
    event->parts[1] = keep_rel(page, tag);
    return page->with_anchors;
}

static void read_anchor(Page *page)
{
    if (page->anchor_depth) {
        give_up(page);
        return;
    }
    page->anchor_depth = page->depth;
    page->anchor_event = page->event_count - 1;
    page->anchor_nodes = 0;
}

/* What is kept of elements. */

static bool is_value(const Tag *tag, int attribute, const uint8_t *said, size_t length)
{
    const uint8_t *at = tag->values[attribute].at, *end = at + tag->values[attribute].length;
    at = skip_white(at, end);
    while (end > at && is_white(end[-1]))
        end--;
    if ((size_t)(end - at) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (lowered(at[i]) != said[i])
            return false;
    return true;
}

static bool says(const Tag *tag, int attribute, const char *said)
{
    return is_value(tag, attribute, (const uint8_t *)said, strlen(said));
}

static bool is_wanted_meta(Page *page, const Tag *tag)
{
    bool wanted = false;
    if (has(tag, NAME))
        wanted |= says(tag, NAME, "robots") || is_value(tag, NAME, page->product, page->product_length) ||
                  !is_ascii(tag->values[NAME].at, tag->values[NAME].length) ||
                  contains(tag->values[NAME].at, tag->values[NAME].length, '&');
    if (has(tag, HTTP_EQUIV) && require_plain(page, tag, HTTP_EQUIV))
        wanted |= says(tag, HTTP_EQUIV, "refresh") || says(tag, HTTP_EQUIV, "content-language");
    return wanted;
}

static bool names_charset(const uint8_t *at, const uint8_t *end)
{
    return end - at >= 7 && is_named(at, 7, "charset");
}

/* Reads nothing behind the end. */
static size_t count_charsets(const uint8_t *at, const uint8_t *end)
{
    size_t found = 0;
    for (; end - at > LANES; at += LANES) {
        uint32_t begins = equal_to(with_bits(lanes_at(at), 0x20), 'c') & equal_to(with_bits(lanes_at(at + 1), 0x20), 'h');
        for (; begins; begins &= begins - 1)
            found += names_charset(at + first_of(begins), end);
    }
    for (; at < end; at++)
        found += names_charset(at, end);
    return found;
}

static bool declares_charset(const Tag *tag)
{
    Value equiv = tag->values[HTTP_EQUIV];
    return has(tag, CHARSET) || (has(tag, HTTP_EQUIV) && is_named(equiv.at, equiv.length, "content-type"));
}

static void note_meta(Page *page, const Tag *tag)
{
    Event *event;
    if (declares_charset(tag)) {
        if (!(event = add_event(page, CHARSET_SEEN)))
            return;
        size_t index = page->event_count - 1;
        Span charset = keep_value(page, tag, CHARSET), content = keep_value(page, tag, CONTENT);
        page->events[index].parts[0] = charset;
        page->events[index].parts[1] = content;
        const uint8_t *most = page->end - page->body > PRESCANNED ? page->body + PRESCANNED : page->end;
        page->charsets_in_metas += count_charsets(tag->begin, page->at < most ? page->at : most);
    }
    if (!page->open_templates && is_wanted_meta(page, tag) && (event = add_event(page, META_SEEN))) {
        size_t index = page->event_count - 1;
        Span parts[3] = {keep_value(page, tag, NAME), keep_value(page, tag, HTTP_EQUIV),
            keep_value(page, tag, CONTENT)};
        memcpy(page->events[index].parts, parts, sizeof parts);
    }
}

static void note_link(Page *page, const Tag *tag)
{
    if (page->open_templates || !has(tag, REL) || !require_plain(page, tag, REL))
        return;
    Value rel = tag->values[REL];
    if (!has_word(rel.at, rel.length, "next") && !has_word(rel.at, rel.length, "prev") &&
        !has_word(rel.at, rel.length, "alternate") && !has_word(rel.at, rel.length, "canonical") &&
        !has_word(rel.at, rel.length, "sitemap"))
        return;
    Event *event = add_event(page, HEAD_LINK_SEEN);
    if (!event)
        return;
    event->parts[0] = keep_value(page, tag, HREF);
    event->parts[1] = keep_value(page, tag, REL);
    event->parts[2] = keep_value(page, tag, TYPE);
}

static void note_frame(Page *page, const Tag *tag, int kind, int attribute)
{
    if (page->open_templates || !has(tag, attribute) || !tag->values[attribute].length)
        return;
    Event *event = add_event(page, kind);
    if (!event)
        return;
    event->parts[0] = keep_value(page, tag, attribute);
    event->parts[1] = keep_value(page, tag, REL);
}

/* A second html tag adds the attributes that the first had not. */
static void note_root(Page *page, const Tag *tag)
{
    if (page->lang.length == ABSENT)
        page->lang = keep_value(page, tag, LANG);
    if (page->xml_lang.length == ABSENT)
        page->xml_lang = keep_value(page, tag, XML_LANG);
    if (has(tag, ROLE) && page->depth)
        give_up(page);
}

#endif
