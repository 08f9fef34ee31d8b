/* A stretch of a journal of rows, taken apart into the columns that Arrow wants: values end to end, and where each ends.
 *
 * Two walks over the same bytes: one measures, one writes into memory of that size. The journal may be damaged: what is
 * not exactly a row as `rowpieces.c` writes it makes the first walk refuse. Free of Python, so that it can be run alone
 * under sanitizers. */

#ifndef SKITTER_COLUMNS_CORE_H
#define SKITTER_COLUMNS_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "utf8_core.h"

enum { MARK = 0xC1, FRAME = 5, LINK_COLUMNS = 4 };

enum {
    URL = 1,
    TEXT = 27,
    TARGETS = 28,
    TEXT_DIGEST = 32,
    FIELDS = 33,
    PROTOCOL = FIELDS,
    HOST,
    PORT,
    PATH,
    QUERY,
    COLUMNS
};

/* Of each column: a string that is there (k), that is nothing when it is empty (s), that may not be there (o); the text (t),
 * links (l), an integer (i), a float (f); an unsigned integer (u) or a port (p), or nothing. */
static const char KINDS[COLUMNS + 1] =
    "kk"
    "ii"
    "sssssss"
    "ii"
    "k"
    "i"
    "s"
    "i"
    "sssss"
    "f"
    "s"
    "u"
    "ss"
    "t"
    "llll"
    "s"
    "oopoo"; /* parts of the URL */

typedef struct {
    size_t values; /* how many, and of strings their bytes: what the first walk finds out */
    size_t length;
    int32_t *ends; /* of strings, with a zero before the first */
    uint8_t *bytes;
    uint8_t *valid; /* a bit a value */
} Column;

typedef struct {
    size_t rows;
    size_t told_links, told_texts; /* rows that have any */
    int32_t *link_rows, *text_rows, *link_ends; /* which, and where the links of each end */
    Column columns[COLUMNS];
} Stretch;

typedef struct {
    const uint8_t *bytes;
    size_t length;
    int64_t integer;
    uint64_t natural;
    double real;
    char kind; /* s, b, i (negative), u, f, n, or 0 */
} Value;

typedef struct {
    const uint8_t *at, *end;
} Cursor;

static uint64_t read_number(Cursor *from, int width)
{
    uint64_t number = 0;
    for (; width; width--)
        number = number << 8 | *from->at++;
    return number;
}

static size_t left_in(const Cursor *from)
{
    return (size_t)(from->end - from->at);
}

static int read_bytes(Cursor *from, int width, char kind, Value *value)
{
    if (left_in(from) < (size_t)width)
        return 0;
    uint64_t length = width ? read_number(from, width) : value->length;
    if (length > left_in(from))
        return 0;
    *value = (Value){.bytes = from->at, .length = (size_t)length, .kind = kind};
    from->at += length;
    return 1;
}

static int read_natural(Cursor *from, int width, Value *value)
{
    if (left_in(from) < (size_t)width)
        return 0;
    value->natural = read_number(from, width);
    value->integer = (int64_t)value->natural;
    value->kind = 'u';
    return 1;
}

static int read_negative(Cursor *from, int width, Value *value)
{
    if (!read_natural(from, width, value))
        return 0;
    int unused = 64 - 8 * width;
    value->integer = (int64_t)(value->natural << unused) >> unused;
    value->kind = 'i';
    return 1;
}

static int read_real(Cursor *from, Value *value)
{
    if (!read_natural(from, 8, value))
        return 0;
    memcpy(&value->real, &value->natural, sizeof value->real);
    value->kind = 'f';
    return 1;
}

/* The kinds of msgpack values that rows consist of. */
static int read_value(Cursor *from, Value *value)
{
    if (from->at == from->end)
        return 0;
    uint8_t first = *from->at++;
    if (first < 0x80 || first >= 0xE0) {
        from->at--;
        return first < 0x80 ? read_natural(from, 1, value) : read_negative(from, 1, value);
    }
    if (first >= 0xA0 && first < 0xC0) {
        value->length = first & 0x1F;
        return read_bytes(from, 0, 's', value);
    }
    switch (first) {
    case 0xC0:
        value->kind = 'n';
        return 1;
    case 0xC4: return read_bytes(from, 1, 'b', value);
    case 0xC5: return read_bytes(from, 2, 'b', value);
    case 0xC6: return read_bytes(from, 4, 'b', value);
    case 0xCB: return read_real(from, value);
    case 0xCC: return read_natural(from, 1, value);
    case 0xCD: return read_natural(from, 2, value);
    case 0xCE: return read_natural(from, 4, value);
    case 0xCF: return read_natural(from, 8, value);
    case 0xD0: return read_negative(from, 1, value);
    case 0xD1: return read_negative(from, 2, value);
    case 0xD2: return read_negative(from, 4, value);
    case 0xD3: return read_negative(from, 8, value);
    case 0xD9: return read_bytes(from, 1, 's', value);
    case 0xDA: return read_bytes(from, 2, 's', value);
    case 0xDB: return read_bytes(from, 4, 's', value);
    default: return 0;
    }
}

