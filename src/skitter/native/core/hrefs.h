/* Which hrefs are plain: their URLs can be put together of pieces as they are, and a canonical form changes nothing
 * in them but the order of the parameters. Whatever is not certainly so is not plain. Plain C.
 *
 * Plain are names and `../` on a folder, paths from the root (`/a`), and URLs in full of the folder's own host or of
 * hosts with simple names; behind each of them a query, if it is of names with values. */

#ifndef SKITTER_HREFS_H
#define SKITTER_HREFS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ROOM = 2048, MOST_PARAMETERS = 32, LONGEST_HOST = 253, LONGEST_LABEL = 63 };

/* What a character may be in. A first name has no colon: before it would stand a scheme. */
enum { UNRESERVED = 1, IN_FIRST_NAME = 2, IN_SEGMENT = 4, IN_PARAMETER = 8, IN_VALUE = 16, IN_LABEL = 32 };

static uint8_t allowed[256];

static void allow(const char *characters, uint8_t where)
{
    for (; *characters; characters++)
        allowed[(uint8_t)*characters] |= where;
}

/* Before anything else is asked here. Neither WHATWG nor a canonical form changes any of these where it is allowed: a
 * path has no `;` and no `(`, which may begin a session, and a query no `'`, which is escaped. */
static void fill_allowed(void)
{
    const uint8_t everywhere = UNRESERVED | IN_FIRST_NAME | IN_SEGMENT | IN_PARAMETER | IN_VALUE;
    allow("ABCDEFGHIJKLMNOPQRSTUVWXYZ._~", everywhere);
    allow("abcdefghijklmnopqrstuvwxyz0123456789-", everywhere | IN_LABEL);
    allow("!$*+,@", IN_FIRST_NAME | IN_SEGMENT | IN_PARAMETER | IN_VALUE);
    allow("&", IN_FIRST_NAME | IN_SEGMENT);
    allow("=", IN_FIRST_NAME | IN_SEGMENT | IN_VALUE);
    allow(":", IN_SEGMENT | IN_PARAMETER | IN_VALUE);
    allow("/?;()[]", IN_PARAMETER | IN_VALUE);
}

static int is_in(char character, uint8_t where)
{
    return allowed[(uint8_t)character] & where;
}

