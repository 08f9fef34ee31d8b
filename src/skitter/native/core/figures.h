/* The figures of a text: a small sample of its numbers, as skitter/parse/fingerprints/figures_plain.py defines it.
 *
 * A number is a run of digits. Those of the page's name do not count. What is sampled is each other number with the two
 * before it, or as many as there are: of all marks the eight smallest are kept. Plain C. */

#ifndef SKITTER_FIGURES_H
#define SKITTER_FIGURES_H

#include <stdbool.h>

#include "lanes.h"
#include "mixing.h"

enum { MOST_CHARACTERS = 16384, MOST_IN_NAME = 32, MARKS_KEPT = 8, DIGITS_AT_ONCE = 64 };

static const uint64_t AFTER = 0x9E3779B97F4A7C15u;

typedef struct {
    uint64_t in_name[MOST_IN_NAME], before_last, last;
    int names, kept;
    uint16_t marks[MARKS_KEPT]; /* the smallest, in order */
} Figures;

/* Which bytes of a block are digits. The text's last block is filled up with zeros. */
static inline uint64_t digits_of_block(const uint8_t *text, size_t at, size_t length)
{
    uint8_t last[DIGITS_AT_ONCE] = {0};
    const uint8_t *block = length - at >= DIGITS_AT_ONCE ? text + at : memcpy(last, text + at, length - at);
    uint64_t mask = 0;
    for (int i = 0; i < DIGITS_AT_ONCE; i += LANES)
        mask |= (uint64_t)at_most(less(lanes_at(block + i), '0'), 9) << i;
    return mask;
}

/* Zeros in front say nothing: a name may have 05 where the page has 5. */
static uint64_t number_between(const uint8_t *text, size_t from, size_t until)
{
    uint64_t number = 0;
    for (; from < until; from++)
        if (number || text[from] != '0')
            number = number * 11 + (uint64_t)(text[from] - '0') + 1;
    return number;
}

static void keep_mark(Figures *figures, uint16_t mark)
{
    int place = figures->kept;
    while (place && figures->marks[place - 1] > mark)
        place--;
    if (place == MARKS_KEPT || (place && figures->marks[place - 1] == mark))
        return;
    if (figures->kept < MARKS_KEPT)
        figures->kept++;
    for (int at = figures->kept - 1; at > place; at--)
        figures->marks[at] = figures->marks[at - 1];
    figures->marks[place] = mark;
}

static void note_in_name(Figures *figures, uint64_t number)
{
    if (figures->names < MOST_IN_NAME)
        figures->in_name[figures->names++] = number;
}

static bool is_in_name(const Figures *figures, uint64_t number)
{
    for (int i = 0; i < figures->names; i++)
        if (figures->in_name[i] == number)
            return true;
    return false;
}

static void note_in_text(Figures *figures, uint64_t number)
{
    if (is_in_name(figures, number)) {
        figures->before_last = figures->last = 0;
        return;
    }
    uint64_t three = (figures->before_last * AFTER + figures->last) * AFTER + number;
    keep_mark(figures, (uint16_t)(mixed(three) >> 48));
    figures->before_last = figures->last;
    figures->last = number;
}

static void read_numbers(Figures *figures, const uint8_t *text, size_t length, void (*note)(Figures *, uint64_t))
{
    size_t start = 0;
    uint64_t within = 0;
    for (size_t at = 0; at < length; at += DIGITS_AT_ONCE) {
        uint64_t digits = digits_of_block(text, at, length);
        for (uint64_t edges = digits ^ (digits << 1 | within); edges; edges &= edges - 1) {
            size_t edge = at + (size_t)__builtin_ctzll(edges);
            if (!within)
                start = edge;
            else
                note(figures, number_between(text, start, edge));
            within = !within;
        }
    }
    if (within)
        note(figures, number_between(text, start, length));
}

#endif
