/* A gzip member of few bytes: one block with the fixed codes of RFC 1951, 3.2.6. A general compressor spends most of its
 * time on such a record with making itself ready, and level 0 of ours finds next to no repeats in it. Free of Python, so
 * that it can be run alone under sanitizers. */

#ifndef SKITTER_SHORTGZIP_CORE_H
#define SKITTER_SHORTGZIP_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    MOST_SHORT = 4096,
    MEMBER_HEAD = 10,
    MEMBER_TAIL = 8,
    SHORTEST_MATCH = 4,
    LONGEST_MATCH = 258,
    HASH_BITS = 10,
    NOWHERE = 0xFFFF,
    END_OF_BLOCK = 256,
    LENGTHS = LONGEST_MATCH + 1,
};

/* Nine bits a byte at most, and room for the last word. */
enum { MOST_MEMBER = MEMBER_HEAD + MOST_SHORT + MOST_SHORT / 8 + 16 + MEMBER_TAIL };

typedef struct {
    uint32_t bits;
    uint32_t count;
} Code;

static Code literal_codes[END_OF_BLOCK + 1];
static Code length_codes[LENGTHS];
static uint32_t crc_tables[4][256];

static uint32_t reversed(uint32_t code, uint32_t count)
{
    uint32_t result = 0;
    for (; count; count--, code >>= 1)
        result = result << 1 | (code & 1);
    return result;
}

static Code fixed_code(uint32_t symbol)
{
    if (symbol < 144)
        return (Code){reversed(0x30 + symbol, 8), 8};
    if (symbol < 256)
        return (Code){reversed(0x190 + symbol - 144, 9), 9};
    if (symbol < 280)
        return (Code){reversed(symbol - 256, 7), 7};
    return (Code){reversed(0xC0 + symbol - 280, 8), 8};
}

/* RFC 1951, 3.2.5: four symbols for each number of extra bits, and one of its own for the longest. */
static Code length_code(uint32_t length)
{
    uint32_t symbol = 257, first = 3, extra = 0;
    if (length == LONGEST_MATCH)
        return fixed_code(285);
    while (length >= first + (1u << extra)) {
        first += 1u << extra;
        symbol++;
        extra = symbol < 265 ? 0 : (symbol - 261) / 4;
    }
    Code code = fixed_code(symbol);
    return (Code){code.bits | (length - first) << code.count, code.count + extra};
}

/* Two symbols for each number of extra bits. */
static Code distance_code(uint32_t distance)
{
    uint32_t value = distance - 1, extra = 0;
    while (value >> (extra + 2))
        extra++;
    uint32_t symbol = value < 4 ? value : 2 * extra + (value >> extra);
    uint32_t rest = value < 4 ? 0 : value & ((1u << extra) - 1);
    extra = value < 4 ? 0 : extra;
    return (Code){reversed(symbol, 5) | rest << 5, 5 + extra};
}

static void fill_codes(void)
{
    for (uint32_t symbol = 0; symbol <= END_OF_BLOCK; symbol++)
        literal_codes[symbol] = fixed_code(symbol);
    for (uint32_t length = 3; length < LENGTHS; length++)
        length_codes[length] = length_code(length);
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ 0xEDB88320u : sum >> 1;
        crc_tables[0][byte] = sum;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int table = 1; table < 4; table++) {
            uint32_t sum = crc_tables[table - 1][byte];
            crc_tables[table][byte] = sum >> 8 ^ crc_tables[0][sum & 0xFF];
        }
}

static uint32_t crc_of(const uint8_t *text, size_t length)
{
    uint32_t sum = 0xFFFFFFFFu;
    for (; length >= 4; text += 4, length -= 4) {
        sum ^= (uint32_t)text[0] | (uint32_t)text[1] << 8 | (uint32_t)text[2] << 16 | (uint32_t)text[3] << 24;
        sum = crc_tables[3][sum & 0xFF] ^ crc_tables[2][sum >> 8 & 0xFF] ^ crc_tables[1][sum >> 16 & 0xFF] ^
              crc_tables[0][sum >> 24];
    }
    for (; length; text++, length--)
        sum = sum >> 8 ^ crc_tables[0][(sum ^ *text) & 0xFF];
    return ~sum;
}

typedef struct {
    uint8_t *to;
    uint32_t bits;
    uint32_t count;
} Bits;

static uint8_t *put_word(uint8_t *to, uint32_t word)
{
    to[0] = (uint8_t)word;
    to[1] = (uint8_t)(word >> 8);
    to[2] = (uint8_t)(word >> 16);
    to[3] = (uint8_t)(word >> 24);
    return to + 4;
}

/* A whole word each time, of which only full bytes count: at most 7 bits are held and 18 come. */
static void put_bits(Bits *bits, Code code)
{
    bits->bits |= code.bits << bits->count;
    bits->count += code.count;
    put_word(bits->to, bits->bits);
    bits->to += bits->count / 8;
    bits->bits >>= bits->count & ~7u;
    bits->count %= 8;
}

static uint32_t four_at(const uint8_t *text)
{
    uint32_t four;
    memcpy(&four, text, sizeof four);
    return four;
}

static size_t match_length(const uint8_t *text, size_t at, size_t before, size_t length)
{
    size_t most = length - at < LONGEST_MATCH ? length - at : LONGEST_MATCH, found = SHORTEST_MATCH;
    while (found < most && text[at + found] == text[before + found])
        found++;
    return found;
}

static uint8_t *put_block(const uint8_t *text, size_t length, uint8_t *to)
{
    uint16_t last[1 << HASH_BITS];
    Bits bits = {to, 0, 0};
    memset(last, 0xFF, sizeof last);
    put_bits(&bits, (Code){3, 3}); /* the last block, with fixed codes */
    for (size_t at = 0; at < length;) {
        uint16_t before = NOWHERE;
        if (length - at >= SHORTEST_MATCH) {
            uint32_t place = four_at(text + at) * 0x9E3779B1u >> (32 - HASH_BITS);
            before = last[place];
            last[place] = (uint16_t)at;
        }
        if (before == NOWHERE || four_at(text + at) != four_at(text + before)) {
            put_bits(&bits, literal_codes[text[at++]]);
            continue;
        }
        size_t found = match_length(text, at, before, length);
        put_bits(&bits, length_codes[found]);
        put_bits(&bits, distance_code((uint32_t)(at - before)));
        at += found;
    }
    put_bits(&bits, literal_codes[END_OF_BLOCK]);
    put_bits(&bits, (Code){0, 7}); /* to the end of a byte */
    return bits.to;
}

/* `text` is of at most MOST_SHORT bytes, `to` has room for MOST_MEMBER; returns how many it took. */
static size_t write_member(const uint8_t *text, size_t length, uint8_t *to)
{
    static const uint8_t HEAD[MEMBER_HEAD] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF};
    uint8_t *start = to;
    memcpy(to, HEAD, MEMBER_HEAD);
    to = put_block(text, length, to + MEMBER_HEAD);
    to = put_word(to, crc_of(text, length));
    to = put_word(to, (uint32_t)length);
    return (size_t)(to - start);
}

#endif
