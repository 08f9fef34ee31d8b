/* Mutated pages through the core of the markup kernel, alone, under the sanitizers:
 *
 *   cc -g -O1 -fsanitize=address,undefined -Isrc/skitter/native bench/fuzz_markup.c -o fuzz_markup
 *   ./fuzz_markup SECONDS FILE...
 *
 * Every page lies in memory of exactly its size. Says how many there were; a sanitizer ends it at the first fault. */

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

static void read_alone(const uint8_t *from, size_t length)
{
    uint8_t *body = malloc(length ? length : 1);
    Page *page = calloc(1, sizeof *page);
    memcpy(body, from, length);
    page->body = body;
    page->end = body + length;
    page->product = (const uint8_t *)"skitter";
    page->product_length = 7;
    page->region = (int)drawn(4);
    page->with_anchors = drawn(4) > 0;
    read_markup_page(page);
    free(page->text.at);
    free(page->kept.at);
    free(page->scratch.at);
    free(page->anchor_text.at);
    free(page->events);
    free(page->known);
    free(page);
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
