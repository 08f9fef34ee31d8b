/* What strangers send, when it is of the usual kind: a response's head that can be stored as it is, a URL's path that
 * is its own key. Free of Python, so that it can be run alone under sanitizers. */

#ifndef SKITTER_USUAL_CORE_H
#define SKITTER_USUAL_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static int is_token_character(uint8_t code)
{
    if ((code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z'))
        return 1;
    return code && strchr("!#$%&'*+.^_`|~-", code) != NULL;
}

static uint8_t lowered(uint8_t code)
{
    return code >= 'A' && code <= 'Z' ? (uint8_t)(code + 32) : code;
}

/* Whether `text` begins with `start`, which is in lower case. */
static int begins_with(const uint8_t *text, size_t length, const char *start, size_t start_length)
{
    if (length < start_length)
        return 0;
    for (size_t at = 0; at < start_length; at++)
        if (lowered(text[at]) != (uint8_t)start[at])
            return 0;
    return 1;
}

/* How long the line is that begins here, without its CR LF; -1 when it holds or ends in anything else. */
static ptrdiff_t line_length(const uint8_t *text, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        uint8_t code = text[at];
        if (code == '\r')
            return at + 1 < length && text[at + 1] == '\n' ? (ptrdiff_t)at : -1;
        if (code == '\n' || code == 0)
            return -1;
    }
    return -1;
}

static int is_status_line(const uint8_t *line, size_t length)
{
    if (length < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
        return 0;
    for (int at = 9; at < 12; at++)
        if (line[at] < '0' || line[at] > '9')
            return 0;
    return 1;
}

static int is_field(const uint8_t *line, size_t length)
{
    size_t at = 0;
    while (at < length && is_token_character(line[at]))
        at++;
    return at > 0 && at < length && line[at] == ':';
}

/* Whether a head is well-formed HTTP/1 and says once, and rightly, how long its body is: `framing` is that line in
 * lower case. */
static int is_usual_head(const uint8_t *head, size_t length, const char *framing, size_t framing_length)
{
    static const char LENGTH[] = "content-length", CODING[] = "transfer-encoding";
    size_t at = 0, lengths = 0;
    int right = 0, first = 1;
    for (;;) {
        const uint8_t *line = head + at;
        ptrdiff_t found = line_length(line, length - at);
        if (found < 0)
            return 0;
        size_t taken = (size_t)found;
        at += taken + 2;
        if (first ? !is_status_line(line, taken) : taken && !is_field(line, taken))
            return 0;
        first = 0;
        if (!taken)
            return at == length && right && lengths == 1;
        if (begins_with(line, taken, CODING, sizeof CODING - 1))
            return 0;
        if (begins_with(line, taken, LENGTH, sizeof LENGTH - 1)) {
            lengths++;
            right |= taken == framing_length && begins_with(line, taken, framing, framing_length);
        }
    }
}

/* Writes the path in lower case. Whether that is its key: nothing in it to decode, to sort or to fold. */
static int is_usual_path(const uint8_t *path, size_t length, uint8_t *lower)
{
    if (length > 1 && path[length - 1] == '/')
        return 0;
    for (size_t at = 0; at < length; at++) {
        uint8_t code = path[at];
        if (code <= ' ' || code > '~' || code == '%' || code == '?' || code == '#')
            return 0;
        if ((code == '/' || code == '.') && at && path[at - 1] == '/')
            return 0;
        lower[at] = lowered(code);
        if (lower[at] == 'x' && at >= 4 && memcmp(lower + at - 4, ".aspx", 5) == 0)
            return 0;
    }
    return 1;
}

#endif
