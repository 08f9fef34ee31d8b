/* Mutated hrefs through the core that resolves them. The first line is the folder of the page, each other one an href. */

#include "../../src/skitter/native/core/blake2b.h"
#include "../../src/skitter/native/core/hrefs.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE("http://"), PIECE("https://"), PIECE("http://a.example"), PIECE("https://b.example/x"),
    PIECE("/"), PIECE("//"), PIECE("../"), PIECE("./"), PIECE("."), PIECE(".."), PIECE("?"), PIECE("?a=1&b=2"),
    PIECE("&"), PIECE("="), PIECE("&c=d"), PIECE("%2F"), PIECE("%2f"), PIECE("%41"), PIECE("%"), PIECE("%4"), PIECE(";"),
    PIECE(";jsessionid="), PIECE(";SID=1"), PIECE("|"), PIECE("./"), PIECE(".:80/"), PIECE("("), PIECE("#"), PIECE("@"), PIECE(":"), PIECE(":80"), PIECE("xn--"), PIECE("-"), PIECE("index.html"),
    PIECE("a"), PIECE("\n"), PIECE("\n\n"), PIECE("\t"), PIECE(" "), PIECE("\xC3\xA4"), PIECE("\0"),
    PIECE("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static void start(void)
{
    fill_allowed();
}

static void check_url(const Plain *plain, const Written *written)
{
    uint8_t key[2 * BLAKE2B_KEY];
    expect(written->url_length <= ROOM && written->form_length <= ROOM, "longer than its room");
    expect(plain->root < written->url_length && written->url[plain->root] == '/', "a URL without a path");
    blake2b_key((const uint8_t *)written->form, written->form_length, key);
    blake2b_key((const uint8_t *)written->url, plain->root, key + BLAKE2B_KEY);
}

static void resolve(const Folder *folder, const char *href, size_t length)
{
    Plain plain;
    Written *written = malloc(sizeof *written);
    Parameter parameters[MOST_PARAMETERS];
    if (take_apart(folder, href, length, &plain)) {
        size_t count = plain.query ? split_query(plain.query, plain.query_length, parameters) : 0;
        if (count)
            write_with_query(&plain, parameters, count, written);
        else if (!plain.query)
            write_without_query(&plain, written);
        if (count || !plain.query)
            check_url(&plain, written);
    }
    free(written);
}

static char *copy_of(const char *from, size_t length)
{
    char *copy = malloc(length ? length : 1);
    if (length)
        memcpy(copy, from, length);
    return copy;
}

/* Each href in memory of its own, which is then as it is in Python: nothing lies behind it. */
static void resolve_lines(const Folder *folder, const char *at, const char *end)
{
    for (int lines = 0; at < end && lines < 2000; lines++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        char *href = copy_of(at, length);
        resolve(folder, href, length);
        free(href);
        at += length + 1;
    }
}

static void try_input(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes, *end = text + length;
    const char *stop = length ? memchr(text, '\n', length) : NULL;
    size_t folder_length = (size_t)((stop ? stop : end) - text);
    char *folder = copy_of(text, folder_length);
    const char *slash = folder_length > 8 ? memchr(folder + 8, '/', folder_length - 8) : NULL;
    size_t root = slash ? (size_t)(slash - folder) : folder_length;
    if (is_usable(folder, folder_length, root)) {
        Folder opened = folder_of(folder, folder_length, root, (int)(length & 1));
        resolve_lines(&opened, stop ? stop + 1 : end, end);
    }
    free(folder);
}
