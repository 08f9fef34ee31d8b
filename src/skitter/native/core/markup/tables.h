/* The insertion modes of tables and of selects (HTML 13.2.6.4.9 to 16). A function that gives true asks for its token
 * to be looked at again in the mode that it has set. */

#ifndef SKITTER_MARKUP_TABLES_H
#define SKITTER_MARKUP_TABLES_H

#include "rules.h"

/* Tables. */

static bool is_section(int tag)
{
    return tag == TBODY || tag == THEAD || tag == TFOOT;
}

static void clear_to(Page *page, bool (*is_context)(int))
{
    while (page->depth && !(top(page)->within == IN_HTML && is_context(top(page)->tag)) && !top_is(page, HTML) &&
           !top_is(page, TEMPLATE))
        pop(page);
}

static bool is_table(int tag)
{
    return tag == TABLE;
}

static bool is_row(int tag)
{
    return tag == TR;
}

/* INITIAL for an element that says nothing of it. */
static int mode_within(int tag)
{
    switch (tag) {
    case SELECT:
        return IN_SELECT;
    case TD:
    case TH:
        return IN_CELL;
    case TR:
        return IN_ROW;
    case TBODY:
    case THEAD:
    case TFOOT:
        return IN_TABLE_BODY;
    case CAPTION:
        return IN_CAPTION;
    case COLGROUP:
        return IN_COLUMN_GROUP;
    case TABLE:
        return IN_TABLE;
    case TEMPLATE:
    case BODY:
        return IN_BODY;
    case HEAD:
        return IN_HEAD;
    case HTML:
        return AFTER_HEAD;
    }
    return INITIAL;
}

/* 13.2.4.1 */
static void reset_mode(Page *page)
{
    page->mode = INITIAL;
    for (int i = page->depth - 1; i >= 0 && page->mode == INITIAL; i--)
        if (page->stack[i].within == IN_HTML)
            page->mode = mode_within(page->stack[i].tag);
}

static bool close_table(Page *page)
{
    int place = place_in_table_scope(page, TABLE);
    if (place < 0)
        return false;
    pop_to(page, place);
    reset_mode(page);
    return true;
}

static void start_form_in_table(Page *page)
{
    if (page->form)
        return;
    insert_void(page, FORM);
    page->form = ++page->serial; /* not on the stack: its end tag finds nothing */
}

static bool start_in_table(Page *page, const Tag *tag)
{
    switch (tag->tag) {
    case CAPTION:
        clear_to(page, is_table);
        add_marker(page);
        push(page, CAPTION, tag);
        page->mode = IN_CAPTION;
        return false;
    case COLGROUP:
    case COL:
        clear_to(page, is_table);
        push(page, COLGROUP, tag->tag == COLGROUP ? tag : NULL);
        page->mode = IN_COLUMN_GROUP;
        return tag->tag == COL;
    case TBODY:
    case THEAD:
    case TFOOT:
    case TD:
    case TH:
    case TR:
        clear_to(page, is_table);
        push(page, is_section(tag->tag) ? tag->tag : TBODY, is_section(tag->tag) ? tag : NULL);
        page->mode = IN_TABLE_BODY;
        return !is_section(tag->tag);
    case TABLE:
        return close_table(page);
    case STYLE:
    case SCRIPT:
        start_of_head(page, tag);
        return false;
    case INPUT:
        if (has(tag, TYPE) && is_named(tag->values[TYPE].at, tag->values[TYPE].length, "hidden"))
            insert_void(page, INPUT);
        else
            give_up(page);
        return false;
    case FORM:
        start_form_in_table(page);
        return false;
    }
    give_up(page); /* foster parenting */
    return false;
}

static bool end_in_table(Page *page, const Tag *tag)
{
    if (tag->tag == TABLE)
        close_table(page);
    else if (tag->tag == P || tag->tag == BR)
        give_up(page); /* foster parenting */
    else if (!(traits_of[tag->tag] & TABLE_PART) && tag->tag != BODY && tag->tag != HTML)
        end_in_body(page, tag);
    return false;
}

static bool close_caption(Page *page)
{
    int place = place_in_table_scope(page, CAPTION);
    if (place < 0)
        return false;
    pop_to(page, place);
    clear_to_marker(page);
    page->mode = IN_TABLE;
    return true;
}

static bool start_in_column_group(Page *page, const Tag *tag)
{
    if (tag->tag == HTML) {
        note_root(page, tag);
        return false;
    }
    if (tag->tag == COL) {
        insert_void(page, COL);
        return false;
    }
    if (!top_is(page, COLGROUP))
        return false;
    pop(page);
    page->mode = IN_TABLE;
    return true;
}

