/* A Bloom filter over halves of fingerprints, as skitter/frontier's Python twin of it defines it. Plain C.
 *
 * Words and masks are buffers of the caller. The bits are those of the twin, since files of them are kept. */

#ifndef SKITTER_NEAR_WORDS_H
#define SKITTER_NEAR_WORDS_H

#include <stdint.h>

#include "prefetch.h"

enum { PROBES = 33, ASKED = 2 * PROBES + 1, MASKS = 4096, WORDS = 2, FINGERPRINT = 8 };

static const uint64_t FIRST = 0x9E3779B97F4A7C15u, SECOND = 0xBF58476D1CE4E5B9u;
static const uint64_t LOWER = (uint64_t)1 << 32, PARITY = (uint64_t)1 << 33;

typedef struct {
    uint64_t *words;
    uint64_t count;
    const uint64_t *masks;
} Filter;

static uint64_t mix_half(uint64_t half)
{
    half *= FIRST;
    half ^= half >> 32;
    half *= SECOND;
    return half ^ half >> 29;
}

static uint64_t again(uint64_t mix)
{
    mix *= FIRST;
    return mix ^ mix >> 32;
}

static uint64_t *word_of(const Filter *filter, uint64_t mix)
{
    return filter->words + ((mix >> 32) * filter->count >> 32);
}

static uint64_t mask_of(const Filter *filter, uint64_t mix)
{
    return filter->masks[mix & (MASKS - 1)];
}

static int has_half(const Filter *filter, uint64_t mix)
{
    for (int word = 0; word < WORDS; word++, mix = again(mix)) {
        uint64_t mask = mask_of(filter, mix);
        if ((*word_of(filter, mix) & mask) != mask)
            return 0;
    }
    return 1;
}

static void put_half(const Filter *filter, uint64_t half)
{
    uint64_t mix = mix_half(half);
    for (int word = 0; word < WORDS; word++, mix = again(mix))
        *word_of(filter, mix) |= mask_of(filter, mix);
}

static uint64_t lower_of(uint64_t fingerprint)
{
    uint64_t parity = (uint64_t)__builtin_parityll(fingerprint) ? PARITY : 0;
    return parity | LOWER | (fingerprint & 0xFFFFFFFFu);
}

static void add_fingerprint(const Filter *filter, uint64_t fingerprint)
{
    put_half(filter, fingerprint >> 32);
    put_half(filter, lower_of(fingerprint));
}

/* The upper half in its forms, the lower one in its forms at an odd distance, the lower one at an even distance. All
 * are prefetched before the first is looked at. */
static void mix_all(const Filter *filter, uint64_t fingerprint, uint64_t *mixes)
{
    uint64_t upper = fingerprint >> 32, lower = lower_of(fingerprint);
    for (int probe = 0; probe < PROBES; probe++) {
        uint64_t flip = probe ? (uint64_t)1 << (probe - 1) : 0;
        mixes[probe] = mix_half(upper ^ flip);
        mixes[PROBES + probe] = mix_half(lower ^ (flip | PARITY));
    }
    mixes[ASKED - 1] = mix_half(lower);
    for (int asked = 0; asked < ASKED; asked++)
        prefetch(word_of(filter, mixes[asked]));
}

/* The numbers of a fingerprint's probes that may be there, of which there are at most ASKED, go to `found`; gives how many.
 * The two forms of the whole lower half count as one probe. */
static int find_candidates(const Filter *filter, uint64_t fingerprint, int *found)
{
    uint64_t mixes[ASKED];
    int has_lower = 0, count = 0;
    mix_all(filter, fingerprint, mixes);
    for (int asked = 0; asked < ASKED; asked++) {
        int is_lower = asked == PROBES || asked == ASKED - 1;
        if ((is_lower && has_lower) || !has_half(filter, mixes[asked]))
            continue;
        has_lower |= is_lower;
        found[count++] = is_lower ? PROBES : asked;
    }
    return count;
}

static uint64_t fingerprint_at(const unsigned char *bytes)
{
    uint64_t number = 0;
    for (int at = 0; at < FINGERPRINT; at++)
        number = number << 8 | bytes[at];
    return number;
}

static int is_close(uint64_t one, uint64_t other, long most)
{
    return __builtin_popcountll(one ^ other) <= most;
}

#endif
