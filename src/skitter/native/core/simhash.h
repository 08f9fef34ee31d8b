/* SimHash of bytes, as skitter/parse/fingerprints/fingerprint_plain.py defines it.
 *
 * Words are runs of letters and of bytes above ASCII; in scripts without spaces every character begins a word of its
 * own, which is that character and the next. A word is a polynomial in its folded bytes. Each bit of the result is what
 * most words have there. Plain C. */

#ifndef SKITTER_SIMHASH_H
#define SKITTER_SIMHASH_H

#include <stdbool.h>

#include "lanes.h"
#include "mixing.h"

enum { MOST_BYTES = 16384, FEWEST_WORDS = 20, MOST_REPEATS = 16, PAIR = 6 };

/* Every byte of 16 KB can end one word and begin a dense one. */
enum { MOST_WORDS = MOST_BYTES + MOST_BYTES / 2 + 1, TABLE = 65536, AT_ONCE = 8, BLOCK = 64 };

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;

static const uint64_t ASCII_BITS = 0x8080808080808080u;

static uint64_t powers[AT_ONCE + 1]; /* of GOLDEN */
static uint8_t fold[256];

static void fill_fold(void)
{
    powers[0] = 1;
    for (int i = 1; i <= AT_ONCE; i++)
        powers[i] = powers[i - 1] * GOLDEN;
    for (int code = 0; code < 256; code++) {
        int upper = code >= 'A' && code <= 'Z';
        int lower = code >= 'a' && code <= 'z';
        fold[code] = (uint8_t)(code >= 0x80 || lower ? code : upper ? code + 32 : 0);
    }
}

/* Which bytes of a block belong to words. */
static inline uint64_t words_of_block(const uint8_t *block)
{
    uint64_t mask = 0;
    for (int i = 0; i < BLOCK; i += LANES) {
        Lanes lanes = lanes_at(block + i);
        mask |= (uint64_t)(at_most(less(with_bits(lanes, 0x20), 'a'), 'z' - 'a') | above_ascii(lanes)) << i;
    }
    return mask;
}

/* Which bytes of a block begin a character of a script without spaces. */
static inline uint64_t dense_of_block(const uint8_t *block)
{
    uint64_t mask = 0;
    for (int i = 0; i < BLOCK; i += LANES)
        mask |= (uint64_t)at_most(less(lanes_at(block + i), 0xE3), 0xED - 0xE3) << i;
    return mask;
}

/* The text's last block is filled up with zeros in `last`. */
static inline const uint8_t *block_at(const uint8_t *text, size_t at, size_t length, uint8_t *last)
{
    if (length - at >= BLOCK)
        return text + at;
    memset(last, 0, BLOCK);
    return memcpy(last, text + at, length - at);
}

/* Where words begin and end, in turns. `edges` has room for one more than there are bytes. */
static size_t find_edges(const uint8_t *text, size_t length, uint16_t *edges)
{
    size_t found = 0;
    uint64_t within = 0;
    uint8_t last[BLOCK];
    for (size_t at = 0; at < length; at += BLOCK) {
        uint64_t words = words_of_block(block_at(text, at, length, last));
        uint64_t changes = words ^ (words << 1 | within);
        for (; changes; changes &= changes - 1)
            edges[found++] = (uint16_t)(at + (size_t)__builtin_ctzll(changes));
        within = words >> (BLOCK - 1);
    }
    if (found % 2)
        edges[found++] = (uint16_t)length;
    return found;
}

/* The next bytes of a word, folded: all that is ASCII in it is a letter. */
static inline uint64_t folded(const uint8_t *from, size_t count, size_t left)
{
    uint8_t last[AT_ONCE] = {0};
    uint64_t word = little_word(left < AT_ONCE ? memcpy(last, from, left) : from);
    return first_bytes(word | (~word & ASCII_BITS) >> 2, count);
}

