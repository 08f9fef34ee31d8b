/* The insertion modes before and after the body (HTML 13.2.6.4), and the one pass over a page: which token it is, and
 * who is asked about it. */

#ifndef SKITTER_MARKUP_MODES_H
#define SKITTER_MARKUP_MODES_H

#include "tables.h"

/* Before the body. */

static bool open_implied(Page *page, int tag, int mode)
{
    push(page, tag, NULL);
    page->mode = mode;
    return true;
}

static bool leave_head(Page *page)
{
    pop(page);
    page->mode = AFTER_HEAD;
    return true;
}

static bool start_before_head(Page *page, const Tag *tag)
{
    if (page->mode == INITIAL || page->mode == BEFORE_HTML) {
        if (tag->tag != HTML)
            return open_implied(page, HTML, BEFORE_HEAD);
        note_root(page, tag);
        push(page, HTML, tag);
        page->mode = BEFORE_HEAD;
        return false;
    }
    if (tag->tag == HTML) {
        note_root(page, tag);
        return false;
    }
    push(page, HEAD, tag->tag == HEAD ? tag : NULL);
    page->mode = IN_HEAD;
    return tag->tag != HEAD;
}

static bool start_in_head(Page *page, const Tag *tag)
{
    if (start_of_head(page, tag))
        return false;
    switch (tag->tag) {
    case HTML:
        note_root(page, tag);
        return false;
    case NOSCRIPT:
        push(page, NOSCRIPT, tag);
        page->mode = IN_HEAD_NOSCRIPT;
        return false;
    case HEAD:
        return false;
    }
    return leave_head(page);
}

static bool start_in_head_noscript(Page *page, const Tag *tag)
{
    bool allowed = tag->tag == BASEFONT || tag->tag == BGSOUND || tag->tag == LINK || tag->tag == META ||
                   tag->tag == NOFRAMES || tag->tag == STYLE;
    if (!allowed || !start_of_head(page, tag))
        give_up(page);
    return false;
}

static bool start_after_head(Page *page, const Tag *tag)
{
    if (tag->tag == HTML)
        note_root(page, tag);
    if (tag->tag == FRAMESET)
        give_up(page);
    if (tag->tag == HTML || tag->tag == HEAD || start_of_head(page, tag))
        return false;
    push(page, BODY, tag->tag == BODY ? tag : NULL);
    page->mode = IN_BODY;
    return tag->tag != BODY;
}

/* Before the body these four end tags do what any other token does, and the others nothing. */
static bool end_before_body(Page *page, const Tag *tag)
{
    if (page->mode == IN_HEAD && tag->tag == HEAD) {
        leave_head(page);
        return false;
    }
    if (page->mode == IN_HEAD_NOSCRIPT) {
        if (tag->tag == NOSCRIPT) {
            pop(page);
            page->mode = IN_HEAD;
        } else {
            give_up(page);
        }
        return false;
    }
    bool acts = tag->tag == BODY || tag->tag == HTML || tag->tag == BR ||
                (tag->tag == HEAD && page->mode < IN_HEAD);
    if (!acts)
        return false;
    switch (page->mode) {
    case INITIAL:
    case BEFORE_HTML:
        return open_implied(page, HTML, BEFORE_HEAD);
    case BEFORE_HEAD:
        return open_implied(page, HEAD, IN_HEAD);
    case IN_HEAD:
        return leave_head(page);
    }
    return open_implied(page, BODY, IN_BODY);
}

/* Tokens. */

static bool start_in_mode(Page *page, const Tag *tag)
{
    bool is_part = traits_of[tag->tag] & TABLE_PART;
    switch (page->mode) {
    case INITIAL:
    case BEFORE_HTML:
    case BEFORE_HEAD:
        return start_before_head(page, tag);
    case IN_HEAD:
        return start_in_head(page, tag);
    case IN_HEAD_NOSCRIPT:
        return start_in_head_noscript(page, tag);
    case AFTER_HEAD:
        return start_after_head(page, tag);
    case IN_TABLE:
        return start_in_table(page, tag);
    case IN_CAPTION:
        if (is_part)
            return close_caption(page);
        break;
    case IN_COLUMN_GROUP:
        return start_in_column_group(page, tag);
    case IN_TABLE_BODY:
        return start_in_section(page, tag);
    case IN_ROW:
        return start_in_row(page, tag);
    case IN_CELL:
        if (is_part)
            return close_cell(page);
        break;
    case IN_SELECT:
        start_in_select(page, tag);
        return false;
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
        if (tag->tag == HTML)
            break;
        page->mode = IN_BODY;
        return true;
    }
    start_in_body(page, tag);
    return false;
}