static bool end_in_column_group(Page *page, const Tag *tag)
{
    if (tag->tag == COL || !top_is(page, COLGROUP))
        return false;
    pop(page);
    page->mode = IN_TABLE;
    return tag->tag != COLGROUP;
}

/* The one open tbody, thead or tfoot, and back to the table. */
static bool close_section(Page *page)
{
    if (place_in_table_scope(page, TBODY) < 0 && place_in_table_scope(page, THEAD) < 0 &&
        place_in_table_scope(page, TFOOT) < 0)
        return false;
    clear_to(page, is_section);
    pop(page);
    page->mode = IN_TABLE;
    return true;
}

static bool start_in_section(Page *page, const Tag *tag)
{
    if (tag->tag == TR || tag->tag == TD || tag->tag == TH) {
        clear_to(page, is_section);
        push(page, TR, tag->tag == TR ? tag : NULL);
        page->mode = IN_ROW;
        return tag->tag != TR;
    }
    if (traits_of[tag->tag] & TABLE_PART)
        return close_section(page);
    return start_in_table(page, tag);
}

static bool end_in_section(Page *page, const Tag *tag)
{
    if (is_section(tag->tag)) {
        if (place_in_table_scope(page, tag->tag) >= 0)
            close_section(page);
        return false;
    }
    if (tag->tag == TABLE)
        return close_section(page);
    return end_in_table(page, tag);
}

static bool close_row(Page *page)
{
    if (place_in_table_scope(page, TR) < 0)
        return false;
    clear_to(page, is_row);
    pop(page);
    page->mode = IN_TABLE_BODY;
    return true;
}

static bool start_in_row(Page *page, const Tag *tag)
{
    if (tag->tag == TD || tag->tag == TH) {
        clear_to(page, is_row);
        push(page, tag->tag, tag);
        page->mode = IN_CELL;
        add_marker(page);
        return false;
    }
    if (traits_of[tag->tag] & TABLE_PART)
        return close_row(page);
    return start_in_table(page, tag);
}

static bool end_in_row(Page *page, const Tag *tag)
{
    if (tag->tag == TR) {
        close_row(page);
        return false;
    }
    if (tag->tag == TABLE)
        return close_row(page);
    if (is_section(tag->tag))
        return place_in_table_scope(page, tag->tag) >= 0 && close_row(page);
    return end_in_table(page, tag);
}

static bool close_cell(Page *page)
{
    int place = place_in_table_scope(page, TD);
    if (place < 0)
        place = place_in_table_scope(page, TH);
    if (place < 0)
        return false;
    pop_to(page, place);
    clear_to_marker(page);
    page->mode = IN_ROW;
    return true;
}

static bool end_in_cell(Page *page, const Tag *tag)
{
    int place;
    switch (tag->tag) {
    case TD:
    case TH:
        place = place_in_table_scope(page, tag->tag);
        if (place < 0)
            return false;
        pop_to(page, place);
        clear_to_marker(page);
        page->mode = IN_ROW;
        return false;
    case BODY:
    case CAPTION:
    case COL:
    case COLGROUP:
    case HTML:
        return false;
    case TABLE:
    case TBODY:
    case TFOOT:
    case THEAD:
    case TR:
        return place_in_table_scope(page, tag->tag) >= 0 && close_cell(page);
    }
    end_in_body(page, tag);
    return false;
}

static bool end_in_caption(Page *page, const Tag *tag)
{
    if (tag->tag == CAPTION) {
        close_caption(page);
        return false;
    }
    if (tag->tag == TABLE)
        return close_caption(page);
    if (!(traits_of[tag->tag] & TABLE_PART) && tag->tag != BODY && tag->tag != HTML)
        end_in_body(page, tag);
    return false;
}

/* Selects with anything but options in them changed their meaning lately: those are given up. */

static void start_in_select(Page *page, const Tag *tag)
{
    if (tag->tag != OPTION && tag->tag != OPTGROUP) {
        give_up(page);
        return;
    }
    if (top_is(page, OPTION))
        pop(page);
    if (tag->tag == OPTGROUP && top_is(page, OPTGROUP))
        pop(page);
    push(page, tag->tag, tag);
}

static void end_in_select(Page *page, const Tag *tag)
{
    if (tag->tag == SELECT) {
        end_at(page, place_in_scope(page, SELECT));
        reset_mode(page);
        return;
    }
    if (tag->tag == OPTGROUP && top_is(page, OPTION))
        pop(page);
    if ((tag->tag == OPTION || tag->tag == OPTGROUP) && top_is(page, tag->tag))
        pop(page);
    else
        give_up(page);
}

#endif
