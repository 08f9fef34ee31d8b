/* Tokens of HTML (13.2.5) in bytes that are known to be UTF-8 without carriage returns and other controls: where tags,
 * attributes, comments and raw texts end, and what character references stand for. Knows no tree. */

#ifndef SKITTER_MARKUP_TOKENS_H
#define SKITTER_MARKUP_TOKENS_H

#include "names.h"

#include <stdlib.h>

/* All that is looked at lies in memory with LANES bytes to spare behind it, which may be read and mean nothing. */

enum { WHITE = 1, LETTER = 2, DIGIT = 4, ENDS_TAG_NAME = 8, ENDS_VALUE = 16 };

static uint8_t classes[256];

static void fill_classes(void)
{
    for (int byte = 0; byte < 256; byte++) {
        bool white = byte == ' ' || byte == '\n' || byte == '\t' || byte == '\f';
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool ends = white || byte == '/' || byte == '>';
        classes[byte] = (uint8_t)((white ? WHITE | ENDS_VALUE : 0) | (letter ? LETTER : 0) |
                                  (byte >= '0' && byte <= '9' ? DIGIT : 0) |
                                  (ends ? ENDS_TAG_NAME : 0) | (byte == '>' ? ENDS_VALUE : 0));
    }
}

/* There are no other controls. */
static inline bool is_white(uint8_t byte)
{
    return byte <= ' ';
}

/* Bytes that grow, with LANES to spare. Once `failed`, nothing more is written. */
typedef struct {
    uint8_t *at;
    size_t used, room;
    bool failed;
} Bytes;

static bool make_room(Bytes *bytes, size_t more)
{
    if (bytes->room - bytes->used >= more + LANES)
        return true;
    size_t room = (bytes->used + more) * 2 + LANES;
    uint8_t *grown = bytes->failed ? NULL : realloc(bytes->at, room);
    if (!grown) {
        bytes->failed = true;
        return false;
    }
    bytes->at = grown;
    bytes->room = room;
    return true;
}

static bool append(Bytes *bytes, const uint8_t *from, size_t length)
{
    if (!make_room(bytes, length))
        return false;
    if (length)
        memcpy(bytes->at + bytes->used, from, length);
    bytes->used += length;
    return true;
}

/* Character references (13.2.5.72 to 80). */

enum { LONGEST_REFERENCE = 33, LONGEST_BARE = 6, REFERENCE_SLOTS = 8192, MOST_REFERENCES = 4000 };

typedef struct {
    char name[LONGEST_REFERENCE];
    uint8_t length, size;
    uint8_t text[8];
} Reference;

static Reference references[MOST_REFERENCES];
static uint16_t reference_slots[REFERENCE_SLOTS];
static int reference_count;

static uint32_t reference_slot(const uint8_t *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ name[i]) * 16777619u;
    return (hash ^ hash >> 15) % REFERENCE_SLOTS;
}

/* The slot of that name, or the free one where it would be. Names with a semicolon contain it. */
static uint32_t reference_place(const uint8_t *name, size_t length)
{
    uint32_t slot = reference_slot(name, length);
    for (; reference_slots[slot]; slot = (slot + 1) % REFERENCE_SLOTS) {
        const Reference *known = &references[reference_slots[slot] - 1];
        if (known->length == length && memcmp(known->name, name, length) == 0)
            break;
    }
    return slot;
}

static bool add_reference(const char *name, size_t length, const char *text, size_t size)
{
    if (length > LONGEST_REFERENCE || size > 8 || reference_count == MOST_REFERENCES)
        return false;
    Reference *added = &references[reference_count++];
    memcpy(added->name, name, length);
    memcpy(added->text, text, size);
    added->length = (uint8_t)length;
    added->size = (uint8_t)size;
    reference_slots[reference_place((const uint8_t *)name, length)] = (uint16_t)reference_count;
    return true;
}

static const Reference *reference_named(const uint8_t *name, size_t length)
{
    uint16_t found = reference_slots[reference_place(name, length)];
    return found ? &references[found - 1] : NULL;
}

static size_t put_code_point(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

static const uint16_t windows_1252[32] = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178,
};

