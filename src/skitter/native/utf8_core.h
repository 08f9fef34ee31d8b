/* UTF-8 of texts of one or two bytes a character, as Python keeps most of them. Most of a page is ASCII even when not all
 * of it is: runs of it are copied eight at a time, where Python's own encoder goes character by character (8 KB with
 * some no-break spaces: 1 us, not 10). Free of Python, so that it can be run alone under sanitizers. */

#ifndef SKITTER_UTF8_CORE_H
#define SKITTER_UTF8_CORE_H

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

#endif
