/* The texts of one exchange: its records' heads and its index line, as skitter/archive/texts_plain.py defines them.
 *
 * Nothing is parsed here: values come from Python, where they were checked; they are put together. */

#include "pieces.h"

#include <math.h>
#include <stdint.h>

enum { DIGEST = 32, LETTERS = 56, FIELD = 7 + LETTERS, DATE = 27, STAMP = 14 };

/* The years 1 to 9999, as Python's dates. */
static const double FIRST_SECOND = -62135596800.0, AFTER_LAST_SECOND = 253402300800.0;

enum { MOST_HOPS = 100 };

enum Name {
    ADDRESS, BODY, CHARSET, CONNECT_MS, DEPTH, DNS_MS, ENDED_AT, FIRST_BYTE_MS, HTTP_VERSION, KIND, REDIRECT, SENT_AT,
    STATUS, TLS_CIPHER, TLS_MS, TLS_VERSION, TRUNCATED, NAMES
};

static const char *const NAME_TEXTS[NAMES] = {
    "address", "body", "charset", "connect_ms", "depth", "dns_ms", "ended_at", "first_byte_ms", "http_version", "kind",
    "redirect", "sent_at", "status", "tls_cipher", "tls_ms", "tls_version", "truncated",
};

static PyObject *names[NAMES];

/* Base32 of 32 bytes: 51 letters of 5 bits, one of a single bit, and the padding to a multiple of eight. */
static void spell_digest(const uint8_t *digest, char *field)
{
    static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    memcpy(field, "sha256:", 7);
    field += 7;
    uint32_t bits = 0;
    int held = 0;
    for (int at = 0; at < DIGEST; at++) {
        bits = bits << 8 | digest[at];
        for (held += 8; held >= 5; held -= 5)
            *field++ = ALPHABET[bits >> (held - 5) & 31];
    }
    *field++ = ALPHABET[bits << (5 - held) & 31];
    memcpy(field, "====", 4);
}

static void spell_number(char *to, int width, long long value)
{
    for (to += width; width--; value /= 10)
        *--to = (char)('0' + value % 10);
}

/* Days since 1970 as a date of the Gregorian calendar, by the 400 years after which it repeats. A year begins in March
 * here: the day that not all years have is then the last of its year. */
static void spell_day(long long days, char *date)
{
    days += 719468;
    long long era = (days >= 0 ? days : days - 146096) / 146097;
    long long of_era = days - era * 146097;
    long long year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    long long of_year = of_era - (365 * year + year / 4 - year / 100);
    long long month = (5 * of_year + 2) / 153;
    long long day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    spell_number(date, 4, year + era * 400 + (month <= 2));
    date[4] = date[7] = '-';
    spell_number(date + 5, 2, month);
    spell_number(date + 8, 2, day);
}

static int spell_date(double at, char *date)
{
    if (!(at >= FIRST_SECOND && at < AFTER_LAST_SECOND)) {
        PyErr_SetString(PyExc_ValueError, "a time outside of the years 1 to 9999");
        return 0;
    }
    double whole = floor(at);
    long long second = (long long)whole, micros = (long long)((at - whole) * 1e6);
    micros = micros < 999999 ? micros : 999999; /* just before a full second, the difference is a whole one */
    long long days = second / 86400 - (second % 86400 < 0), left = second - days * 86400;
    spell_day(days, date);
    date[10] = 'T';
    spell_number(date + 11, 2, left / 3600);
    spell_number(date + 14, 2, left / 60 % 60);
    spell_number(date + 17, 2, left % 60);
    date[13] = date[16] = ':';
    date[19] = '.';
    spell_number(date + 20, 6, micros);
    date[26] = 'Z';
    return 1;
}

static Piece protocol_of(Piece version)
{
    static const char *const NAMES[][2] = {
        {"1.1", "http/1.1"}, {"1.0", "http/1.0"}, {"2", "h2"}, {"2.0", "h2"}, {"3", "h3"}, {"3.0", "h3"},
    };
    for (size_t at = 0; at < sizeof NAMES / sizeof *NAMES; at++)
        if (strlen(NAMES[at][0]) == version.length && !memcmp(NAMES[at][0], version.start, version.length))
            return (Piece){NAMES[at][1], strlen(NAMES[at][1])};
    return (Piece){"", 0};
}

enum Wait { DNS, CONNECT, TLS, FIRST_BYTE, WAITS };

/* What the metadata record tells. */
typedef struct {
    Piece kind, charset, redirect, tls_version, tls_cipher, outlinks;
    long long depth;
    double whole, waits[WAITS];
    char whole_digits[DIGITS], digits[WAITS][DIGITS];
} About;

