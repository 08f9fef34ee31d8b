/* The stack of open elements as the rules ask it (HTML 13.2.4.2), and the list of active formatting elements
 * (13.2.4.3) with the adoption agency. */

#ifndef SKITTER_MARKUP_STACK_H
#define SKITTER_MARKUP_STACK_H

#include "links.h"

static inline const Element *top(const Page *page)
{
    return &page->stack[page->depth - 1];
}

static inline bool is_html(const Element *element, int tag)
{
    return element->tag == tag && element->within == IN_HTML;
}

static inline bool top_is(const Page *page, int tag)
{
    return page->depth && is_html(top(page), tag);
}

/* 13.2.4.2: scopes. Each gives the place in the stack, -1 when there is none. */

static int place_in_scope(const Page *page, int tag)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        if (is_html(&page->stack[i], tag))
            return i;
        if (page->stack[i].traits & SCOPE)
            break;
    }
    return -1;
}

static int place_in_wider_scope(const Page *page, int tag, int stop, int other_stop)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        const Element *element = &page->stack[i];
        if (is_html(element, tag))
            return i;
        if (element->traits & SCOPE || is_html(element, stop) || is_html(element, other_stop))
            break;
    }
    return -1;
}

static int place_in_table_scope(const Page *page, int tag)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        if (is_html(&page->stack[i], tag))
            return i;
        if (is_html(&page->stack[i], TABLE) || is_html(&page->stack[i], TEMPLATE))
            break;
    }
    return -1;
}

static int heading_in_scope(const Page *page)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        if (page->stack[i].traits & HEADING)
            return i;
        if (page->stack[i].traits & SCOPE)
            break;
    }
    return -1;
}

/* 13.2.6.3 */
static void close_implied(Page *page, int except)
{
    while (page->depth && top(page)->within == IN_HTML && top(page)->traits & IMPLIED && top(page)->tag != except)
        pop(page);
}

static void close_p(Page *page)
{
    int place = page->open_p ? place_in_wider_scope(page, P, BUTTON, BUTTON) : -1;
    if (place >= 0)
        pop_to(page, place);
}

/* 13.2.4.3: the list of active formatting elements. */

static inline bool is_open(const Page *page, const Formatting *entry)
{
    return entry->place < page->depth && page->stack[entry->place].serial == entry->serial;
}

static void add_marker(Page *page)
{
    if (page->formatted == MOST_FORMATTING)
        give_up(page);
    else
        page->formatting[page->formatted++] = (Formatting){0, 0, OTHER};
}

static void clear_to_marker(Page *page)
{
    while (page->formatted && page->formatting[--page->formatted].tag != OTHER)
        ;
}

static void reconstruct(Page *page)
{
    int first = page->formatted;
    while (first && page->formatting[first - 1].tag != OTHER && !is_open(page, &page->formatting[first - 1]))
        first--;
    for (; first < page->formatted && !page->given_up; first++) {
        Formatting *entry = &page->formatting[first];
        push(page, entry->tag, NULL);
        entry->serial = page->serial;
        entry->place = (uint16_t)(page->depth - 1);
    }
}

static int last_formatting(const Page *page, int tag)
{
    for (int i = page->formatted - 1; i >= 0 && page->formatting[i].tag != OTHER; i--)
        if (page->formatting[i].tag == tag)
            return i;
    return -1;
}

static void forget_formatting(Page *page, int index)
{
    page->formatted--;
    memmove(&page->formatting[index], &page->formatting[index + 1],
        (size_t)(page->formatted - index) * sizeof *page->formatting);
}

static void push_formatting(Page *page, const Tag *tag)
{
    int same = 0;
    for (int i = page->formatted - 1; i >= 0 && page->formatting[i].tag != OTHER; i--)
        same += page->formatting[i].tag == tag->tag;
    /* Of four alike the first would be forgotten; whether they are alike is not compared here. */
    if (same > 2 || page->formatted == MOST_FORMATTING) {
        give_up(page);
        return;
    }
    push(page, tag->tag, tag);
    page->formatting[page->formatted++] =
        (Formatting){page->serial, (uint16_t)(page->depth - 1), (uint8_t)tag->tag};
}

static bool same_name(const Element *element, const Tag *tag)
{
    if (element->tag != tag->tag)
        return false;
    if (element->tag != OTHER)
        return true;
    if (element->length != tag->length)
        return false;
    for (size_t i = 0; i < tag->length; i++)
        if (lowered(element->name[i]) != lowered(tag->name[i]))
            return false;
    return true;
}

static void end_any_other(Page *page, const Tag *tag)
{
    for (int i = page->depth - 1; i >= 0; i--) {
        const Element *element = &page->stack[i];
        if (element->within == IN_HTML && same_name(element, tag)) {
            pop_to(page, i);
            return;
        }
        if (element->traits & SPECIAL)
            return;
    }
}

