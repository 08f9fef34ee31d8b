/* Tree construction (HTML 13.2.6) as far as it decides which elements are open: what start and end tags do in the
 * head, in a body and in foreign content. */

#ifndef SKITTER_MARKUP_RULES_H
#define SKITTER_MARKUP_RULES_H

#include "stack.h"

/* Raw texts, in which no tag counts but their own end. */

static void resolve(Page *page, const uint8_t **from, size_t *length)
{
    bool odd = false;
    page->scratch.used = 0;
    append_resolved(&page->scratch, *from, *length, false, &odd);
    if (odd)
        give_up(page);
    *from = page->scratch.at;
    *length = page->scratch.used;
}

/* A newline right behind the start tag is not part of the text. */
static void drop_first_newline(const uint8_t **from, size_t *length)
{
    bool dropped = *length && **from == '\n';
    *from += dropped;
    *length -= dropped;
}

static void read_raw(Page *page, const Tag *tag)
{
    push(page, tag->tag, tag);
    const uint8_t *begin = page->at, *end = page->end;
    const uint8_t *finish = tag->tag == SCRIPT ? end_of_script(begin, end) : end_of_raw(begin, end, tag->tag);
    size_t length = (size_t)(finish - begin);
    page->at = finish;
    if (finish < page->end) {
        Tag end_tag;
        const uint8_t *next = read_tag(finish + 2, page->end, &end_tag);
        page->at = next ? next : page->end;
    }
    if (tag->tag == NOFRAMES && contains(begin, length, '<')) /* its links count, and it takes a parser to find them */
        give_up(page);
    if ((tag->tag == TITLE || tag->tag == TEXTAREA) && contains(begin, length, '&'))
        resolve(page, &begin, &length);
    if (tag->tag == TEXTAREA)
        drop_first_newline(&begin, &length);
    if (tag->tag == TITLE && page->title.length == ABSENT && !page->open_templates)
        page->title = keep_words(page, begin, bytes_of(begin, length, READ_FOR_EACH * LONGEST_TITLE), LONGEST_TITLE);
    insert_text(page, begin, length);
    pop(page);
}

/* Whether the tag has a name that makes its content part of the page: a declarative shadow root. Reads the tag only. */
static bool may_be_shadow(const Page *page, const Tag *tag)
{
    static const char name[] = "shadowrootmode";
    const size_t length = sizeof name - 1;
    for (const uint8_t *at = tag->begin; (size_t)(page->at - at) >= length; at++)
        if (is_named(at, length, name))
            return true;
    return false;
}

/* Of the modes within a template (13.2.6.4.22) only "in body" is known here: parts of tables are given up. Its content
 * is no part of the page: neither its text nor its links, nor its title. */
static void start_template(Page *page, const Tag *tag)
{
    if (page->anchor_depth || may_be_shadow(page, tag))
        give_up(page);
    push(page, TEMPLATE, tag);
    add_marker(page);
    page->mode = IN_BODY;
}

static bool is_odd_in_template(int tag)
{
    return tag == HTML || tag == BODY || tag == FORM || tag == FRAMESET || traits_of[tag] & TABLE_PART;
}

/* 13.2.6.4.4: elements of the head, wherever they stand. Gives whether it was one. */
static bool start_of_head(Page *page, const Tag *tag)
{
    switch (tag->tag) {
    case BASE:
        if (page->base.length == ABSENT && has(tag, HREF) && !page->open_templates)
            page->base = keep_value(page, tag, HREF);
        break;
    case BASEFONT:
    case BGSOUND:
        break;
    case LINK:
        note_link(page, tag);
        break;
    case META:
        note_meta(page, tag);
        break;
    case TITLE:
    case NOFRAMES:
    case STYLE:
    case SCRIPT:
        read_raw(page, tag);
        return true;
    case TEMPLATE:
        start_template(page, tag);
        return true;
    default:
        return false;
    }
    insert_void(page, tag->tag);
    return true;
}

/* 13.2.6.5: foreign content. */

static bool is_in(const Tag *tag, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_named(tag->name, tag->length, names[i]))
            return true;
    return false;
}

static int foreign_traits(const Tag *tag, int within)
{
    static const char *const of_math[] = {"mi", "mo", "mn", "ms", "mtext"};
    bool integrates = within == IN_SVG ? tag->tag == TITLE || is_named(tag->name, tag->length, "desc")
                                       : is_in(tag, of_math, sizeof of_math / sizeof *of_math);
    return integrates ? SPECIAL | SCOPE : 0;
}

