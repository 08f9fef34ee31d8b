/* The strings of a column as Parquet's pages have them: each behind its length, or by its number in a dictionary.
 *
 * Pages of strangers say what the strings are, so the hash has a seed of its own in every process: nobody can choose
 * strings that meet in one place. What comes out does not depend on it. Free of Python, so that it can be run alone under
 * sanitizers. */

#ifndef SKITTER_VALUES_CORE_H
#define SKITTER_VALUES_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mixing.h"

enum { MOST_BYTES = 1 << 20, GROUP = 8, FIRST_SLOTS = 1 << 10, COUNTED = 4, MOST_VARINT = 5 };

typedef struct {
    const uint8_t *data;
    size_t length;
    const int32_t *ends; /* with a zero before the first */
    const uint8_t *valid; /* NULL when all are there */
    size_t count;
} Strings;

typedef struct {
    const uint8_t *start;
    size_t length;
} String;

/* Of numbers that were read as they lay: whether each string is within the bytes. */
static int are_whole(const Strings *strings)
{
    if (strings->ends[0] < 0)
        return 0;
    for (size_t at = 0; at < strings->count; at++)
        if (strings->ends[at + 1] < strings->ends[at])
            return 0;
    return (size_t)strings->ends[strings->count] <= strings->length;
}

static int is_present(const Strings *strings, size_t at)
{
    return !strings->valid || strings->valid[at / 8] >> at % 8 & 1;
}

static String string_at(const Strings *strings, size_t at)
{
    return (String){strings->data + strings->ends[at], (size_t)(strings->ends[at + 1] - strings->ends[at])};
}

static uint8_t *put_counted(uint8_t *to, String string)
{
    for (int byte = 0; byte < COUNTED; byte++)
        to[byte] = (uint8_t)(string.length >> 8 * byte);
    memcpy(to + COUNTED, string.start, string.length);
    return to + COUNTED + string.length;
}

static size_t plain_length(const Strings *strings, size_t first, size_t last)
{
    size_t length = 0;
    for (size_t at = first; at < last; at++)
        if (is_present(strings, at))
            length += COUNTED + string_at(strings, at).length;
    return length;
}

static void put_plain(const Strings *strings, size_t first, size_t last, uint8_t *to)
{
    for (size_t at = first; at < last; at++)
        if (is_present(strings, at))
            to = put_counted(to, string_at(strings, at));
}

static int order_of(String one, String other)
{
    size_t common = one.length < other.length ? one.length : other.length;
    int order = common ? memcmp(one.start, other.start, common) : 0;
    return order ? order : (one.length > other.length) - (one.length < other.length);
}

/* 0 when nothing is there. */
static int find_extremes(const Strings *strings, String *least, String *greatest)
{
    int found = 0;
    for (size_t at = 0; at < strings->count; at++) {
        if (!is_present(strings, at))
            continue;
        String string = string_at(strings, at);
        if (!found || order_of(string, *least) < 0)
            *least = string;
        if (!found || order_of(string, *greatest) > 0)
            *greatest = string;
        found = 1;
    }
    return found;
}

/* Different strings by number, as they came up. `slots` are numbers plus one, or zero. */
typedef struct {
    String *strings;
    uint64_t *hashes;
    uint32_t count, last;
    uint32_t *slots;
    size_t room; /* a power of two */
    size_t plain_length;
} Dictionary;

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Fewer than nine bytes; `memcpy` of a length that the compiler does not know would take longer than all the rest. */
static uint64_t short_word(const uint8_t *at, size_t length)
{
    uint64_t word = 0;
    for (size_t byte = 0; byte < length; byte++)
        word = word << 8 | at[byte];
    return word;
}

static uint64_t hash_of(String string, uint64_t seed)
{
    uint64_t hash = seed ^ string.length;
    size_t left = string.length;
    const uint8_t *at = string.start;
    if (left <= 8)
        return mixed(hash ^ short_word(at, left));
    for (; left > 16; at += 16, left -= 16)
        hash = mixed(hash ^ word_at(at)) + word_at(at + 8) * (seed | 1);
    if (left > 8)
        hash = mixed(hash ^ word_at(at));
    /* The last eight, which may have been looked at before. */
    return mixed(hash ^ word_at(at + left - 8));
}

static int is_same(String one, String other)
{
    return one.length == other.length && (!one.length || memcmp(one.start, other.start, one.length) == 0);
}

static int grow(Dictionary *dictionary)
{
    size_t room = dictionary->room ? 4 * dictionary->room : FIRST_SLOTS;
    uint32_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        return 0;
    for (uint32_t number = 0; number < dictionary->count; number++) {
        size_t slot = dictionary->hashes[number] & (room - 1);
        while (slots[slot])
            slot = (slot + 1) & (room - 1);
        slots[slot] = number + 1;
    }
    free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->room = room;
    return 1;
}

