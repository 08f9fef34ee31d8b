/* Where the head of an answer lies among all header lines that came, and what its lines say. Free of Python, so that
 * it can be run alone under sanitizers. */

#ifndef SKITTER_HEADS_CORE_H
#define SKITTER_HEADS_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_DIGITS = 9 };

typedef struct {
    const uint8_t *text;
    size_t length;
} Span;

/* What bytes.split and \s mean. */
static int is_ascii_space(uint8_t code)
{
    return code == ' ' || (code >= 9 && code <= 13);
}

/* What str.strip means, of the characters that are one byte in Latin-1. */
static int is_space(uint8_t code)
{
    return is_ascii_space(code) || (code >= 0x1C && code <= 0x1F) || code == 0x85 || code == 0xA0;
}

static uint8_t in_lower_case(uint8_t code)
{
    int is_upper = (code >= 'A' && code <= 'Z') || (code >= 0xC0 && code <= 0xDE && code != 0xD7);
    return is_upper ? (uint8_t)(code + 32) : code;
}

static int is_digit(uint8_t code)
{
    return code >= '0' && code <= '9';
}

static int is_word(uint8_t code)
{
    return is_digit(code) || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') || code == '_';
}

static Span stripped(const uint8_t *text, size_t length)
{
    while (length && is_space(text[0]))
        text++, length--;
    while (length && is_space(text[length - 1]))
        length--;
    return (Span){text, length};
}

/* How long the block is up to and with its empty line; 0 when there is none. */
static size_t block_length(const uint8_t *raw, size_t length)
{
    const uint8_t *end = raw + length, *at = raw;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        const uint8_t *next = at < end && *at == '\r' ? at + 1 : at;
        if (next < end && *next == '\n')
            return (size_t)(next - raw) + 1;
    }
    return 0;
}

/* RFC 9110 15.2: such an answer comes before the one that counts; 101 is the last one on its connection. */
static int is_interim(const uint8_t *raw, size_t length)
{
    size_t at = 5;
    if (length < at || memcmp(raw, "HTTP/", at) != 0)
        return 0;
    while (at < length && !is_ascii_space(raw[at]))
        at++;
    size_t version_end = at;
    while (at < length && raw[at] == ' ')
        at++;
    if (version_end == 5 || at == version_end || length - at < 3 || raw[at] != '1')
        return 0;
    if (!is_digit(raw[at + 1]) || !is_digit(raw[at + 2]) || memcmp(raw + at, "101", 3) == 0)
        return 0;
    return length - at == 3 || !is_word(raw[at + 3]);
}

/* The head that counts, without what came before it and behind it; empty while it is not whole. */
static Span head_of(const uint8_t *raw, size_t length)
{
    size_t block;
    while ((block = block_length(raw, length)) != 0) {
        if (!is_interim(raw, length))
            return (Span){raw, block};
        raw += block;
        length -= block;
    }
    return (Span){raw, 0};
}

/* The head's second word, when it is a number; else 0. */
static long status_of(Span head)
{
    size_t at = 0;
    while (at < head.length && is_ascii_space(head.text[at]))
        at++;
    while (at < head.length && !is_ascii_space(head.text[at]))
        at++;
    while (at < head.length && is_ascii_space(head.text[at]))
        at++;
    long status = 0;
    for (size_t digits = 0; at < head.length && !is_ascii_space(head.text[at]); at++, digits++) {
        if (!is_digit(head.text[at]) || digits == MOST_DIGITS)
            return 0;
        status = status * 10 + (head.text[at] - '0');
    }
    return status;
}

/* The name and the value of the first line from `*at` on that has a colon; `*at` is left behind it. 0 at the end. */
static int next_field(Span head, size_t *at, Span *name, Span *value)
{
    while (*at < head.length) {
        const uint8_t *line = head.text + *at;
        const uint8_t *end = memchr(line, '\n', head.length - *at);
        size_t length = end ? (size_t)(end - line) : head.length - *at;
        *at += length + (end != NULL);
        const uint8_t *colon = memchr(line, ':', length);
        if (colon) {
            size_t before = (size_t)(colon - line);
            *name = stripped(line, before);
            *value = stripped(colon + 1, length - before - 1);
            return 1;
        }
    }
    return 0;
}

/* Where the second line begins: the first one is no field. */
static size_t first_field(Span head)
{
    const uint8_t *end = head.length ? memchr(head.text, '\n', head.length) : NULL;
    return end ? (size_t)(end - head.text) + 1 : head.length;
}

#endif