typedef struct {
    Piece head, request, unique, uri, key, mime, detected, body, address, protocol;
    long long status;
    int has_about, has_payload, truncated;
    About about;
    char date[DATE], stamp[STAMP], block[FIELD], payload[FIELD];
} Exchange;

static int digest_of(PyObject *given, char *field, int *is_there)
{
    Piece digest;
    if (!bytes_view_of(given, &digest))
        return 0;
    *is_there = digest.length == DIGEST;
    if (!*is_there && digest.length) {
        PyErr_SetString(PyExc_ValueError, "a digest has 32 bytes");
        return 0;
    }
    if (*is_there)
        spell_digest((const uint8_t *)digest.start, field);
    return 1;
}

static int read_exchange(PyObject *from, Exchange *to, Owned *owned)
{
    double at;
    Piece version;
    PyObject *body = attribute(from, names[BODY], owned);
    if (!body || !bytes_view_of(body, &to->body) || !float_attribute(from, names[SENT_AT], &at, owned) ||
        !integer_attribute(from, names[STATUS], &to->status, owned) ||
        !string_attribute(from, names[ADDRESS], &to->address, owned) ||
        !string_attribute(from, names[HTTP_VERSION], &version, owned) ||
        !truth_attribute(from, names[TRUNCATED], &to->truncated, owned) || !spell_date(at, to->date))
        return 0;
    to->protocol = protocol_of(version);
    static const int DIGITS[STAMP] = {0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18};
    for (int digit = 0; digit < STAMP; digit++)
        to->stamp[digit] = to->date[DIGITS[digit]];
    return 1;
}

static int read_about(PyObject *exchange, PyObject *said, PyObject *outlinks, About *to, Owned *owned)
{
    static const enum Name WAITED[WAITS] = {DNS_MS, CONNECT_MS, TLS_MS, FIRST_BYTE_MS};
    double sent_at, ended_at;
    for (int wait = 0; wait < WAITS; wait++)
        if (!float_attribute(exchange, names[WAITED[wait]], &to->waits[wait], owned))
            return 0;
    if (!float_attribute(exchange, names[SENT_AT], &sent_at, owned) ||
        !float_attribute(exchange, names[ENDED_AT], &ended_at, owned))
        return 0;
    to->whole = ended_at - sent_at > 0.0 ? (ended_at - sent_at) * 1000 : 0.0;
    return string_attribute(exchange, names[TLS_VERSION], &to->tls_version, owned) &&
           string_attribute(exchange, names[TLS_CIPHER], &to->tls_cipher, owned) &&
           string_attribute(said, names[KIND], &to->kind, owned) &&
           integer_attribute(said, names[DEPTH], &to->depth, owned) &&
           string_attribute(said, names[CHARSET], &to->charset, owned) &&
           string_attribute(said, names[REDIRECT], &to->redirect, owned) && view_of(outlinks, &to->outlinks, owned);
}

/* In the order of the arguments of `texts`. */
static int read_given(PyObject *const *given, Exchange *to, Owned *owned)
{
    int has_block;
    to->has_about = given[10] != Py_None;
    return read_exchange(given[0], to, owned) && bytes_view_of(given[1], &to->head) &&
           bytes_view_of(given[2], &to->request) && view_of(given[3], &to->unique, owned) &&
           view_of(given[4], &to->uri, owned) && view_of(given[5], &to->key, owned) &&
           view_of(given[6], &to->mime, owned) && view_of(given[7], &to->detected, owned) &&
           digest_of(given[8], to->block, &has_block) && digest_of(given[9], to->payload, &to->has_payload) &&
           (!to->has_about || read_about(given[0], given[10], given[11], &to->about, owned));
}

/* What all records of one exchange say. */
static void put_common(Text *text, const Exchange *of)
{
    LITERAL(text, "WARC-Target-URI: ");
    put_piece(text, of->uri);
    if (of->address.length) {
        LITERAL(text, "\r\nWARC-IP-Address: ");
        put_piece(text, of->address);
    }
    LITERAL(text, "\r\n");
}

static void put_response_fields(Text *text, const Exchange *of)
{
    put_common(text, of);
    if (of->request.length) {
        LITERAL(text, "WARC-Concurrent-To: <");
        put_piece(text, of->unique);
        LITERAL(text, "0>\r\n");
    }
    if (of->protocol.length) {
        LITERAL(text, "WARC-Protocol: ");
        put_piece(text, of->protocol);
        LITERAL(text, "\r\n");
    }
    if (of->has_payload) {
        LITERAL(text, "WARC-Payload-Digest: ");
        put(text, of->payload, FIELD);
        LITERAL(text, "\r\n");
    }
    if (of->detected.length) {
        LITERAL(text, "WARC-Identified-Payload-Type: ");
        put_piece(text, of->detected);
        LITERAL(text, "\r\n");
    }
    if (of->truncated)
        LITERAL(text, "WARC-Truncated: length\r\n");
    LITERAL(text, "Content-Type: application/http; msgtype=response\r\n");
}