static bool end_in_mode(Page *page, const Tag *tag)
{
    switch (page->mode) {
    case IN_TABLE:
        return end_in_table(page, tag);
    case IN_CAPTION:
        return end_in_caption(page, tag);
    case IN_COLUMN_GROUP:
        return end_in_column_group(page, tag);
    case IN_TABLE_BODY:
        return end_in_section(page, tag);
    case IN_ROW:
        return end_in_row(page, tag);
    case IN_CELL:
        return end_in_cell(page, tag);
    case IN_SELECT:
        end_in_select(page, tag);
        return false;
    case AFTER_BODY:
        if (tag->tag == HTML) {
            page->mode = AFTER_AFTER_BODY;
            return false;
        }
        page->mode = IN_BODY;
        return true;
    case AFTER_AFTER_BODY:
        page->mode = IN_BODY;
        return true;
    case IN_BODY:
        end_in_body(page, tag);
        return false;
    }
    return end_before_body(page, tag);
}

static bool is_foreign(const Page *page)
{
    return page->depth && top(page)->within != IN_HTML;
}

static bool has_failed(const Page *page)
{
    return page->text.failed || page->kept.failed || page->scratch.failed || page->anchor_text.failed;
}

static void read_start_tag(Page *page)
{
    if (has_failed(page)) {
        give_up(page);
        return;
    }
    Tag tag;
    tag.begin = page->at;
    const uint8_t *next = read_tag(page->at + 1, page->end, &tag);
    page->at = next ? next : page->end;
    if (!next)
        return;
    if (is_foreign(page)) {
        start_foreign(page, &tag);
        return;
    }
    while (!page->given_up && start_in_mode(page, &tag))
        ;
}

/* Most end tags close what was opened last, are written as its start tag was, and do nothing else. Gives where such a
 * one ends, NULL when it is not certain to be one. */
static const uint8_t *end_of_top(const Page *page)
{
    const Element *last = page->depth ? top(page) : NULL;
    if (!last || !last->length || last->length > 8 || last->within != IN_HTML ||
        (page->mode != IN_BODY && page->mode != IN_CELL) || page->end - page->at < 3 + (ptrdiff_t)last->length)
        return NULL;
    const uint8_t *name = page->at + 2, *behind = name + last->length;
    bool same = first_bytes(little_word(name) ^ little_word(last->name), last->length) == 0;
    bool plain = last->tag == OTHER || last->traits & (CLOSES_P | HEADING | IMPLIED | FORMATTING);
    return same && plain && *behind == '>' ? behind + 1 : NULL;
}

static bool close_top(Page *page)
{
    const uint8_t *next = end_of_top(page);
    if (!next)
        return false;
    if (!(top(page)->traits & FORMATTING))
        pop(page);
    else if (!end_last_formatting(page))
        return false;
    page->at = next;
    return true;
}

static void read_end_tag(Page *page)
{
    if (close_top(page))
        return;
    Tag tag;
    tag.begin = page->at;
    const uint8_t *next = read_tag(page->at + 2, page->end, &tag);
    page->at = next ? next : page->end;
    if (!next || (is_foreign(page) && end_foreign(page, &tag)))
        return;
    while (!page->given_up && end_in_mode(page, &tag))
        ;
}

static void text_in_body(Page *page, const uint8_t *from, size_t length)
{
    if (!is_foreign(page))
        reconstruct(page);
    insert_text(page, from, length);
}

/* White space before the body is nothing to us; anything else begins it. */
static void begin_body(Page *page)
{
    if (page->mode == IN_HEAD_NOSCRIPT)
        give_up(page);
    if (page->mode < BEFORE_HEAD)
        push(page, HTML, NULL);
    if (page->mode < IN_HEAD)
        push(page, HEAD, NULL);
    if (page->mode < AFTER_HEAD)
        pop(page);
    push(page, BODY, NULL);
    page->mode = IN_BODY;
}