static int hex_digit(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Whether the text begins with an escape that is its own canonical form: in upper case, of a byte that needs one. */
static int is_escape(const char *text, size_t length)
{
    if (length < 3 || text[0] != '%')
        return 0;
    int high = hex_digit(text[1]), low = hex_digit(text[2]);
    return high >= 0 && low >= 0 && !(allowed[high << 4 | low] & UNRESERVED);
}

/* How much of the text is of what is allowed there, and of escapes. */
static size_t run(const char *text, size_t length, uint8_t where)
{
    size_t at = 0;
    for (;;) {
        while (at < length && is_in(text[at], where))
            at++;
        if (!is_escape(text + at, length - at))
            return at;
        at += 3;
    }
}

/* How much of the text is segments with one slash between them or at the end, none of which begins with a dot. */
static size_t path_length(const char *text, size_t length, uint8_t where)
{
    size_t at = 0;
    while (at < length && text[at] != '.') {
        size_t segment = run(text + at, length - at, where);
        at += segment;
        if (!segment || at == length || text[at] != '/')
            break;
        at++;
    }
    return at;
}

/* -- what a URL begins with */

typedef struct {
    const char *bytes; /* a normalised URL without credentials, up to the last slash of its path */
    size_t length;
    size_t root;    /* where the path begins */
    size_t settled; /* how much of it a canonical form leaves as it is */
    int others;     /* whether URLs of other hosts are wanted */
} Folder;

static size_t settled_length(const char *url, size_t length, size_t root)
{
    for (; root < length; root++) {
        if (url[root] == '?' || url[root] == ';' || url[root] == '(' || url[root] == '|')
            break;
        if (url[root] == '%' && !is_escape(url + root, length - root))
            break;
    }
    return root;
}

/* Where the slash is that the folder ends with after `ups` steps up; never before its root. */
static size_t above(const Folder *folder, size_t ups)
{
    size_t end = folder->length - 1;
    for (; ups && end > folder->root; ups--)
        do
            end--;
        while (folder->bytes[end] != '/');
    return end;
}

static int ends_origin(const char *href, size_t length, size_t at)
{
    return at == length || href[at] == '/' || href[at] == '?';
}

static size_t own_origin(const Folder *folder, const char *href, size_t length)
{
    if (length < folder->root || memcmp(href, folder->bytes, folder->root) != 0)
        return 0;
    return ends_origin(href, length, folder->root) ? folder->root : 0;
}

/* No `xn--`, which must be valid Unicode to be a name. */
static int is_simple_label(const char *label, size_t length)
{
    if (!length || length > LONGEST_LABEL || label[0] == '-' || label[length - 1] == '-')
        return 0;
    return length < 4 || memcmp(label, "xn--", 4) != 0;
}

/* How long the scheme and host are that the href begins with, if the host is a simple name: labels of which the last
 * begins with a letter, or it might be an address; no port. Else 0. */
static size_t simple_origin(const char *href, size_t length)
{
    if (length < 8 || memcmp(href, "http", 4) != 0)
        return 0;
    size_t begin = !memcmp(href + 4, "://", 3) ? 7 : !memcmp(href + 4, "s://", 4) ? 8 : 0;
    size_t label = begin, at = begin;
    for (; begin; label = ++at) {
        while (at < length && is_in(href[at], IN_LABEL))
            at++;
        if (!is_simple_label(href + label, at - label))
            return 0;
        if (at == length || href[at] != '.')
            break;
    }
    if (!begin || at - begin > LONGEST_HOST || !ends_origin(href, length, at))
        return 0;
    return href[label] >= 'a' && href[label] <= 'z' ? at : 0;
}

/* -- the whole href */

/* A plain href: the URL is `begin`, a slash, `path`, and the query behind a `?` if there is one. */
typedef struct {
    const char *begin, *path, *query;
    size_t begin_length, path_length, query_length;
    size_t root;
    int is_other; /* of another host than the folder's */
} Plain;

/* Sets what the URL begins with, and gives how much of the href has said so: nothing of a name in the folder. */
static size_t begin_url(const Folder *folder, const char *href, size_t length, Plain *plain)
{
    size_t origin = 0, ups = 0;
    plain->is_other = 0;
    plain->begin = folder->bytes;
    plain->root = plain->begin_length = folder->root;
    if (length && href[0] == '/')
        return 1;
    if (length && href[0] == 'h' && !(origin = own_origin(folder, href, length)) && folder->others
        && (origin = simple_origin(href, length))) {
        plain->is_other = 1;
        plain->begin = href;
        plain->root = plain->begin_length = origin;
    }
    if (origin)
        return origin + (origin < length && href[origin] == '/');
    while (length - 3 * ups >= 3 && !memcmp(href + 3 * ups, "../", 3))
        ups++;
    plain->begin_length = above(folder, ups);
    return 3 * ups;
}

/* False when the href is not plain, or its URL might not fit into ROOM bytes. Of the query only where it is. */
static int take_apart(const Folder *folder, const char *href, size_t length, Plain *plain)
{
    if (folder->length + length >= ROOM)
        return 0;
    size_t said = begin_url(folder, href, length, plain);
    if (!plain->is_other && plain->begin_length > folder->settled)
        return 0;
    plain->path = href + said;
    plain->path_length = path_length(plain->path, length - said, said ? IN_SEGMENT : IN_FIRST_NAME);
    size_t end = said + plain->path_length;
    plain->query = end < length ? href + end + 1 : NULL;
    plain->query_length = end < length ? length - end - 1 : 0;
    if (!end)
        return 0; /* relative to the document, not to its folder */
    return end == length || href[end] == '?';
}

/* Gives the URL's length without its query. */
static size_t write_path(const Plain *plain, char *url)
{
    memcpy(url, plain->begin, plain->begin_length);
    url[plain->begin_length] = '/';
    memcpy(url + plain->begin_length + 1, plain->path, plain->path_length);
    return plain->begin_length + 1 + plain->path_length;
}

/* -- the query */

typedef struct {
    const char *text;
    size_t length, name_length;
} Parameter;

static int begins_with(const char *text, size_t length, const char *name)
{
    size_t at = 0;
    while (name[at] && at < length && (text[at] == name[at] || text[at] == name[at] - 'a' + 'A'))
        at++;
    return !name[at] && at < length && text[at] == '=';
}

/* Whether a query has `;jsessionid=` or another session behind a `;`: canonical forms do without. */
static int has_session(const char *query, size_t length)
{
    const char *end = query + length, *at = query;
    while (at < end && (at = memchr(at, ';', (size_t)(end - at)))) {
        size_t rest = (size_t)(end - ++at);
        if (begins_with(at, rest, "jsessionid") || begins_with(at, rest, "phpsessid") || begins_with(at, rest, "sessionid")
            || begins_with(at, rest, "sid"))
            return 1;
    }
    return 0;
}

/* Takes a query apart into names with values; gives how many, 0 when it is not plain. */
static size_t split_query(const char *query, size_t length, Parameter *parameters)
{
    if (has_session(query, length))
        return 0;
    for (size_t at = 0, count = 0; count < MOST_PARAMETERS; at++) {
        Parameter *one = parameters + count++;
        one->text = query + at;
        one->name_length = run(query + at, length - at, IN_PARAMETER);
        at += one->name_length;
        if (!one->name_length || at == length || query[at] != '=')
            return 0;
        size_t value = run(query + at + 1, length - at - 1, IN_VALUE);
        at += 1 + value;
        one->length = one->name_length + 1 + value;
        if (!value || (at < length && query[at] != '&'))
            return 0;
        if (at == length)
            return count;
    }
    return 0;
}

static int is_before(const Parameter *one, const Parameter *other)
{
    int order = memcmp(one->text, other->text, one->length < other->length ? one->length : other->length);
    return order ? order < 0 : one->length < other->length;
}

/* By their bytes, as Python sorts what is ASCII. They are few. */
static void sort_parameters(Parameter *parameters, size_t count)
{
    for (size_t next = 1; next < count; next++) {
        Parameter one = parameters[next];
        size_t at = next;
        for (; at && is_before(&one, parameters + at - 1); at--)
            parameters[at] = parameters[at - 1];
        parameters[at] = one;
    }
}

/* Writes `?` and the parameters as they are in order; gives the end. They came of one query, and take as much room. */
static char *write_query(const Parameter *parameters, size_t count, char *end)
{
    for (size_t i = 0; i < count; i++) {
        *end++ = i ? '&' : '?';
        memcpy(end, parameters[i].text, parameters[i].length);
        end += parameters[i].length;
    }
    return end;
}

/* A plain href as a URL. `form` is path and query as they are hashed: with the parameters in order. */
typedef struct {
    char url[ROOM], sorted[ROOM];
    size_t url_length, form_length;
    const char *form;
} Written;

static void write_without_query(const Plain *plain, Written *written)
{
    written->url_length = write_path(plain, written->url);
    written->form = written->url + plain->root;
    written->form_length = written->url_length - plain->root;
}

/* The parameters are sorted here. */
static void write_with_query(const Plain *plain, Parameter *parameters, size_t count, Written *written)
{
    size_t path_end = write_path(plain, written->url);
    memcpy(written->sorted, written->url + plain->root, path_end - plain->root);
    written->url_length = (size_t)(write_query(parameters, count, written->url + path_end) - written->url);
    sort_parameters(parameters, count);
    write_query(parameters, count, written->sorted + path_end - plain->root);
    written->form = written->sorted;
    written->form_length = written->url_length - plain->root;
}

/* Whether a dot ends the host's name, which URLs are written without. `origin[root]` is a slash. */
static int has_last_dot(const char *origin, size_t root)
{
    for (size_t at = 0; at < root; at++)
        if (origin[at] == '.' && (origin[at + 1] == '/' || origin[at + 1] == ':'))
            return 1;
    return 0;
}

/* False where no href on this folder is plain. */
static int is_usable(const char *folder, size_t length, size_t root)
{
    if (root >= length || folder[root] != '/' || folder[length - 1] != '/' || has_last_dot(folder, root))
        return 0;
    return !memchr(folder, '@', root) && !memchr(folder, '#', length);
}

static Folder folder_of(const char *bytes, size_t length, size_t root, int others)
{
    return (Folder){bytes, length, root, settled_length(bytes, length, root), others};
}

#endif