static int is_of_kind(const Value *value, char wanted)
{
    switch (wanted) {
    case 'k':
    case 's':
    case 'l': return value->kind == 's';
    case 't': return value->kind == 'b';
    case 'i': return value->kind == 'i' || (value->kind == 'u' && value->natural <= INT64_MAX);
    case 'f': return value->kind == 'f';
    default: return value->kind == 'u' || value->kind == 'n';
    }
}

static int read_fields(Cursor *from, Value *row)
{
    static const uint8_t ARRAY[] = {0xDC, 0, FIELDS};
    if (left_in(from) < sizeof ARRAY || memcmp(from->at, ARRAY, sizeof ARRAY) != 0)
        return 0;
    from->at += sizeof ARRAY;
    for (int field = 0; field < FIELDS; field++)
        if (!read_value(from, &row[field]) || !is_of_kind(&row[field], KINDS[field]))
            return 0;
    return from->at == from->end;
}

/* The parts of a URL, as the pattern in columns_plain.py has them; `row` has room for them. Where there is no URL they
 * are of no kind. */
static void take_apart(const Value *url, Value *row)
{
    const uint8_t *at = url->bytes, *end = at + url->length, *start = at;
    for (int part = PROTOCOL; part < COLUMNS; part++)
        row[part] = (Value){.bytes = start, .kind = 0};
    while (at < end && *at != ':' && *at != '/' && *at != '?' && *at != '#')
        at++;
    if (at == start || end - at < 3 || memcmp(at, "://", 3) != 0)
        return;
    row[PROTOCOL] = (Value){.bytes = start, .length = (size_t)(at - start), .kind = 's'};
    start = at += 3;
    while (at < end && *at != '/' && *at != '?' && *at != '#' && *at != '@')
        at++;
    start = at = at < end && *at == '@' ? at + 1 : start;
    const uint8_t *bracket = at < end && *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
    if (bracket)
        at = bracket + 1;
    else
        while (at < end && *at != '/' && *at != '?' && *at != '#' && *at != ':')
            at++;
    row[HOST] = (Value){.bytes = start, .length = (size_t)(at - start), .kind = 's'};
    if (end - at > 1 && *at == ':' && at[1] >= '0' && at[1] <= '9') {
        uint64_t port = 0;
        const uint8_t *most = end - ++at > 5 ? at + 5 : end;
        for (; at < most && *at >= '0' && *at <= '9'; at++)
            port = port * 10 + (uint64_t)(*at - '0');
        row[PORT] = (Value){.natural = port, .kind = 'u'};
    }
    start = at;
    while (at < end && *at != '?' && *at != '#')
        at++;
    row[PATH] = (Value){.bytes = start, .length = (size_t)(at - start), .kind = 's'};
    if (at < end && *at == '?') {
        start = ++at;
        const uint8_t *hash = memchr(at, '#', (size_t)(end - at));
        row[QUERY] = (Value){.bytes = start, .length = (size_t)((hash ? hash : end) - start), .kind = 's'};
    }
}

static size_t links_in(const Value *joined)
{
    size_t links = 1;
    for (size_t at = 0; at < joined->length; at++)
        links += joined->bytes[at] == '\n';
    return links;
}

static int is_string(char kind)
{
    return kind == 'k' || kind == 's' || kind == 'o';
}

static int may_be_nothing(char kind)
{
    return kind == 's' || kind == 'o' || kind == 'u' || kind == 'p';
}

static int is_text(const Value *row)
{
    for (int field = 0; field < FIELDS; field++)
        if ((row[field].kind == 's' || row[field].kind == 'b') && !is_utf8(row[field].bytes, row[field].length))
            return 0;
    return 1;
}

/* 1 with the next row and the parts of its URL, 0 at the end, -1 when there is anything else. Zeros are a hole: what lay
 * there is in Parquet already. */
static int next_row(Cursor *journal, Value *row)
{
    const uint8_t *mark = left_in(journal) ? memchr(journal->at, MARK, left_in(journal)) : NULL;
    if (!mark)
        return 0;
    if (journal->end - mark < FRAME)
        return -1;
    size_t length = (size_t)mark[1] | (size_t)mark[2] << 8 | (size_t)mark[3] << 16 | (size_t)mark[4] << 24;
    Cursor fields = {mark + FRAME, journal->end};
    if (length > left_in(&fields))
        return -1;
    fields.end = journal->at = fields.at + length;
    if (!read_fields(&fields, row))
        return -1;
    take_apart(&row[URL], row);
    /* The digest of a text is of the row that has the text; rows of earlier versions lack it. */
    return row[TEXT].length && !row[TEXT_DIGEST].length ? -1 : 1;
}