/* Eight bytes in one go: each factor of a chain of products would wait for the one before. */
static inline uint64_t word_between(const uint8_t *text, size_t from, size_t until, size_t length)
{
    uint64_t word = 0, power = 1;
    for (; from < until; from += AT_ONCE, power *= powers[AT_ONCE]) {
        uint64_t bytes = folded(text + from, until - from, length - from), part = 0;
        for (int i = 0; i < AT_ONCE; i++)
            part += (bytes >> 8 * i & 0xFF) * powers[i];
        word += part * power;
    }
    return word;
}

/* `text` is of at most MOST_BYTES; `words` has room for MOST_WORDS. */
static size_t find_words(const uint8_t *text, size_t length, uint64_t *words)
{
    static uint16_t edges[MOST_BYTES + 2];
    size_t found = find_edges(text, length, edges);
    for (size_t i = 0; i < found; i += 2)
        words[i / 2] = word_between(text, edges[i], edges[i + 1], length);
    return found / 2;
}

static uint64_t dense_word(const uint8_t *text, size_t at, size_t length)
{
    uint64_t word = 0;
    for (size_t next = at; next < at + PAIR && next < length; next++)
        word += fold[text[next]] * powers[next - at];
    return word;
}

static size_t find_dense_words(const uint8_t *text, size_t length, uint64_t *words)
{
    size_t found = 0;
    uint8_t last[BLOCK];
    for (size_t at = 0; at < length; at += BLOCK) {
        uint64_t dense = dense_of_block(block_at(text, at, length, last));
        for (; dense; dense &= dense - 1)
            words[found++] = dense_word(text, at + (size_t)__builtin_ctzll(dense), length);
    }
    return found;
}

/* Each word once, at the beginning of `words`, and how often it is there. Documentation of 1,000 words has 190 different
 * ones, so that the table has indexes only: with the words in it, it pushed all else out of the nearest cache. */
static size_t count_words(uint64_t *words, size_t found, uint16_t *counts)
{
    static uint16_t table[TABLE];
    size_t size = 64, different = 0;
    while (size < 2 * found)
        size *= 2;
    memset(table, 0, size * sizeof *table);
    for (size_t i = 0; i < found; i++) {
        uint64_t word = words[i];
        size_t place = (size_t)(word * GOLDEN >> 40) & (size - 1);
        while (table[place] && words[table[place] - 1] != word)
            place = (place + 1) & (size - 1);
        if (!table[place]) {
            words[different] = word;
            counts[different] = 0;
            table[place] = (uint16_t)++different;
        }
        counts[table[place] - 1]++;
    }
    return different;
}

/* Eight counters: no text has 65,536 words. */
typedef uint16_t Counters __attribute__((vector_size(16)));

static inline void add_bits(Counters *ones, uint64_t bits, uint16_t count)
{
    const Counters low = {1, 2, 4, 8, 16, 32, 64, 128}, high = low << 8;
    for (int quarter = 0; quarter < 4; quarter++) {
        Counters same = (Counters){0} + (uint16_t)(bits >> 16 * quarter);
        ones[2 * quarter] += (Counters)((same & low) == low) & count;
        ones[2 * quarter + 1] += (Counters)((same & high) == high) & count;
    }
}

static uint64_t majority(const uint64_t *words, const uint16_t *counts, size_t different)
{
    Counters ones[BLOCK / 8] = {{0}};
    uint64_t result = 0;
    uint32_t total = 0;
    for (size_t i = 0; i < different; i++) {
        uint16_t count = counts[i] < MOST_REPEATS ? counts[i] : MOST_REPEATS;
        total += count;
        add_bits(ones, mixed(words[i]), count);
    }
    for (int bit = 0; bit < BLOCK; bit++)
        result |= (uint64_t)(ones[bit / 8][bit % 8] > total / 2) << bit;
    return result;
}

/* False when the text is too short to say anything. */
static bool find_simhash(const uint8_t *text, size_t length, uint64_t *result)
{
    static uint64_t words[MOST_WORDS];
    static uint16_t counts[MOST_WORDS];
    size_t found = find_words(text, length, words);
    found += find_dense_words(text, length, words + found);
    if (found < FEWEST_WORDS)
        return false;
    *result = majority(words, counts, count_words(words, found, counts));
    return true;
}

#endif
