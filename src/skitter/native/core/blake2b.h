/* BLAKE2b of 8 bytes without a key (RFC 7693), for keys of URLs. Plain C. A call of hashlib costs four times
 * as much as the hash. */

#ifndef SKITTER_BLAKE2B_H
#define SKITTER_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BLAKE2B_BLOCK = 128, BLAKE2B_ROUNDS = 12, BLAKE2B_KEY = 8 };

static const uint64_t blake2b_start[8] = {
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
};

static const uint8_t blake2b_order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t blake2b_rotated(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

static inline uint64_t blake2b_word(const uint8_t *bytes)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
#else
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | bytes[i];
    return word;
#endif
}

static inline void blake2b_mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = blake2b_rotated(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = blake2b_rotated(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = blake2b_rotated(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = blake2b_rotated(v[b] ^ v[c], 63);
}

/* `count` bytes have been read with this block; they are fewer than 2**64. */
static inline void blake2b_block(uint64_t *state, const uint8_t *block, uint64_t count, int is_last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++)
        m[i] = blake2b_word(block + 8 * i);
    memcpy(v, state, 8 * sizeof *v);
    memcpy(v + 8, blake2b_start, 8 * sizeof *v);
    v[12] ^= count;
    if (is_last)
        v[14] = ~v[14];
/* So that the order of the words is in the code, not read from the table: a third of the time. */
#pragma GCC unroll 12
    for (int round = 0; round < BLAKE2B_ROUNDS; round++) {
        const uint8_t *s = blake2b_order[round % 10];
        blake2b_mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        blake2b_mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        blake2b_mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        blake2b_mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        blake2b_mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        blake2b_mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        blake2b_mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        blake2b_mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        state[i] ^= v[i] ^ v[i + 8];
}

/* The key is the little-endian bytes of the state's first word. */
static inline void blake2b_key(const uint8_t *bytes, size_t length, uint8_t *key)
{
    uint64_t state[8];
    uint8_t last[BLAKE2B_BLOCK] = {0};
    size_t at = 0;
    memcpy(state, blake2b_start, sizeof state);
    state[0] ^= 0x01010000u ^ BLAKE2B_KEY;
    for (; length - at > BLAKE2B_BLOCK; at += BLAKE2B_BLOCK)
        blake2b_block(state, bytes + at, at + BLAKE2B_BLOCK, 0);
    memcpy(last, bytes + at, length - at);
    blake2b_block(state, last, length, 1);
    for (int i = 0; i < BLAKE2B_KEY; i++)
        key[i] = (uint8_t)(state[0] >> 8 * i);
}

#endif
