/* Mutated pages through the core of the markup kernel.
 *
 * Odd inputs go through the whole core, as a page does. Even ones go to the pass alone, twice, with other bytes behind the
 * end: it may read these, but they must mean nothing. */

#include "../../src/skitter/native/core/markup/document.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE("<"), PIECE(">"), PIECE("</"), PIECE("<!--"), PIECE("-->"), PIECE("--!>"),
    PIECE("&"), PIECE("&#"), PIECE("&#x41;"), PIECE("&amp"), PIECE("&CounterClockwiseContourIntegral;"), PIECE("&nGt;"),
    PIECE("\""), PIECE("'"), PIECE("="), PIECE("/"), PIECE("<a href=x>"), PIECE("</a>"),
    PIECE("<a href='a&amp;b#c' rel=nofollow>"), PIECE("<a href=' x #y'>"), PIECE("<b>"), PIECE("</b>"), PIECE("<p>"),
    PIECE("</p>"), PIECE("<table>"), PIECE("<tr>"), PIECE("<td>"), PIECE("</table>"), PIECE("<svg>"), PIECE("</svg>"),
    PIECE("<title>"), PIECE("</title>"), PIECE("<select>"), PIECE("<option>"), PIECE("</select>"), PIECE("<script>"),
    PIECE("<!--<script>"), PIECE("</script>"), PIECE("<textarea>\n"), PIECE("<pre>\n"), PIECE("<main>"),
    PIECE("</main>"), PIECE("<article>"), PIECE("<nav>"), PIECE("<form>"), PIECE("</form>"), PIECE("<object>"),
    PIECE("</object>"), PIECE("<li>"), PIECE("<dd>"), PIECE("<h1>"), PIECE("<button>"), PIECE("<caption>"),
    PIECE("<colgroup>"), PIECE("<col>"), PIECE("<template>"), PIECE("</template>"),
    PIECE("<template shadowrootmode=open>"), PIECE("<template shadowrootmod"), PIECE("<noframes>"), PIECE("<meta charset=x>"),
    PIECE("<meta name=robots content=y>"), PIECE("<meta http-equiv=content-type content='a;charset=b'>"),
    PIECE("<link rel=next href=z>"), PIECE("<base href=q>"), PIECE("<iframe src=i>"), PIECE("<math>"), PIECE("<mi>"),
    PIECE("<font>"), PIECE("</font>"), PIECE("<i>"), PIECE("</i>"), PIECE("<div role=navigation>"), PIECE("<![CDATA["),
    PIECE("<!doctype html>"), PIECE("\xC2\xA0"), PIECE("\xE2\x80\x80"), PIECE("\xFF"), PIECE("\xF0\x9F"), PIECE("\r\n"),
    PIECE("\n"), PIECE(" "), PIECE("\0"), PIECE("\xEF\xBB\xBF")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static Document document;

/* `name<TAB>text` a line: Python's html.entities.html5, written by the runner. */
static void read_entities(const char *path)
{
    static char line[200];
    FILE *file = path ? fopen(path, "rb") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t'), *end = tab ? strchr(tab, '\n') : NULL;
        if (end)
            add_reference(line, (size_t)(tab - line), tab + 1, (size_t)(end - tab - 1));
    }
    if (file)
        fclose(file);
}

static void start(void)
{
    fill_names();
    fill_classes();
    read_entities(getenv("FUZZ_ENTITIES"));
}

static void check_span(const Page *page, Span span, bool is_text)
{
    if (span.length == ABSENT)
        return;
    expect(span.at <= page->kept.used && span.length <= page->kept.used - span.at, "a string that was not kept");
    if (is_text && span.length)
        expect(is_utf8(page->kept.at + span.at, span.length), "a string that is not UTF-8");
}

static void check_page(const Page *page, bool is_text)
{
    check_span(page, page->title, is_text);
    check_span(page, page->base, is_text);
    check_span(page, page->lang, is_text);
    check_span(page, page->xml_lang, is_text);
    for (size_t i = 0; i < page->event_count; i++)
        for (int part = 0; part < 3; part++)
            check_span(page, page->events[i].parts[part], is_text);
    if (is_text && page->text.used)
        expect(is_utf8(page->text.at, page->text.used), "a text that is not UTF-8");
}

static void read_all(const uint8_t *bytes, size_t length)
{
    Wanted wanted = {bytes[0] & 2, bytes[0] & 4, (const uint8_t *)"skitter", 7};
    if (read_document(&document, bytes + 1, length - 1, &wanted) == IS_READ)
        check_page(&document.page, true);
    release_document(&document);
}

static Page *read_pass(uint8_t *body, size_t length, int region, bool with_anchors)
{
    Page *page = calloc(1, sizeof *page);
    for (int i = 0; i < LANES; i++)
        body[length + (size_t)i] = (uint8_t)"<>&=\"' /ax\0\xFF"[below(12)];
    page->body = body;
    page->end = body + length;
    page->product = (const uint8_t *)"skitter";
    page->product_length = 7;
    page->region = region;
    page->with_anchors = with_anchors;
    read_markup_page(page);
    if (!page->given_up)
        check_page(page, false);
    return page;
}

static void release_page(Page *page)
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

static void read_twice(const uint8_t *bytes, size_t length)
{
    uint8_t *body = malloc(length + LANES);
    if (length)
        memcpy(body, bytes, length);
    int region = (int)below(4);
    bool with_anchors = below(4) > 0;
    Page *one = read_pass(body, length, region, with_anchors), *other = read_pass(body, length, region, with_anchors);
    expect(one->given_up == other->given_up && is_equal(&one->text, &other->text) && is_equal(&one->kept, &other->kept),
        "bytes behind the end mean something");
    release_page(one);
    release_page(other);
    free(body);
}

static void try_input(const uint8_t *bytes, size_t length)
{
    if (length && bytes[0] & 1)
        read_all(bytes, length);
    else
        read_twice(bytes, length);
}