/* The adoption agency algorithm (13.2.6.4.7): a formatting element ends though a block in it does not. It ends before
 * the block, and one like it begins within. Texts keep their order, so only the stack and the list change. */

static int furthest_block(Page *page, int place)
{
    for (int i = place + 1; i < page->depth; i++) {
        if (page->stack[i].traits & SCOPE || page->stack[i].within != IN_HTML)
            give_up(page);
        if (page->stack[i].traits & SPECIAL)
            return i;
    }
    return -1;
}

static int entry_of(const Page *page, int place)
{
    for (int i = 0; i < page->formatted; i++)
        if (page->formatting[i].serial == page->stack[place].serial)
            return i;
    return -1;
}

/* What an anchor that ends before the block has of its text; and nothing that the text hangs on may move. */
static void adopt_anchor(Page *page, int place, int block)
{
    if (page->root_depth - 1 > place || page->silent_depth - 1 > place || page->anchor_depth - 1 > place ||
        page->adoptions++ == MOST_ADOPTIONS) {
        give_up(page);
    } else if (page->anchor_depth - 1 == place) {
        uint32_t read = page->stack[block].anchor_read;
        page->anchor_text.used = read < page->anchor_text.used ? read : page->anchor_text.used;
        finish_anchor(page);
    } else if (page->anchor_nodes > NODES_PER_ANCHOR / 2) {
        give_up(page); /* those like it count as well */
    }
}

/* Takes what is between the element and the block off the stack, but for formatting elements, of which at most three
 * stay. Gives the place of the block; `last` becomes the last entry of those that stay. */
static int clear_between(Page *page, int place, int block, int *last)
{
    int seen = 0;
    for (int i = block - 1; i > place; i--) {
        int entry = entry_of(page, i);
        if (page->stack[i].traits & ~FORMATTING)
            give_up(page);
        if (entry >= 0 && ++seen > 3) {
            give_up(page);
        } else if (entry >= 0) {
            *last = *last < 0 ? entry : *last;
            page->anchor_nodes++;
        } else {
            seen++;
            memmove(&page->stack[i], &page->stack[i + 1], (size_t)(page->depth - i - 1) * sizeof *page->stack);
            page->depth--;
            block--;
        }
    }
    return block;
}

static void adopt(Page *page, int index, int block)
{
    int place = page->formatting[index].place, last = -1;
    adopt_anchor(page, place, block);
    if (page->given_up)
        return;
    block = clear_between(page, place, block, &last);
    Element element = page->stack[place];
    Formatting entry = {++page->serial, (uint16_t)block, element.tag};
    element.serial = page->serial;
    memmove(&page->stack[place], &page->stack[place + 1], (size_t)(block - place) * sizeof *page->stack);
    page->stack[block] = element;
    forget_formatting(page, index);
    if (last < 0)
        last = index;
    else if (last < index)
        last++; /* right behind it; else one is gone before it */
    memmove(&page->formatting[last + 1], &page->formatting[last],
        (size_t)(page->formatted - last) * sizeof *page->formatting);
    page->formatting[last] = entry;
    page->formatted++;
    for (int i = 0; i < page->formatted; i++)
        for (int j = 0; j < page->depth; j++)
            if (page->stack[j].serial == page->formatting[i].serial)
                page->formatting[i].place = (uint16_t)j;
    count_node(page);
}

/* The last of the list is the last of the stack: what all the rest comes to when tags nest as they should. */
static inline bool end_last_formatting(Page *page)
{
    const Formatting *last = page->formatted ? &page->formatting[page->formatted - 1] : NULL;
    if (!last || last->tag == OTHER || last->serial != top(page)->serial)
        return false;
    page->formatted--;
    pop(page);
    return true;
}

static void end_formatting(Page *page, const Tag *tag, int subject)
{
    if (top_is(page, subject) && end_last_formatting(page))
        return;
    if (top_is(page, subject) && entry_of(page, page->depth - 1) < 0) {
        pop(page);
        return;
    }
    for (int round = 0; round < 8 && !page->given_up; round++) {
        int index = last_formatting(page, subject);
        if (index < 0) {
            end_any_other(page, tag);
            return;
        }
        bool open = is_open(page, &page->formatting[index]);
        int block = open ? furthest_block(page, page->formatting[index].place) : -1;
        if (page->given_up)
            return;
        if (block < 0) {
            int place = page->formatting[index].place;
            forget_formatting(page, index);
            if (open)
                pop_to(page, place);
            return;
        }
        adopt(page, index, block);
    }
}

#endif