#define BEGIN(text, of, kind, digit)                                                                                   \
    do {                                                                                                               \
        LITERAL(text, "WARC/1.1\r\nWARC-Type: " kind "\r\nWARC-Record-ID: <");                                         \
        put_piece(text, (of)->unique);                                                                                 \
        LITERAL(text, digit ">\r\nWARC-Date: ");                                                                       \
        put(text, (of)->date, DATE);                                                                                   \
        LITERAL(text, "\r\n");                                                                                         \
    } while (0)

/* The end of the fields, the block and the end of the record. */
static PyObject *finished(Text *text, const Text *block)
{
    char digits[DIGITS];
    LITERAL(text, "Content-Length: ");
    put_number(text, (long long)block->length, digits);
    LITERAL(text, "\r\n\r\n");
    put_text(text, block);
    LITERAL(text, "\r\n\r\n");
    return as_bytes(text);
}

static PyObject *request_of(const Exchange *of)
{
    Text text = {.count = 0}, block = {.count = 0};
    if (!of->request.length)
        return PyBytes_FromStringAndSize(NULL, 0);
    BEGIN(&text, of, "request", "0");
    put_common(&text, of);
    LITERAL(&text, "Content-Type: application/http; msgtype=request\r\n");
    put_piece(&block, of->request);
    return finished(&text, &block);
}

static PyObject *response_of(const Exchange *of, const Text *fields)
{
    Text text = {.count = 0}, block = {.count = 0};
    BEGIN(&text, of, "response", "1");
    put_text(&text, fields);
    LITERAL(&text, "WARC-Block-Digest: ");
    put(&text, of->block, FIELD);
    LITERAL(&text, "\r\n");
    put_piece(&block, of->head);
    put_piece(&block, of->body);
    return finished(&text, &block);
}

/* Whole numbers of milliseconds; of what is half-way, the even one. */
static void put_millis(Text *text, double millis, char *digits)
{
    put_number(text, fabs(millis) < 1e15 ? llrint(millis) : 0, digits);
    LITERAL(text, "\r\n");
}

#define WAITED(text, about, wait, name)                                                                                \
    do {                                                                                                               \
        if ((about)->waits[wait] >= 0.5) {                                                                             \
            LITERAL(text, name ": ");                                                                                  \
            put_millis(text, (about)->waits[wait], (about)->digits[wait]);                                             \
        }                                                                                                              \
    } while (0)

static void put_hops(Text *text, long long depth)
{
    static const char HOPS[MOST_HOPS + 1] =
        "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL"
        "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL";
    LITERAL(text, "hopsFromSeed: ");
    put(text, HOPS, depth > MOST_HOPS ? MOST_HOPS : depth > 0 ? (size_t)depth : 0);
    LITERAL(text, "\r\n");
}

static void put_about(Text *text, About *about)
{
    LITERAL(text, "fetchTimeMs: ");
    put_millis(text, about->whole, about->whole_digits);
    WAITED(text, about, DNS, "dnsTimeMs");
    WAITED(text, about, CONNECT, "connectTimeMs");
    WAITED(text, about, TLS, "tlsTimeMs");
    WAITED(text, about, FIRST_BYTE, "firstByteTimeMs");
    if (about->tls_version.length) {
        LITERAL(text, "tls: ");
        put_piece(text, about->tls_version);
        LITERAL(text, " ");
        put_piece(text, about->tls_cipher);
        LITERAL(text, "\r\n");
    }
    if (about->kind.length == 4 && memcmp(about->kind.start, "page", 4) == 0)
        put_hops(text, about->depth);
    if (about->charset.length) {
        LITERAL(text, "charsetForLinkExtraction: ");
        put_piece(text, about->charset);
        LITERAL(text, "\r\n");
    }
    if (about->redirect.length) {
        LITERAL(text, "outlink: ");
        put_piece(text, about->redirect);
        LITERAL(text, " R Location:\r\n");
    }
    put_piece(text, about->outlinks);
}

static PyObject *metadata_of(Exchange *of)
{
    Text text = {.count = 0}, block = {.count = 0};
    if (!of->has_about)
        return PyBytes_FromStringAndSize(NULL, 0);
    BEGIN(&text, of, "metadata", "2");
    put_common(&text, of);
    LITERAL(&text, "WARC-Concurrent-To: <");
    put_piece(&text, of->unique);
    LITERAL(&text, "1>\r\nWARC-Refers-To: <");
    put_piece(&text, of->unique);
    LITERAL(&text, "1>\r\nContent-Type: application/warc-fields\r\n");
    put_about(&block, &of->about);
    return finished(&text, &block);
}