/* A known tag would break out, or be found by its name as if it were HTML. */
static bool is_plain_foreign(const Tag *tag, int within)
{
    static const char *const odd[] = {
        "foreignobject", "annotation-xml", "mglyph", "malignmark", "span", "sub", "sup", "var"};
    if (tag->tag == OTHER)
        return !is_in(tag, odd, sizeof odd / sizeof *odd);
    if (within == IN_MATH)
        return tag->tag == A;
    return tag->tag == A || tag->tag == TITLE || tag->tag == SCRIPT || tag->tag == STYLE || tag->tag == IMAGE ||
           tag->tag == SVG;
}

static void start_foreign(Page *page, const Tag *tag)
{
    int within = top(page)->within;
    if (top(page)->traits & SCOPE || !is_plain_foreign(tag, within)) {
        give_up(page);
        return;
    }
    bool wanted = tag->tag == A && note_anchor(page, tag);
    push_as(page, tag->tag, foreign_traits(tag, within), tag, within);
    if (wanted)
        read_anchor(page);
    if (tag->self_closing)
        pop(page);
}

/* Gives whether the tag ended something foreign; else it is for the rules of HTML. */
static bool end_foreign(Page *page, const Tag *tag)
{
    if (tag->tag == BR || tag->tag == P) {
        give_up(page);
        return true;
    }
    for (int i = page->depth - 1; i >= 0 && page->stack[i].within != IN_HTML; i--)
        if (same_name(&page->stack[i], tag)) {
            pop_to(page, i);
            return true;
        }
    return false;
}

static void start_svg_or_math(Page *page, const Tag *tag)
{
    reconstruct(page);
    push_as(page, tag->tag, traits_of[tag->tag], tag, tag->tag == SVG ? IN_SVG : IN_MATH);
    if (tag->self_closing)
        pop(page);
}

/* 13.2.6.4.7: in body. */

static void start_anchor(Page *page, const Tag *tag)
{
    if (last_formatting(page, A) >= 0)
        end_formatting(page, tag, A);
    if (last_formatting(page, A) >= 0)
        give_up(page);
    if (page->given_up)
        return;
    reconstruct(page);
    bool wanted = note_anchor(page, tag);
    push_formatting(page, tag);
    if (wanted && !page->given_up)
        read_anchor(page);
}

static void start_item(Page *page, const Tag *tag)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        const Element *element = &page->stack[i];
        bool same = tag->tag == LI ? is_html(element, LI) : is_html(element, DD) || is_html(element, DT);
        if (same) {
            pop_to(page, i);
            break;
        }
        if (element->traits & SPECIAL && !is_html(element, ADDRESS) && !is_html(element, DIV) && !is_html(element, P))
            break;
    }
    close_p(page);
    push(page, tag->tag, tag);
}

static void start_nobr(Page *page, const Tag *tag)
{
    reconstruct(page);
    if (place_in_scope(page, NOBR) >= 0) {
        end_formatting(page, tag, NOBR);
        reconstruct(page);
    }
    push_formatting(page, tag);
}

static void start_form(Page *page, const Tag *tag)
{
    if (page->form)
        return;
    close_p(page);
    push(page, FORM, tag);
    page->form = page->serial;
}

static void start_table(Page *page, const Tag *tag)
{
    if (page->quirks_unknown && page->open_p)
        give_up(page);
    if (!page->table_leaves_p)
        close_p(page);
    push(page, TABLE, tag);
    page->mode = IN_TABLE;
}

static void start_button(Page *page, const Tag *tag)
{
    int place = place_in_scope(page, BUTTON);
    if (place >= 0)
        pop_to(page, place);
    reconstruct(page);
    push(page, BUTTON, tag);
}

static void start_ruby_part(Page *page, const Tag *tag)
{
    if (place_in_scope(page, RUBY) >= 0)
        close_implied(page, tag->tag == RP || tag->tag == RT ? RTC : OTHER);
    push(page, tag->tag, tag);
}

static void start_void(Page *page, const Tag *tag)
{
    reconstruct(page);
    if (tag->tag == AREA)
        note_frame(page, tag, AREA_SEEN, HREF);
    insert_void(page, tag->tag);
}

static void start_block(Page *page, const Tag *tag)
{
    close_p(page);
    if (tag->tag == XMP) {
        reconstruct(page);
        read_raw(page, tag);
        return;
    }
    if (traits_of[tag->tag] & HEADING && page->depth && top(page)->traits & HEADING)
        pop(page);
    if (tag->tag == HR) {
        insert_void(page, HR);
        return;
    }
    push(page, tag->tag, tag);
    page->drop_newline = tag->tag == PRE || tag->tag == LISTING;
}

static void start_ordinary(Page *page, const Tag *tag)
{
    if ((tag->tag == OPTION || tag->tag == OPTGROUP) && top_is(page, OPTION))
        pop(page);
    reconstruct(page);
    push(page, tag->tag, tag);
    if (tag->tag == SELECT)
        page->mode = IN_SELECT;
    if (tag->tag == APPLET || tag->tag == MARQUEE || tag->tag == OBJECT)
        add_marker(page);
}

