/* Keys of all kinds into tables of odd sizes: the sizes come first, then keys of 16 bytes, the last byte of which says
 * what is done with them. */

#include "../../src/skitter/native/core/keyset.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), PIECE("one-host"), PIECE("two-host"),
    PIECE("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), PIECE("\x01"), PIECE("\x02"),
    PIECE("one-hostthe-page"), PIECE("\xFF"), PIECE("\0")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

typedef struct {
    uint8_t *bytes;
    uint64_t size, buckets;
} Table;

static void start(void)
{
}

static Table table_of(uint64_t buckets)
{
    return (Table){calloc(buckets, BUCKET), buckets * BUCKET, buckets};
}

static void check_bloom(uint8_t *filter, uint64_t size, int hashes, const uint8_t *key)
{
    Walk walk = walk_of(key);
    may_have(filter, size * 8, hashes, walk);
    put_in(filter, size * 8, hashes, walk);
    expect(may_have(filter, size * 8, hashes, walk), "a key that was put in is not there");
}

static void check_table(const Table *table, const uint8_t *key)
{
    prefetch_bucket(table->bytes, table->buckets, key);
    touch(table->bytes, table->buckets, both_halves(key), 0);
    touch(table->bytes, table->buckets, both_halves(key), 1);
    expect(touch(table->bytes, table->buckets, both_halves(key), 0), "a key that was added is not there");
}

static void try_input(const uint8_t *bytes, size_t length)
{
    if (length < 4)
        return;
    Table table = table_of(1 + bytes[0] % 40), larger = table_of(table.buckets + bytes[1] % 200);
    uint64_t size = 1 + bytes[2];
    uint8_t *filter = calloc(size, 1);
    int hashes = 1 + bytes[3] % MOST_HASHES;
    for (size_t at = 4; at + KEY <= length && at < 4 + 500 * KEY; at += KEY) {
        check_table(&table, bytes + at);
        check_bloom(filter, size, hashes, bytes + at);
        if (bytes[at + KEY - 1] == 1)
            move_all(table.bytes, table.buckets, larger.bytes, larger.buckets);
        expect(has_linker(bytes + at, KEY, bytes + at + HALF), "a linker that is there was not found");
        is_doubled(length - at);
    }
    has_linker(bytes, length, (const uint8_t *)"\xA5\x5A"); /* hardly ever there: read to the end */
    free(table.bytes);
    free(larger.bytes);
    free(filter);
}