/* The URL as JSON: it is printable ASCII, of which two characters are escaped. */
static int escaped(Piece uri, Piece *json, Owned *owned)
{
    size_t special = 0;
    for (size_t at = 0; at < uri.length; at++)
        special += uri.start[at] == '"' || uri.start[at] == '\\';
    *json = uri;
    if (!special)
        return 1;
    PyObject *spelled = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(uri.length + special));
    if (!own(owned, spelled))
        return 0;
    char *to = PyBytes_AS_STRING(spelled);
    *json = (Piece){to, uri.length + special};
    for (size_t at = 0; at < uri.length; at++) {
        if (uri.start[at] == '"' || uri.start[at] == '\\')
            *to++ = '\\';
        *to++ = uri.start[at];
    }
    return 1;
}

static PyObject *line_of(const Exchange *of, Piece json, Piece mime, Piece detected)
{
    char digits[DIGITS];
    Text text = {.count = 0};
    put_piece(&text, of->key);
    LITERAL(&text, " ");
    put(&text, of->stamp, STAMP);
    LITERAL(&text, " {\"url\": \"");
    put_piece(&text, json);
    LITERAL(&text, "\", \"mime\": \"");
    put_piece(&text, mime);
    if (detected.length) {
        LITERAL(&text, "\", \"mime-detected\": \"");
        put_piece(&text, detected);
    }
    LITERAL(&text, "\", \"status\": \"");
    put_number(&text, of->status, digits);
    if (of->has_payload) {
        LITERAL(&text, "\", \"digest\": \"");
        put(&text, of->payload, FIELD);
    }
    LITERAL(&text, "\", ");
    return as_bytes(&text);
}

static PyObject *fields_text(const Text *fields)
{
    PyObject *coded = as_bytes(fields);
    PyObject *text = coded ? PyUnicode_FromEncodedObject(coded, "utf-8", "replace") : NULL;
    Py_XDECREF(coded);
    return text;
}

static PyObject *texts_of(Exchange *of, Owned *owned)
{
    static const Piece UNKNOWN = {"unk", 3}, REVISIT = {"warc/revisit", 12}, NOTHING = {"", 0};
    Text fields = {.count = 0};
    put_response_fields(&fields, of);
    Piece json;
    if (!escaped(of->uri, &json, owned))
        return NULL;
    PyObject *texts[] = {
        request_of(of),
        response_of(of, &fields),
        metadata_of(of),
        line_of(of, json, of->mime.length ? of->mime : UNKNOWN, of->detected),
        fields_text(&fields),
        line_of(of, json, REVISIT, NOTHING),
        PyUnicode_FromStringAndSize(of->payload, of->has_payload ? FIELD : 0),
    };
    enum { TEXTS = sizeof texts / sizeof *texts };
    PyObject *result = PyTuple_New(TEXTS);
    for (int at = 0; at < TEXTS; at++) {
        if (!texts[at])
            Py_CLEAR(result);
        if (result)
            PyTuple_SET_ITEM(result, at, texts[at]);
        else
            Py_XDECREF(texts[at]);
    }
    return result;
}

static PyObject *texts(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != 12) {
        PyErr_SetString(PyExc_TypeError, "texts takes 12 values");
        return NULL;
    }
    Owned owned = {.count = 0};
    Exchange exchange;
    PyObject *made = read_given(given, &exchange, &owned) ? texts_of(&exchange, &owned) : NULL;
    disown(&owned);
    return made;
}

static PyObject *digest_field(PyObject *module, PyObject *digest)
{
    char field[FIELD];
    int is_there;
    if (!digest_of(digest, field, &is_there))
        return NULL;
    if (!is_there) {
        PyErr_SetString(PyExc_ValueError, "a digest has 32 bytes");
        return NULL;
    }
    return PyUnicode_FromStringAndSize(field, FIELD);
}

static PyObject *warc_date(PyObject *module, PyObject *at)
{
    char date[DATE];
    double value = PyFloat_AsDouble(at);
    if ((value == -1.0 && PyErr_Occurred()) || !spell_date(value, date))
        return NULL;
    return PyUnicode_FromStringAndSize(date, DATE);
}

static PyMethodDef methods[] = {
    {"texts", (PyCFunction)(void (*)(void))texts, METH_FASTCALL, "The texts of one exchange."},
    {"digest_field", digest_field, METH_O, "A SHA-256 digest as a field's value."},
    {"warc_date", warc_date, METH_O, "A time as WARC-Date has it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "texts", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_texts(void)
{
    for (int at = 0; at < NAMES; at++)
        if (!(names[at] = PyUnicode_InternFromString(NAME_TEXTS[at])))
            return NULL;
    return PyModule_Create(&definition);
}
