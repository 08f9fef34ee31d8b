/* Keys that are certainly known, and a Bloom filter of keys: skitter/frontier/keyset_plain.py defines both. Plain C.
 *
 * Tables are buffers that the caller owns; a key is 16 bytes, its host's half first. Nothing is kept here. */

#ifndef SKITTER_KEYSET_H
#define SKITTER_KEYSET_H

#include <stdint.h>
#include <string.h>

#include "mixing.h"
#include "prefetch.h"

enum { KEY = 16, HALF = 8, ENTRY = 6, WAYS = 10, BUCKET = 64, MOST_HASHES = 32 };
/* Of each linking host two bytes are kept: its mark. */
enum { LINKER = 2, MOST_LINKERS = 32 };

static const uint64_t MOST_OF_ENTRY = ((uint64_t)1 << 8 * ENTRY) - 1;

static uint64_t half(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int at = 0; at < HALF; at++)
        number = number << 8 | bytes[at];
    return number;
}

/* -- keys known for certain: buckets of ten places, 6 bytes a place, the youngest first, and 4 bytes to spare: a bucket
 * is a line of the processor's cache. Which bucket it is says the rest of a key: with more than 65,536 of them, which is
 * the caller's to see to, nothing of its 64 bits is lost. */

static uint64_t both_halves(const uint8_t *key)
{
    return half(key) ^ half(key + HALF);
}

/* Two bytes more are read than it has, in one go with them: the last place of a bucket has four behind it. */
static uint64_t entry_at(const uint8_t *place)
{
    uint64_t entry = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&entry, place, sizeof entry);
#else
    for (int at = sizeof entry; at-- > 0;)
        entry = entry << 8 | place[at];
#endif
    return entry & MOST_OF_ENTRY;
}

static void put_first(uint8_t *bucket, int from, uint64_t entry)
{
    memmove(bucket + ENTRY, bucket, (size_t)from * ENTRY);
    for (int at = 0; at < ENTRY; at++, entry >>= 8)
        bucket[at] = (uint8_t)entry;
}

/* Whether a key is there. A key that was asked for moves to the front of its bucket, so that it is kept longest: a site's
 * menu is linked by all of its pages, most others by one. With `is_added` it is put there when it was missing. */
static int touch(uint8_t *table, uint64_t buckets, uint64_t both, int is_added)
{
    uint64_t entry = (both / buckets + 1) & MOST_OF_ENTRY; /* 0 is an empty place */
    uint8_t *bucket = table + both % buckets * BUCKET;
    for (int way = 0; way < WAYS; way++) {
        if (entry_at(bucket + way * ENTRY) != entry)
            continue;
        if (way)
            put_first(bucket, way, entry);
        return 1;
    }
    if (is_added)
        put_first(bucket, WAYS - 1, entry);
    return 0;
}

/* All keys of a table go to a larger one, of each bucket the oldest first: the youngest is the first again. */
static void move_all(const uint8_t *from, uint64_t buckets, uint8_t *to, uint64_t more)
{
    for (uint64_t bucket = 0; bucket < buckets; bucket++)
        for (int way = WAYS; way-- > 0;) {
            uint64_t entry = entry_at(from + bucket * BUCKET + way * ENTRY);
            if (entry)
                touch(to, more, (entry - 1) * buckets + bucket, 1);
        }
}

/* -- the Bloom filter: double hashing, each place by the upper half of a product */

typedef struct {
    uint64_t at, step;
} Walk;

static Walk walk_of(const uint8_t *key)
{
    uint64_t host = half(key), rest = half(key + HALF);
    /* Hosts have the same paths, and paths the same host: neither half may stand for the key. */
    uint64_t at = mixed(host * 0x9E3779B97F4A7C15u + rest);
    return (Walk){at, mixed(at ^ rest) | 1};
}

static uint64_t place_of(uint64_t at, uint64_t bits)
{
    return (uint64_t)((unsigned __int128)at * bits >> 64);
}

static int may_have(const uint8_t *filter, uint64_t bits, int hashes, Walk walk)
{
    for (int hash = 0; hash < hashes; hash++, walk.at += walk.step) {
        uint64_t place = place_of(walk.at, bits);
        if (!(filter[place >> 3] >> (place & 7) & 1))
            return 0;
    }
    return 1;
}

static void put_in(uint8_t *filter, uint64_t bits, int hashes, Walk walk)
{
    for (int hash = 0; hash < hashes; hash++, walk.at += walk.step) {
        uint64_t place = place_of(walk.at, bits);
        filter[place >> 3] |= (uint8_t)(1 << (place & 7));
    }
}

static void prefetch_bucket(const uint8_t *table, uint64_t buckets, const uint8_t *key)
{
    prefetch(table + both_halves(key) % buckets * BUCKET);
}

/* -- linkers: the marks of hosts that were seen to link a key, one behind the other */

static int has_linker(const uint8_t *linkers, size_t length, const uint8_t *linker)
{
    for (size_t at = 0; at + LINKER <= length; at += LINKER)
        if (!memcmp(linkers + at, linker, LINKER))
            return 1;
    return 0;
}

/* Whether there are 2, 4, 8 ... of them. */
static int is_doubled(size_t length)
{
    size_t count = length / LINKER;
    return count > 1 && !(count & (count - 1));
}

#endif