static void take_text(Page *page, const uint8_t *from, size_t length)
{
    if (page->drop_newline)
        drop_first_newline(&from, &length);
    page->drop_newline = false;
    if (!length)
        return;
    if (page->mode == IN_BODY || page->mode == IN_CELL) {
        text_in_body(page, from, length);
        return;
    }
    const uint8_t *end = from + length, *word = skip_white(from, end);
    switch (page->mode) {
    case INITIAL:
    case BEFORE_HTML:
    case BEFORE_HEAD:
    case IN_HEAD:
    case IN_HEAD_NOSCRIPT:
    case AFTER_HEAD:
        if (word == end)
            return;
        begin_body(page);
        from = word;
        break;
    case IN_TABLE:
    case IN_COLUMN_GROUP:
    case IN_TABLE_BODY:
    case IN_ROW:
        if (word < end)
            give_up(page);
        insert_text(page, from, length);
        return;
    case IN_SELECT:
        insert_text(page, from, length);
        return;
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
        if (word < end)
            page->mode = IN_BODY;
        break;
    }
    text_in_body(page, from, (size_t)(end - from));
}

static void read_text(Page *page)
{
    const uint8_t *from = page->at;
    bool refers;
    page->at = find_end(from, page->end, '<', &refers);
    size_t length = (size_t)(page->at - from);
    if (refers)
        resolve(page, &from, &length);
    take_text(page, from, length);
}

static void note_comment(Page *page)
{
    page->drop_newline = false;
    if (page->mode > BEFORE_HTML && page->mode != AFTER_BODY && page->mode != AFTER_AFTER_BODY)
        count_node(page);
}

/* 13.2.6.4.1, as far as it is plain. A doctype ends at its first `>`, even within quotes. */
static void read_doctype(Page *page)
{
    static const char xhtml[] = " html public \"-//w3c//dtd xhtml 1.";
    const uint8_t *from = page->at + 9;
    page->at = after(from, page->end, '>');
    page->drop_newline = false;
    if (page->mode != INITIAL)
        return;
    page->mode = BEFORE_HTML;
    const uint8_t *end = page->at;
    page->table_leaves_p = false;
    size_t quotes = 0;
    for (const uint8_t *at = from; at < end; at++)
        quotes += *at == '"';
    if ((size_t)(end - from) > sizeof xhtml && is_named(from, sizeof xhtml - 1, xhtml) && quotes == 4)
        return;
    const uint8_t *name = skip_white(from, end);
    const uint8_t *behind = (size_t)(end - name) > 4 ? skip_white(name + 4, end) : end;
    page->quirks_unknown = name == from || behind == end || !is_named(name, 4, "html") || *behind != '>';
}

static void read_declaration(Page *page)
{
    const uint8_t *at = page->at, *end = page->end;
    if (begins(at, end, "<!--")) {
        page->at = after_comment(at + 4, end);
        note_comment(page);
    } else if (end - at >= 9 && is_named(at + 2, 7, "doctype")) {
        read_doctype(page);
    } else if (is_foreign(page) && begins(at, end, "<![CDATA[")) {
        give_up(page);
    } else {
        page->at = after(at + 2, end, '>');
        note_comment(page);
    }
}

static void read_markup(Page *page)
{
    const uint8_t *at = page->at;
    uint8_t second = page->end - at > 1 ? at[1] : 0;
    uint8_t third = page->end - at > 2 ? at[2] : 0;
    if (classes[second] & LETTER) {
        page->drop_newline = false;
        read_start_tag(page);
    } else if (second == '/' && classes[third] & LETTER) {
        page->drop_newline = false;
        read_end_tag(page);
    } else if (second == '!') {
        read_declaration(page);
    } else if (second == '/' && third == '>') {
        page->at += 3;
    } else if (second == '?' || (second == '/' && third)) {
        page->at = after(at + 1 + (second == '/'), page->end, '>');
        note_comment(page);
    } else {
        size_t length = second == '/' ? 2 : 1;
        page->at += length;
        take_text(page, at, length);
    }
}

/* Reads `page->body` from its beginning. Afterwards it is whole, given up, or out of memory (`has_failed`). */
static void read_markup_page(Page *page)
{
    page->at = page->body;
    page->table_leaves_p = true; /* no doctype: quirks */
    page->distinct = true;
    page->title.length = page->base.length = page->lang.length = page->xml_lang.length = ABSENT;
    while (page->at < page->end && !page->given_up) {
        if (*page->at != '<')
            read_text(page);
        if (page->at < page->end && !page->given_up)
            read_markup(page);
    }
    pop_to(page, 0);
}

#endif
