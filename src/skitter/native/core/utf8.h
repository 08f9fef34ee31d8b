/* UTF-8 of texts of one or two bytes a character, as Python keeps most of them, and whether bytes are UTF-8. Plain C.
 *
 * Most of a page is ASCII even when not all of it is: runs of it are copied eight bytes at a time, where Python's own
 * encoder goes character by character. */

#ifndef SKITTER_UTF8_H
#define SKITTER_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RUN = 8 };

/* A surrogate is no character, and alone wherever it stands here: it becomes a question mark. */
static inline uint8_t *write_character(uint16_t code, uint8_t *to)
{
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6);
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else if (code >> 11 == 0x1B) {
        *to++ = '?';
    } else {
        *to++ = (uint8_t)(0xE0 | code >> 12);
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    }
    return to;
}

/* `to` has room for two bytes a character; returns where it ends. */
static inline uint8_t *write_utf8_of_bytes(const uint8_t *text, size_t count, uint8_t *to)
{
    size_t at = 0;
    for (; count - at >= RUN; at += RUN) {
        uint64_t run;
        memcpy(&run, text + at, RUN);
        if (run & 0x8080808080808080u) {
            for (size_t next = at; next < at + RUN; next++)
                to = write_character(text[next], to);
        } else {
            memcpy(to, &run, RUN);
            to += RUN;
        }
    }
    for (; at < count; at++)
        to = write_character(text[at], to);
    return to;
}

/* `to` has room for three bytes a character; returns where it ends. */
static inline uint8_t *write_utf8_of_pairs(const uint16_t *text, size_t count, uint8_t *to)
{
    size_t at = 0;
    for (; count - at >= RUN; at += RUN) {
        uint64_t first, second;
        memcpy(&first, text + at, sizeof first);
        memcpy(&second, text + at + RUN / 2, sizeof second);
        if ((first | second) & 0xFF80FF80FF80FF80u) {
            for (size_t next = at; next < at + RUN; next++)
                to = write_character(text[next], to);
        } else {
            for (size_t next = 0; next < RUN; next++)
                to[next] = (uint8_t)text[at + next];
            to += RUN;
        }
    }
    for (; at < count; at++)
        to = write_character(text[at], to);
    return to;
}

/* How long the character is that begins with this byte, which is none of ASCII; 0 when none does. The second byte, which
 * alone has narrower bounds than the others, is checked with it: no overlong forms, no surrogates, nothing beyond U+10FFFF
 * (Unicode, table 3-7). */
static inline size_t character_length(const uint8_t *text, size_t left)
{
    uint8_t first = text[0], second = left > 1 ? text[1] : 0;
    uint8_t lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    size_t length = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return length <= left && second >= lowest && second <= highest ? length : 0;
}

static inline int is_utf8(const uint8_t *text, size_t count)
{
    size_t at = 0;
    for (;;) {
        for (uint64_t run; count - at >= RUN; at += RUN) {
            memcpy(&run, text + at, RUN);
            if (run & 0x8080808080808080u)
                break;
        }
        while (at < count && text[at] < 0x80)
            at++;
        if (at == count)
            return 1;
        size_t length = character_length(text + at, count - at);
        if (!length)
            return 0;
        for (size_t next = 2; next < length; next++)
            if (text[at + next] >> 6 != 2)
                return 0;
        at += length;
    }
}

#endif