/* Its number, new or not; there is a slot free. */
static uint32_t number_of(Dictionary *dictionary, String string, uint64_t seed)
{
    /* What a link is called and what it is for often is as with the one before it. */
    if (dictionary->count && is_same(dictionary->strings[dictionary->last], string))
        return dictionary->last;
    uint64_t hash = hash_of(string, seed);
    size_t slot = hash & (dictionary->room - 1);
    for (uint32_t known; (known = dictionary->slots[slot]); slot = (slot + 1) & (dictionary->room - 1))
        if (dictionary->hashes[known - 1] == hash && is_same(dictionary->strings[known - 1], string))
            return dictionary->last = known - 1;
    uint32_t number = dictionary->last = dictionary->count++;
    dictionary->strings[number] = string;
    dictionary->hashes[number] = hash;
    dictionary->slots[slot] = number + 1;
    dictionary->plain_length += COUNTED + string.length;
    return number;
}

/* What all of a column comes to: the dictionary, and of each string that is there its number. */
typedef struct {
    Dictionary dictionary;
    uint32_t *numbers;
    size_t count;
} Repeated;

static void forget(Repeated *repeated)
{
    free(repeated->dictionary.strings);
    free(repeated->dictionary.hashes);
    free(repeated->dictionary.slots);
    free(repeated->numbers);
}

static int make_room_for(Repeated *repeated, size_t strings)
{
    /* A dictionary of MOST_BYTES holds no more, and one string beyond. */
    size_t most = strings < MOST_BYTES / COUNTED ? strings : MOST_BYTES / COUNTED;
    Dictionary *dictionary = &repeated->dictionary;
    memset(repeated, 0, sizeof *repeated);
    dictionary->strings = malloc((most + 1) * sizeof *dictionary->strings);
    dictionary->hashes = malloc((most + 1) * sizeof *dictionary->hashes);
    repeated->numbers = malloc((strings + 1) * sizeof *repeated->numbers);
    return dictionary->strings && dictionary->hashes && repeated->numbers && grow(dictionary);
}

/* 1; 0 when the dictionary would be too large; -1 without memory. To be forgotten in any case. */
static int find_repeated(const Strings *strings, uint64_t seed, Repeated *repeated)
{
    Dictionary *dictionary = &repeated->dictionary;
    if (!make_room_for(repeated, strings->count))
        return -1;
    for (size_t at = 0; at < strings->count; at++) {
        if (!is_present(strings, at))
            continue;
        if (dictionary->room < 2 * (size_t)dictionary->count + 2 && !grow(dictionary))
            return -1;
        repeated->numbers[repeated->count++] = number_of(dictionary, string_at(strings, at), seed);
        if (dictionary->plain_length > MOST_BYTES)
            return 0;
    }
    return 1;
}

static void put_dictionary(const Dictionary *dictionary, uint8_t *to)
{
    for (uint32_t number = 0; number < dictionary->count; number++)
        to = put_counted(to, dictionary->strings[number]);
}

static uint32_t width_of(uint32_t count)
{
    uint32_t width = 1;
    while (count && (count - 1) >> width)
        width++;
    return width;
}

static uint8_t *put_varint(uint8_t *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

static size_t same_from(const Repeated *repeated, size_t at, size_t most)
{
    size_t same = 1;
    while (same < most && at + same < repeated->count && repeated->numbers[at + same] == repeated->numbers[at])
        same++;
    return same;
}

static uint8_t *put_packed(const Repeated *repeated, size_t first, size_t last, uint32_t width, uint8_t *to)
{
    size_t groups = (last - first + GROUP - 1) / GROUP;
    uint64_t bits = 0;
    uint32_t held = 0;
    to = put_varint(to, (uint64_t)groups << 1 | 1);
    for (size_t at = first; at < first + groups * GROUP; at++) {
        bits |= (uint64_t)(at < last ? repeated->numbers[at] : 0) << held;
        for (held += width; held >= 8; held -= 8, bits >>= 8)
            *to++ = (uint8_t)bits;
    }
    return to;
}

/* For each eight numbers a group at most, or a run, and what comes before it. */
static size_t most_runs(const Repeated *repeated, uint32_t width)
{
    return 1 + (repeated->count / GROUP + 2) * (width + sizeof(uint32_t) + 2 * MOST_VARINT);
}

/* Parquet's hybrid behind its width: eight or more of the same are a run, others are packed bit by bit. */
static size_t put_runs(const Repeated *repeated, uint8_t *to)
{
    uint8_t *start = to;
    uint32_t width = width_of(repeated->dictionary.count);
    *to++ = (uint8_t)width;
    for (size_t at = 0; at < repeated->count;) {
        size_t first = at;
        if (same_from(repeated, at, GROUP) == GROUP) {
            size_t same = same_from(repeated, at, repeated->count);
            to = put_varint(to, (uint64_t)same << 1);
            for (uint32_t bit = 0; bit < width; bit += 8)
                *to++ = (uint8_t)(repeated->numbers[at] >> bit);
            at += same;
            continue;
        }
        while (at < repeated->count && same_from(repeated, at, GROUP) < GROUP)
            at += GROUP;
        at = at < repeated->count ? at : repeated->count;
        to = put_packed(repeated, first, at, width, to);
    }
    return (size_t)(to - start);
}

#endif