static void start_in_body(Page *page, const Tag *tag)
{
    int traits = traits_of[tag->tag];
    if (page->open_templates && is_odd_in_template(tag->tag))
        give_up(page);
    /* what most tags are, before the jump to one of many */
    if (traits & (CLOSES_P | HEADING)) {
        start_block(page, tag);
        return;
    }
    if (tag->tag == A) {
        start_anchor(page, tag);
        return;
    }
    if (tag->tag == OTHER) {
        start_ordinary(page, tag);
        return;
    }
    switch (tag->tag) {
    case HTML:
        note_root(page, tag);
        return;
    case BODY:
        if (has(tag, ROLE))
            give_up(page);
        return;
    case COMMAND: /* no elements any more, but to turbohtml */
    case ISINDEX:
    case FRAMESET:
    case PLAINTEXT:
        give_up(page);
        return;
    case PRE:
    case LISTING:
    case XMP:
    case HR:
        start_block(page, tag);
        return;
    case FORM:
        start_form(page, tag);
        return;
    case LI:
    case DD:
    case DT:
        start_item(page, tag);
        return;
    case BUTTON:
        start_button(page, tag);
        return;
    case NOBR:
        start_nobr(page, tag);
        return;
    case TABLE:
        start_table(page, tag);
        return;
    case AREA:
    case BR:
    case EMBED:
    case IMAGE:
    case IMG:
    case INPUT:
    case KEYGEN:
    case WBR:
        start_void(page, tag);
        return;
    case PARAM:
    case SOURCE:
    case TRACK:
        insert_void(page, tag->tag);
        return;
    case IFRAME:
        note_frame(page, tag, IFRAME_SEEN, SRC);
        read_raw(page, tag);
        return;
    case TEXTAREA:
    case NOEMBED:
        read_raw(page, tag);
        return;
    case RB:
    case RP:
    case RT:
    case RTC:
        start_ruby_part(page, tag);
        return;
    case MATH:
    case SVG:
        start_svg_or_math(page, tag);
        return;
    case FRAME:
    case HEAD:
        return;
    }
    if (traits & FORMATTING) {
        reconstruct(page);
        push_formatting(page, tag);
    } else if (!(traits & TABLE_PART) && !start_of_head(page, tag)) {
        start_ordinary(page, tag);
    }
}

static void end_form(Page *page)
{
    uint32_t form = page->form;
    int place = place_in_scope(page, FORM);
    page->form = 0;
    if (!form || place < 0 || page->stack[place].serial != form) {
        if (form && place >= 0)
            give_up(page);
        return;
    }
    close_implied(page, OTHER);
    if (page->depth - 1 == place) {
        pop(page);
        return;
    }
    Element *ghost = &page->stack[place];
    ghost->tag = OTHER;
    ghost->length = 0;
    ghost->traits &= (uint16_t)~(SPECIAL | SCOPE);
}

static void end_p(Page *page)
{
    if (!page->open_p || place_in_wider_scope(page, P, BUTTON, BUTTON) < 0)
        push(page, P, NULL);
    close_p(page);
}

static void end_body(Page *page, const Tag *tag)
{
    if (place_in_scope(page, BODY) >= 0)
        page->mode = tag->tag == HTML ? AFTER_AFTER_BODY : AFTER_BODY;
}

static void reset_mode(Page *page);

static void end_template(Page *page)
{
    if (!page->open_templates)
        return;
    while (!top_is(page, TEMPLATE))
        pop(page);
    pop(page);
    clear_to_marker(page);
    reset_mode(page);
}

static void end_at(Page *page, int place)
{
    if (place >= 0)
        pop_to(page, place);
}

static void end_in_body(Page *page, const Tag *tag)
{
    int traits = traits_of[tag->tag], place;
    switch (tag->tag) {
    case BODY:
    case HTML:
        end_body(page, tag);
        return;
    case FORM:
        end_form(page);
        return;
    case P:
        end_p(page);
        return;
    case LI:
        end_at(page, place_in_wider_scope(page, LI, OL, UL));
        return;
    case BR:
        start_void(page, tag);
        return;
    case APPLET:
    case MARQUEE:
    case OBJECT:
        place = place_in_scope(page, tag->tag);
        end_at(page, place);
        if (place >= 0)
            clear_to_marker(page);
        return;
    case DD:
    case DT:
    case BUTTON:
    case LISTING:
    case PRE:
        end_at(page, place_in_scope(page, tag->tag));
        return;
    case TEMPLATE:
        end_template(page);
        return;
    }
    if (traits & FORMATTING)
        end_formatting(page, tag, tag->tag);
    else if (traits & HEADING)
        end_at(page, heading_in_scope(page));
    else if (traits & CLOSES_P)
        end_at(page, place_in_scope(page, tag->tag));
    else
        end_any_other(page, tag);
}

#endif