static int digit_value(uint8_t byte, bool hexadecimal)
{
    if (classes[byte] & DIGIT)
        return byte - '0';
    byte = lowered(byte);
    return hexadecimal && byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* What a reference at `at` (an ampersand) stands for goes to `out`, which has room for 8 bytes. Gives how many bytes
 * it takes, 0 when it is no reference. A control character sets `odd`. */
static size_t read_number(const uint8_t *at, const uint8_t *end, uint8_t *out, size_t *size, bool *odd)
{
    const uint8_t *digit = at + 2;
    bool hexadecimal = digit < end && lowered(*digit) == 'x';
    digit += hexadecimal;
    const uint8_t *first = digit;
    uint32_t code = 0;
    int value;
    for (; digit < end && (value = digit_value(*digit, hexadecimal)) >= 0; digit++)
        if (code <= 0x10FFFF)
            code = code * (hexadecimal ? 16 : 10) + (uint32_t)value;
    if (digit == first)
        return 0;
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        code = 0xFFFD;
    else if (code >= 0x80 && code <= 0x9F)
        code = windows_1252[code - 0x80];
    *odd |= code < 0x20 && !(classes[code] & WHITE);
    *size = put_code_point(code, out);
    return (size_t)(digit - at) + (digit < end && *digit == ';');
}

static size_t read_reference(
    const uint8_t *at, const uint8_t *end, bool in_attribute, uint8_t *out, size_t *size, bool *odd)
{
    if (end - at > 1 && at[1] == '#')
        return read_number(at, end, out, size, odd);
    const uint8_t *name = at + 1;
    size_t most = (size_t)(end - name), length = 0;
    while (length < most && length < LONGEST_REFERENCE - 1 && classes[name[length]] & (LETTER | DIGIT))
        length++;
    const Reference *found = NULL;
    size_t taken = 0;
    if (length && length < most && name[length] == ';' && (found = reference_named(name, length + 1)))
        taken = length + 1;
    for (size_t bare = length < LONGEST_BARE ? length : LONGEST_BARE; !found && bare > 1; bare--)
        if ((found = reference_named(name, bare)))
            taken = bare;
    if (!found)
        return 0;
    if (in_attribute && name[taken - 1] != ';' && taken < most &&
        (name[taken] == '=' || classes[name[taken]] & (LETTER | DIGIT)))
        return 0;
    memcpy(out, found->text, found->size);
    *size = found->size;
    return taken + 1;
}

/* Appends the text with its references resolved. */
static void append_resolved(Bytes *bytes, const uint8_t *from, size_t length, bool in_attribute, bool *odd)
{
    const uint8_t *end = from + length;
    while (from < end) {
        const uint8_t *ampersand = memchr(from, '&', (size_t)(end - from));
        append(bytes, from, (size_t)((ampersand ? ampersand : end) - from));
        if (!ampersand)
            return;
        uint8_t text[8];
        size_t size = 1, taken = read_reference(ampersand, end, in_attribute, text, &size, odd);
        append(bytes, taken ? text : ampersand, taken ? size : 1);
        from = ampersand + (taken ? taken : 1);
    }
}

/* Tags. */

enum { HREF, REL, NAME, CONTENT, HTTP_EQUIV, SRC, TYPE, LANG, XML_LANG, XLINK_HREF, ROLE, CHARSET, ATTRIBUTES };

typedef struct {
    const uint8_t *at;
    size_t length;
} Value;

typedef struct {
    const uint8_t *begin, *name;
    size_t length;
    int tag;
    uint32_t has; /* a bit for each attribute below */
    bool self_closing;
    Value values[ATTRIBUTES];
} Tag;

static inline bool has(const Tag *tag, int attribute)
{
    return tag->has >> attribute & 1;
}

/* `said` is of small letters: no other byte becomes one by that bit. */
static inline bool is_short_name(const uint8_t *name, size_t length, const char *said)
{
    uint32_t word = 0, same = 0, small = 0;
    memcpy(&word, name, length);
    memcpy(&same, said, length);
    memset(&small, 0x20, length);
    return (word | small) == same;
}

static int attribute_named(const uint8_t *name, size_t length)
{
    switch (length) {
    case 3:
        return is_short_name(name, 3, "rel") ? REL : is_short_name(name, 3, "src") ? SRC : -1;
    case 4:
        return is_short_name(name, 4, "href")   ? HREF
               : is_short_name(name, 4, "name") ? NAME
               : is_short_name(name, 4, "type") ? TYPE
               : is_short_name(name, 4, "lang") ? LANG
               : is_short_name(name, 4, "role") ? ROLE
                                                : -1;
    case 7:
        return is_named(name, 7, "content") ? CONTENT : is_named(name, 7, "charset") ? CHARSET : -1;
    case 8:
        return is_named(name, 8, "xml:lang") ? XML_LANG : -1;
    case 10:
        return is_named(name, 10, "http-equiv") ? HTTP_EQUIV : is_named(name, 10, "xlink:href") ? XLINK_HREF : -1;
    }
    return -1;
}

static const uint8_t *skip_white(const uint8_t *at, const uint8_t *end)
{
    while (at < end && is_white(*at))
        at++;
    return at;
}

/* As memchr, which takes longer to be called than most values and texts to be looked through. */
static inline const uint8_t *find(const uint8_t *at, const uint8_t *end, uint8_t byte)
{
    for (; at < end; at += LANES) {
        uint32_t found = equal_to(lanes_at(at), byte);
        if (found)
            return at + first_of(found) < end ? at + first_of(found) : NULL;
    }
    return NULL;
}

/* The first such byte or the end; sets `refers` where there is an ampersand before it. */
static inline const uint8_t *find_end(const uint8_t *at, const uint8_t *end, uint8_t byte, bool *refers)
{
    uint32_t references = 0;
    for (; at < end; at += LANES) {
        Lanes lanes = lanes_at(at);
        uint32_t found = equal_to(lanes, byte);
        size_t left = (size_t)(end - at), count = found ? first_of(found) : LANES;
        references |= among_first(equal_to(lanes, '&'), count < left ? count : left);
        if (found) {
            end = count < left ? at + count : end;
            break;
        }
    }
    *refers = references != 0;
    return end;
}

static inline bool contains(const uint8_t *at, size_t length, uint8_t byte)
{
    return find(at, at + length, byte) != NULL;
}

/* The value that begins at `at`, behind the equals sign; gives what follows it, NULL at the end of the bytes. */
static const uint8_t *read_value(const uint8_t *at, const uint8_t *end, Value *value)
{
    at = skip_white(at, end);
    if (at == end)
        return NULL;
    if (*at == '"' || *at == '\'') {
        const uint8_t *quote = find(at + 1, end, *at);
        if (!quote)
            return NULL;
        *value = (Value){at + 1, (size_t)(quote - at - 1)};
        return quote + 1;
    }
    const uint8_t *begin = at;
    while (at < end && !(classes[*at] & ENDS_VALUE))
        at++;
    *value = (Value){begin, (size_t)(at - begin)};
    return at < end ? at : NULL;
}

/* Of a tag or an attribute. */
static inline const uint8_t *end_of_name(const uint8_t *at, const uint8_t *end, uint8_t also)
{
    for (; at < end; at += LANES) {
        Lanes lanes = lanes_at(at);
        uint32_t ends = at_most(lanes, ' ') | equal_to(lanes, '/') | equal_to(lanes, '>') | equal_to(lanes, also);
        if (ends)
            return at + first_of(ends) < end ? at + first_of(ends) : end;
    }
    return end;
}

static const uint8_t *read_attribute(const uint8_t *at, const uint8_t *end, Tag *tag)
{
    const uint8_t *name = at;
    at = end_of_name(at + 1, end, '='); /* which may begin a name */
    size_t length = (size_t)(at - name);
    Value value = {at, 0};
    at = skip_white(at, end);
    if (at == end)
        return NULL;
    if (*at == '=' && !(at = read_value(at + 1, end, &value)))
        return NULL;
    int known = attribute_named(name, length);
    if (known >= 0 && !has(tag, known)) {
        tag->has |= 1u << known;
        tag->values[known] = value;
    }
    return at;
}

/* Six of seven attributes are one of these, written so: known by one comparison. Gives what follows it, NULL when it is
 * none of them. `at` is the white space before it. */
static inline const uint8_t *read_usual_attribute(const uint8_t *at, const uint8_t *end, Tag *tag)
{
    static const uint8_t class[] = " class=\"", title[] = " title=\"", href[] = " href=\"\0";
    uint64_t word = little_word(at);
    bool links = first_bytes(word, 7) == little_word(href) && !has(tag, HREF);
    if (!links && word != little_word(class) && word != little_word(title))
        return NULL;
    const uint8_t *begin = at + (links ? 7 : 8), *quote = find(begin, end, '"');
    if (!quote)
        return NULL;
    if (links) {
        tag->has |= 1u << HREF;
        tag->values[HREF] = (Value){begin, (size_t)(quote - begin)};
    }
    return quote + 1;
}

/* A start or end tag whose name begins at `at`. Gives what follows it, NULL when the bytes end within. */
static const uint8_t *read_tag(const uint8_t *at, const uint8_t *end, Tag *tag)
{
    tag->name = at;
    at = end_of_name(at, end, '>');
    tag->length = (size_t)(at - tag->name);
    tag->tag = tag_named(tag->name, tag->length);
    tag->has = 0;
    tag->self_closing = false;
    while (at && at < end) {
        if (*at == '>')
            return at + 1;
        if (*at == '/') {
            at++;
            if (at < end && *at == '>') {
                tag->self_closing = true;
                return at + 1;
            }
        } else if (is_white(*at)) {
            const uint8_t *next = read_usual_attribute(at, end, tag);
            at = next ? next : at + 1;
        } else {
            at = read_attribute(at, end, tag);
        }
    }
    return NULL;
}

/* What is no element. */

static const uint8_t *after(const uint8_t *at, const uint8_t *end, uint8_t byte)
{
    const uint8_t *found = at < end ? memchr(at, byte, (size_t)(end - at)) : NULL;
    return found ? found + 1 : end;
}

static bool begins(const uint8_t *at, const uint8_t *end, const char *with)
{
    size_t length = strlen(with);
    return (size_t)(end - at) >= length && memcmp(at, with, length) == 0;
}

/* `at` is behind the two dashes that begin it. */
static const uint8_t *after_comment(const uint8_t *at, const uint8_t *end)
{
    if (begins(at, end, ">"))
        return at + 1;
    if (begins(at, end, "->"))
        return at + 2;
    while (at < end && (at = memchr(at, '-', (size_t)(end - at)))) {
        if (begins(at, end, "-->"))
            return at + 3;
        if (begins(at, end, "--!>"))
            return at + 4;
        at++;
    }
    return end;
}

static bool names_tag(const uint8_t *at, const uint8_t *end, int tag)
{
    size_t length = strlen(names_of[tag]);
    return (size_t)(end - at) > length && is_named(at, length, names_of[tag]) && classes[at[length]] & ENDS_TAG_NAME;
}

/* Where the end tag of a raw text begins; `end` when there is none. */
static const uint8_t *end_of_raw(const uint8_t *at, const uint8_t *end, int tag)
{
    while (at < end && (at = memchr(at, '<', (size_t)(end - at)))) {
        if (end - at > 2 && at[1] == '/' && names_tag(at + 2, end, tag))
            return at;
        at++;
    }
    return end;
}

/* 13.2.5.4 and 17 to 31: within `<!--` another `<script>` hides the end tag. */
static const uint8_t *end_of_script(const uint8_t *at, const uint8_t *end)
{
    enum { PLAIN, ESCAPED, TWICE } state = PLAIN;
    for (; at < end; at++) {
        if (state == PLAIN && !(at = memchr(at, '<', (size_t)(end - at))))
            return end;
        if (state != PLAIN && *at == '-' && begins(at, end, "-->")) {
            state = PLAIN;
        } else if (*at != '<') {
            continue;
        } else if (end - at > 2 && at[1] == '/' && names_tag(at + 2, end, SCRIPT)) {
            if (state != TWICE)
                return at;
            state = ESCAPED;
        } else if (state == PLAIN && begins(at, end, "<!--")) {
            state = ESCAPED;
            at++; /* its dashes may be those of the end: `<!-->` */
        } else if (state == ESCAPED && names_tag(at + 1, end, SCRIPT)) {
            state = TWICE;
        }
    }
    return end;
}

#endif
