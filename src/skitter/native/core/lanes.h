/* Sixteen bytes looked at in one step: a mask has a bit for each byte, the first byte's lowest. Whoever loads them sees
 * to it that sixteen can be read. */

#ifndef SKITTER_LANES_H
#define SKITTER_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

#ifdef __SSE2__
#include <emmintrin.h>

typedef __m128i Lanes;

static inline Lanes lanes_at(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

static inline void put_lanes(uint8_t *to, Lanes lanes)
{
    _mm_storeu_si128((__m128i *)to, lanes);
}

static inline uint32_t equal_to(Lanes lanes, uint8_t byte)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(lanes, _mm_set1_epi8((char)byte)));
}

static inline uint32_t at_most(Lanes lanes, uint8_t byte)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(lanes, _mm_set1_epi8((char)byte)), lanes));
}

static inline uint32_t above_ascii(Lanes lanes)
{
    return (uint32_t)_mm_movemask_epi8(lanes);
}

/* Each byte that is less becomes this one. */
static inline Lanes raised(Lanes lanes, uint8_t to)
{
    return _mm_max_epu8(lanes, _mm_set1_epi8((char)to));
}

static inline Lanes with_bits(Lanes lanes, uint8_t bits)
{
    return _mm_or_si128(lanes, _mm_set1_epi8((char)bits));
}

static inline Lanes less(Lanes lanes, uint8_t by)
{
    return _mm_sub_epi8(lanes, _mm_set1_epi8((char)by));
}

#else

typedef struct {
    uint8_t bytes[LANES];
} Lanes;

static inline Lanes lanes_at(const uint8_t *from)
{
    Lanes lanes;
    memcpy(lanes.bytes, from, LANES);
    return lanes;
}

static inline void put_lanes(uint8_t *to, Lanes lanes)
{
    memcpy(to, lanes.bytes, LANES);
}

static inline uint32_t equal_to(Lanes lanes, uint8_t byte)
{
    uint32_t mask = 0;
    for (int i = 0; i < LANES; i++)
        mask |= (uint32_t)(lanes.bytes[i] == byte) << i;
    return mask;
}

static inline uint32_t at_most(Lanes lanes, uint8_t byte)
{
    uint32_t mask = 0;
    for (int i = 0; i < LANES; i++)
        mask |= (uint32_t)(lanes.bytes[i] <= byte) << i;
    return mask;
}

static inline uint32_t above_ascii(Lanes lanes)
{
    return ~at_most(lanes, 0x7F) & 0xFFFF;
}

static inline Lanes raised(Lanes lanes, uint8_t to)
{
    for (int i = 0; i < LANES; i++)
        lanes.bytes[i] = lanes.bytes[i] < to ? to : lanes.bytes[i];
    return lanes;
}

static inline Lanes with_bits(Lanes lanes, uint8_t bits)
{
    for (int i = 0; i < LANES; i++)
        lanes.bytes[i] |= bits;
    return lanes;
}

static inline Lanes less(Lanes lanes, uint8_t by)
{
    for (int i = 0; i < LANES; i++)
        lanes.bytes[i] = (uint8_t)(lanes.bytes[i] - by);
    return lanes;
}

#endif

/* A mask is not empty. */
static inline size_t first_of(uint32_t mask)
{
    return (size_t)__builtin_ctz(mask);
}

/* The first `count` bytes only. */
static inline uint32_t among_first(uint32_t mask, size_t count)
{
    return count < LANES ? mask & ((1u << count) - 1) : mask;
}

/* Eight bytes as a number, the first lowest. */
static inline uint64_t little_word(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t first_bytes(uint64_t word, size_t count)
{
    return count < 8 ? word & (((uint64_t)1 << 8 * count) - 1) : word;
}

#endif
