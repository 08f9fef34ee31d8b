/* Values as msgpack: the head of each is made here, what it stands before is looked at where it lies. Integers take as few
 * bytes as they can, as msgspec writes them. */

#ifndef SKITTER_MSGPACK_H
#define SKITTER_MSGPACK_H

#include "pieces.h"

/* Of a dozen values, the heads of which take nine bytes at most. */
enum { SCRATCH = 128, LONGEST_FIXED = 31 };

typedef struct {
    Text text;
    char heads[SCRATCH];
    size_t used;
} Packed;

static inline void clear(Packed *packed)
{
    packed->text.count = packed->text.length = packed->used = 0;
}

/* The first byte of a value and the bytes of a number after it, highest first. */
static inline void put_head(Packed *packed, unsigned first, uint64_t number, int width)
{
    char *head = packed->heads + packed->used;
    if (packed->used + 9 > SCRATCH)
        return;
    head[0] = (char)first;
    for (int at = width; at > 0; at--, number >>= 8)
        head[at] = (char)(number & 0xFF);
    packed->used += (size_t)width + 1;
    put(&packed->text, head, (size_t)width + 1);
}

static inline void put_unsigned(Packed *packed, uint64_t value)
{
    if (value < 0x80)
        put_head(packed, (unsigned)value, 0, 0);
    else if (value <= 0xFF)
        put_head(packed, 0xCC, value, 1);
    else if (value <= 0xFFFF)
        put_head(packed, 0xCD, value, 2);
    else if (value <= 0xFFFFFFFF)
        put_head(packed, 0xCE, value, 4);
    else
        put_head(packed, 0xCF, value, 8);
}

static inline void put_integer(Packed *packed, long long value)
{
    if (value >= 0)
        put_unsigned(packed, (uint64_t)value);
    else if (value >= -32)
        put_head(packed, (unsigned)(value & 0xFF), 0, 0);
    else if (value >= INT8_MIN)
        put_head(packed, 0xD0, (uint64_t)value, 1);
    else if (value >= INT16_MIN)
        put_head(packed, 0xD1, (uint64_t)value, 2);
    else if (value >= INT32_MIN)
        put_head(packed, 0xD2, (uint64_t)value, 4);
    else
        put_head(packed, 0xD3, (uint64_t)value, 8);
}

static inline void put_float(Packed *packed, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_head(packed, 0xCB, bits, 8);
}

static inline void put_string_head(Packed *packed, size_t length)
{
    if (length <= LONGEST_FIXED)
        put_head(packed, 0xA0 | (unsigned)length, 0, 0);
    else if (length <= 0xFF)
        put_head(packed, 0xD9, length, 1);
    else if (length <= 0xFFFF)
        put_head(packed, 0xDA, length, 2);
    else
        put_head(packed, 0xDB, length, 4);
}

static inline void put_string(Packed *packed, Piece piece)
{
    put_string_head(packed, piece.length);
    put_piece(&packed->text, piece);
}

static inline void put_binary(Packed *packed, Piece piece)
{
    int width = piece.length <= 0xFF ? 1 : piece.length <= 0xFFFF ? 2 : 4;
    put_head(packed, width == 1 ? 0xC4 : width == 2 ? 0xC5 : 0xC6, piece.length, width);
    put_piece(&packed->text, piece);
}

#endif
