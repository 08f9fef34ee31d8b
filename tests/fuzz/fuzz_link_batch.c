/* Mutated batches of links: how many keys, which are kept, the lengths of section and page, and then their strings. */

#include "../../src/skitter/native/core/link_batch.h"
#include "fuzz.h"

enum { HEADER = 12, MOST_LINKS = 64 };

static const Piece PIECES[] = {PIECE("\n"), PIECE("\n\n"), PIECE("http://a.example/"), PIECE("http://a.example/s/"),
    PIECE("http://a.example/s/page"), PIECE("x"), PIECE("\0"), PIECE("\x01"), PIECE("\xFF"), PIECE("\x40"),
    PIECE("http://b.example/a/b/c?d=e\n"), PIECE("")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static void start(void)
{
}

static char *room(size_t size)
{
    return malloc(size ? size : 1);
}

static Text text_of(const uint8_t *bytes, size_t *left, size_t length)
{
    length = length < *left ? length : *left;
    Text text = {room(length), length};
    memcpy((char *)text.bytes, bytes, length);
    *left -= length;
    return text;
}

static void try_split(const uint8_t *header, Text section, Text page, Text urls)
{
    size_t links = header[0] % (MOST_LINKS + 1);
    char *keys = room(links * LINK_KEY), *is_kept = room(links);
    for (size_t i = 0; i < links * LINK_KEY; i++)
        keys[i] = (char)i;
    for (size_t i = 0; i < links; i++)
        is_kept[i] = (char)(header[1 + i / 8] >> i % 8 & 1);
    Split split = {room(links * LINK_KEY), room(urls.length), room(links * LINK_TAIL), 0, 0, 0};
    if (split_links(keys, is_kept, links, urls, section, page, &split)) {
        expect(split.links <= links && split.url_bytes <= urls.length, "more than there was");
        expect(split.links + split.tail_bytes / LINK_TAIL <= links, "a link twice");
    }
    free(split.keys);
    free(split.urls);
    free(split.tails);
    free(keys);
    free(is_kept);
}

static void try_input(const uint8_t *bytes, size_t length)
{
    if (length < HEADER)
        return;
    size_t left = length - HEADER;
    const uint8_t *at = bytes + HEADER;
    Text section = text_of(at, &left, bytes[9]);
    Text page = text_of(at + section.length, &left, bytes[10]);
    Text urls = text_of(at + section.length + page.length, &left, left);
    try_split(bytes, section, page, urls);
    free((char *)section.bytes);
    free((char *)page.bytes);
    free((char *)urls.bytes);
}