static int measure_links(Stretch *stretch, const Value *row)
{
    if (!row[TARGETS].length)
        return 1;
    size_t links = links_in(&row[TARGETS]);
    for (int column = TARGETS; column < TARGETS + LINK_COLUMNS; column++) {
        if (links_in(&row[column]) != links)
            return 0;
        stretch->columns[column].values += links;
        stretch->columns[column].length += row[column].length - (links - 1);
    }
    stretch->told_links++;
    return 1;
}

/* The first walk; 0 when the journal is not what it should be. */
static int measure(const uint8_t *journal, size_t length, Stretch *stretch)
{
    Cursor from = {journal, journal + length};
    Value row[COLUMNS];
    int found;
    memset(stretch, 0, sizeof *stretch);
    if (length > INT32_MAX)
        return 0;
    while ((found = next_row(&from, row)) > 0) {
        stretch->rows++;
        if (!is_text(row) || !measure_links(stretch, row))
            return 0;
        stretch->told_texts += row[TEXT].length > 0;
        for (int column = 0; column < COLUMNS; column++)
            if (is_string(KINDS[column]) || KINDS[column] == 't')
                stretch->columns[column].length += row[column].length;
    }
    for (int column = 0; column < COLUMNS; column++)
        if (KINDS[column] != 'l')
            stretch->columns[column].values = KINDS[column] == 't' ? stretch->told_texts : stretch->rows;
    return found == 0;
}

/* Where the second walk is in a column. */
typedef struct {
    size_t value, end;
} Place;

static void write_string(Column *column, Place *place, const uint8_t *bytes, size_t length)
{
    memcpy(column->bytes + place->end, bytes, length);
    place->end += length;
    column->ends[++place->value] = (int32_t)place->end;
}

static void write_value(Column *column, Place *place, const Value *value, char kind)
{
    size_t at = place->value;
    int is_there = kind == 's' ? value->length > 0 : kind == 'o' ? value->kind != 0 : value->kind == 'u';
    if (column->valid && is_there)
        column->valid[at / 8] |= (uint8_t)(1 << at % 8);
    if (is_string(kind)) {
        write_string(column, place, value->bytes, value->length);
        return;
    }
    float real = (float)value->real;
    int32_t port = is_there ? (int32_t)value->natural : 0;
    uint64_t natural = is_there ? value->natural : 0;
    switch (kind) {
    case 'i': memcpy(column->bytes + 8 * at, &value->integer, 8); break;
    case 'f': memcpy(column->bytes + 4 * at, &real, 4); break;
    case 'u': memcpy(column->bytes + 8 * at, &natural, 8); break;
    default: memcpy(column->bytes + 4 * at, &port, 4); break;
    }
    place->value++;
}

static void write_links(Column *column, Place *place, const Value *joined)
{
    const uint8_t *at = joined->bytes, *end = at + joined->length, *feed;
    while ((feed = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL)) {
        write_string(column, place, at, (size_t)(feed - at));
        at = feed + 1;
    }
    write_string(column, place, at, (size_t)(end - at));
}

/* The second walk, into memory of the sizes that the first one found; `valid` is zeroed. */
static void write_columns(const uint8_t *journal, size_t length, Stretch *stretch)
{
    Cursor from = {journal, journal + length};
    Value row[COLUMNS];
    Place places[COLUMNS] = {{0, 0}};
    int32_t links = 0, texts = 0;
    Column *columns = stretch->columns;
    for (int column = 0; column < COLUMNS; column++)
        if (columns[column].ends)
            columns[column].ends[0] = 0;
    stretch->link_ends[0] = 0;
    for (int32_t number = 0; next_row(&from, row) > 0; number++) {
        for (int column = 0; column < COLUMNS; column++)
            if (KINDS[column] != 't' && KINDS[column] != 'l')
                write_value(&columns[column], &places[column], &row[column], KINDS[column]);
        if (row[TEXT].length) {
            write_string(&columns[TEXT], &places[TEXT], row[TEXT].bytes, row[TEXT].length);
            stretch->text_rows[texts++] = number;
        }
        if (row[TARGETS].length) {
            for (int column = TARGETS; column < TARGETS + LINK_COLUMNS; column++)
                write_links(&columns[column], &places[column], &row[column]);
            stretch->link_rows[links++] = number;
            stretch->link_ends[links] = (int32_t)places[TARGETS].value;
        }
    }
}

#endif
