/* Mutated pages through the core of the markup kernel, alone, under the sanitizers:
 *
 *   cc -g -O1 -fsanitize=address,undefined -Isrc/skitter/native bench/fuzz_markup.c -o fuzz_markup
 *   ./fuzz_markup SECONDS FILE...
 *
 * Every page lies in memory of exactly its size and the lanes that may be read behind it, and is read twice, with
 * other bytes there: what it says must be the same. Says how many there were; a sanitizer or a difference ends it. */

#include "markup_modes.h"

#include <stdio.h>
#include <time.h>

enum { LARGEST_PAGE = 20000 };

static const char *const pieces[] = {"<", ">", "</", "<!--", "-->", "&", "&#", "&#x41;", "&amp", "\"", "'", "=", "/",
    "<a href=x>", "</a>", "<a href='a&amp;b#c' rel=nofollow>", "<b>", "</b>", "<p>", "</p>", "<table>", "<tr>", "<td>",
    "</table>", "<svg>", "</svg>", "<title>", "<select>", "<option>", "</select>", "<script>", "<!--<script>",
    "</script>", "<textarea>\n", "<pre>\n", "<main>", "</main>", "<article>", "<nav>", "<form>", "</form>", "<object>",
    "</object>", "<li>", "<dd>", "<h1>", "<button>", "<caption>", "<colgroup>", "<col>", "<meta charset=x>",
    "<meta name=robots content=y>", "<link rel=next href=z>", "<math>", "<mi>", "<font>", "</font>", "<i>", "</i>",
    "<![CDATA[", "<!doctype html>", "\xC2\xA0", "\xE2\x80\x80", "\xFF", "\xF0\x9F", "\n", " ", "\0"};

static uint64_t seed = 88172645463325252u;

static size_t drawn(size_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return below ? (size_t)(seed % below) : 0;
}

static size_t mutate(uint8_t *body, size_t length)
{
    for (size_t turns = 1 + drawn(30); turns; turns--) {
        size_t at = drawn(length + 1);
        const char *piece = pieces[drawn(sizeof pieces / sizeof *pieces)];
        size_t size = drawn(4) ? strlen(piece) : 0, gone = size ? drawn(3) : drawn(60);
        gone = gone < length - at ? gone : length - at;
        if (length - gone + size > LARGEST_PAGE)
            continue;
        memmove(body + at + size, body + at + gone, length - at - gone);
        memcpy(body + at, piece, size);
        length += size - gone;
    }
    return length;
}

static Page *read_once(uint8_t *body, size_t length, int region, bool with_anchors)
{
    Page *page = calloc(1, sizeof *page);
    for (int i = 0; i < LANES; i++)
        body[length + (size_t)i] = (uint8_t)"<>&=\"' /ax\0\xFF"[drawn(12)];
    page->body = body;
    page->end = body + length;
    page->product = (const uint8_t *)"skitter";
    page->product_length = 7;
    page->region = region;
    page->with_anchors = with_anchors;
    read_markup_page(page);
    return page;
}

static void release(Page *page)
{
    free(page->text.at);
    free(page->kept.at);
    free(page->scratch.at);
    free(page->anchor_text.at);
    free(page->events);
    free(page->known);
    free(page);
}

static bool is_equal(const Bytes *one, const Bytes *other)
{
    return one->used == other->used && (!one->used || memcmp(one->at, other->at, one->used) == 0);
}

static void read_alone(const uint8_t *from, size_t length)
{
    uint8_t *body = malloc(length + LANES);
    memcpy(body, from, length);
    int region = (int)drawn(4);
    bool with_anchors = drawn(4) > 0;
    Page *one = read_once(body, length, region, with_anchors), *other = read_once(body, length, region, with_anchors);
    if (one->given_up != other->given_up || !is_equal(&one->text, &other->text) || !is_equal(&one->kept, &other->kept))
        abort();
    release(one);
    release(other);
    free(body);
}

int main(int count, char **arguments)
{
    static uint8_t body[LARGEST_PAGE];
    fill_names();
    fill_classes();
    add_reference("amp;", 4, "&", 1);
    add_reference("amp", 3, "&", 1);
    add_reference("nGt;", 4, "\xE2\x89\xAB\xE2\x83\x92", 6);
    time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
    size_t pages = 0;
    while (time(NULL) < end) {
        size_t length = 0;
        FILE *file = count > 2 ? fopen(arguments[2 + drawn((size_t)count - 2)], "rb") : NULL;
        if (file) {
            fseek(file, drawn(2) ? 0 : (long)drawn(20000), SEEK_SET);
            length = fread(body, 1, drawn(LARGEST_PAGE), file);
            fclose(file);
        }
        for (int turn = 0; turn < 20; turn++, pages++) {
            length = mutate(body, length);
            read_alone(body, length);
        }
    }
    printf("%zu pages\n", pages);
    return 0;
}
