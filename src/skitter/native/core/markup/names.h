/* The tag names that tree construction (HTML 13.2.6) or the text of a page knows, and what is true of each. */

#ifndef SKITTER_MARKUP_NAMES_H
#define SKITTER_MARKUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../lanes.h"

/* What an element leaves between the texts before, in and after it. */
enum { SPACED = 1, CELL = 2, BLOCK = 3, GAP = 3 };
enum {
    SPECIAL = 1 << 2,
    SCOPE = 1 << 3,    /* 13.2.4.2: ends the default scope */
    CLOSES_P = 1 << 4, /* a block of 13.2.6.4.7 with nothing else to it */
    IMPLIED = 1 << 5,  /* its end tag may be left out: 13.2.6.3 */
    FORMATTING = 1 << 6,
    HEADING = 1 << 7,
    TABLE_PART = 1 << 8,
    /* of the text */
    VERBATIM = 1 << 9,
    FURNITURE = 1 << 10,
    HIDDEN = 1 << 11,
    BANNER = 1 << 12, /* furniture, unless the text is of one `main` or `article` */
};

#define MARKUP_TAGS(X)                                                                                                 \
    X(A, "a", FORMATTING)                                                                                              \
    X(ADDRESS, "address", SPECIAL | BLOCK | CLOSES_P)                                                                  \
    X(APPLET, "applet", SPECIAL | SCOPE)                                                                               \
    X(AREA, "area", SPECIAL)                                                                                           \
    X(ARTICLE, "article", SPECIAL | BLOCK | CLOSES_P)                                                                  \
    X(ASIDE, "aside", SPECIAL | BLOCK | CLOSES_P | FURNITURE)                                                          \
    X(B, "b", FORMATTING)                                                                                              \
    X(BASE, "base", SPECIAL)                                                                                           \
    X(BASEFONT, "basefont", SPECIAL)                                                                                   \
    X(BGSOUND, "bgsound", SPECIAL)                                                                                     \
    X(BIG, "big", FORMATTING)                                                                                          \
    X(BLOCKQUOTE, "blockquote", SPECIAL | BLOCK | CLOSES_P)                                                            \
    X(BODY, "body", SPECIAL | BLOCK)                                                                                   \
    X(BR, "br", SPECIAL | BLOCK)                                                                                       \
    X(BUTTON, "button", SPECIAL | SPACED | FURNITURE)                                                                  \
    X(CAPTION, "caption", SPECIAL | SCOPE | BLOCK | TABLE_PART)                                                        \
    X(CENTER, "center", SPECIAL | BLOCK | CLOSES_P)                                                                    \
    X(CODE, "code", FORMATTING)                                                                                        \
    X(COL, "col", SPECIAL | TABLE_PART)                                                                                \
    X(COLGROUP, "colgroup", SPECIAL | BLOCK | TABLE_PART)                                                              \
    X(COMMAND, "command", 0)                                                                                           \
    X(DD, "dd", SPECIAL | BLOCK | IMPLIED)                                                                             \
    X(DETAILS, "details", SPECIAL | BLOCK | CLOSES_P)                                                                  \
    X(DIALOG, "dialog", BLOCK | CLOSES_P | FURNITURE)                                                                  \
    X(DIR, "dir", SPECIAL | BLOCK | CLOSES_P)                                                                          \
    X(DIV, "div", SPECIAL | BLOCK | CLOSES_P)                                                                          \
    X(DL, "dl", SPECIAL | BLOCK | CLOSES_P)                                                                            \
    X(DT, "dt", SPECIAL | BLOCK | IMPLIED)                                                                             \
    X(EM, "em", FORMATTING)                                                                                            \
    X(EMBED, "embed", SPECIAL)                                                                                         \
    X(FIELDSET, "fieldset", SPECIAL | BLOCK | CLOSES_P)                                                                \
    X(FIGCAPTION, "figcaption", SPECIAL | BLOCK | CLOSES_P)                                                            \
    X(FIGURE, "figure", SPECIAL | BLOCK | CLOSES_P)                                                                    \
    X(FONT, "font", FORMATTING)                                                                                        \
    X(FOOTER, "footer", SPECIAL | BLOCK | CLOSES_P | FURNITURE)                                                        \
    X(FORM, "form", SPECIAL | BLOCK)                                                                                   \
    X(FRAME, "frame", SPECIAL)                                                                                         \
    X(FRAMESET, "frameset", SPECIAL)                                                                                   \
    X(H1, "h1", SPECIAL | BLOCK | HEADING)                                                                             \
    X(H2, "h2", SPECIAL | BLOCK | HEADING)                                                                             \
    X(H3, "h3", SPECIAL | BLOCK | HEADING)                                                                             \
    X(H4, "h4", SPECIAL | BLOCK | HEADING)                                                                             \
    X(H5, "h5", SPECIAL | BLOCK | HEADING)                                                                             \
    X(H6, "h6", SPECIAL | BLOCK | HEADING)                                                                             \
    X(HEAD, "head", SPECIAL | HIDDEN)                                                                                  \
    X(HEADER, "header", SPECIAL | BLOCK | CLOSES_P | BANNER)                                                           \
    X(HGROUP, "hgroup", SPECIAL | BLOCK | CLOSES_P)                                                                    \
    X(HR, "hr", SPECIAL | BLOCK)                                                                                       \
    X(HTML, "html", SPECIAL | SCOPE | BLOCK)                                                                           \
    X(I, "i", FORMATTING)                                                                                              \
    X(IFRAME, "iframe", SPECIAL | SPACED | HIDDEN)                                                                     \
    X(IMAGE, "image", 0)                                                                                               \
    X(IMG, "img", SPECIAL)                                                                                             \
    X(INPUT, "input", SPECIAL)                                                                                         \
    X(ISINDEX, "isindex", 0)                                                                                           \
    X(KEYGEN, "keygen", SPECIAL)                                                                                       \
    X(LEGEND, "legend", BLOCK)                                                                                         \
    X(LI, "li", SPECIAL | BLOCK | IMPLIED)                                                                             \
    X(LINK, "link", SPECIAL)                                                                                           \
    X(LISTING, "listing", SPECIAL | BLOCK | VERBATIM)                                                                  \
    X(MAIN, "main", SPECIAL | BLOCK | CLOSES_P)                                                                        \
    X(MARQUEE, "marquee", SPECIAL | SCOPE)                                                                             \
    X(MATH, "math", 0)                                                                                                 \
    X(MENU, "menu", SPECIAL | BLOCK | CLOSES_P | FURNITURE)                                                            \
    X(META, "meta", SPECIAL)                                                                                           \
    X(NAV, "nav", SPECIAL | BLOCK | CLOSES_P | FURNITURE)                                                              \
    X(NOBR, "nobr", FORMATTING)                                                                                        \
    X(NOEMBED, "noembed", SPECIAL | HIDDEN)                                                                            \
    X(NOFRAMES, "noframes", SPECIAL | HIDDEN)                                                                          \
    X(NOSCRIPT, "noscript", SPECIAL | SPACED | FURNITURE)                                                              \
    X(OBJECT, "object", SPECIAL | SCOPE)                                                                               \
    X(OL, "ol", SPECIAL | BLOCK | CLOSES_P)                                                                            \
    X(OPTGROUP, "optgroup", BLOCK | IMPLIED)                                                                           \
    X(OPTION, "option", BLOCK | IMPLIED)                                                                               \
    X(P, "p", SPECIAL | BLOCK | CLOSES_P | IMPLIED)                                                                    \
    X(PARAM, "param", SPECIAL)                                                                                         \
    X(PLAINTEXT, "plaintext", SPECIAL)                                                                                 \
    X(PRE, "pre", SPECIAL | BLOCK | VERBATIM)                                                                          \
    X(RB, "rb", IMPLIED)                                                                                               \
    X(RP, "rp", IMPLIED)                                                                                               \
    X(RT, "rt", IMPLIED)                                                                                               \
    X(RTC, "rtc", IMPLIED)                                                                                             \
    X(RUBY, "ruby", 0)                                                                                                 \
    X(S, "s", FORMATTING)                                                                                              \
    X(SCRIPT, "script", SPECIAL | HIDDEN)                                                                              \
    X(SEARCH, "search", SPECIAL | BLOCK | CLOSES_P)                                                                    \
    X(SECTION, "section", SPECIAL | BLOCK | CLOSES_P)                                                                  \
    X(SELECT, "select", SPECIAL | SPACED | FURNITURE)                                                                  \
    X(SMALL, "small", FORMATTING)                                                                                      \
    X(SOURCE, "source", SPECIAL)                                                                                       \
    X(STRIKE, "strike", FORMATTING)                                                                                    \
    X(STRONG, "strong", FORMATTING)                                                                                    \
    X(STYLE, "style", SPECIAL | HIDDEN)                                                                                \
    X(SUMMARY, "summary", SPECIAL | BLOCK | CLOSES_P)                                                                  \
    X(SVG, "svg", SPACED | HIDDEN)                                                                                     \
    X(TABLE, "table", SPECIAL | SCOPE | BLOCK)                                                                         \
    X(TBODY, "tbody", SPECIAL | BLOCK | TABLE_PART)                                                                    \
    X(TD, "td", SPECIAL | SCOPE | CELL | TABLE_PART)                                                                   \
    X(TEMPLATE, "template", SPECIAL | SCOPE | HIDDEN)                                                                  \
    X(TEXTAREA, "textarea", SPECIAL | SPACED | VERBATIM)                                                               \
    X(TFOOT, "tfoot", SPECIAL | BLOCK | TABLE_PART)                                                                    \
    X(TH, "th", SPECIAL | SCOPE | CELL | TABLE_PART)                                                                   \
    X(THEAD, "thead", SPECIAL | BLOCK | TABLE_PART)                                                                    \
    X(TITLE, "title", SPECIAL | HIDDEN)                                                                                \
    X(TR, "tr", SPECIAL | BLOCK | TABLE_PART)                                                                          \
    X(TRACK, "track", SPECIAL)                                                                                         \
    X(TT, "tt", FORMATTING)                                                                                            \
    X(U, "u", FORMATTING)                                                                                              \
    X(UL, "ul", SPECIAL | BLOCK | CLOSES_P)                                                                            \
    X(WBR, "wbr", SPECIAL)                                                                                             \
    X(XMP, "xmp", SPECIAL | BLOCK | VERBATIM)

enum {
    OTHER,
#define X(id, name, traits) id,
    MARKUP_TAGS(X)
#undef X
        TAGS
};

static const uint16_t traits_of[TAGS] = {
    0,
#define X(id, name, traits) (traits),
    MARKUP_TAGS(X)
#undef X
};

static const char *const names_of[TAGS] = {
    "",
#define X(id, name, traits) name,
    MARKUP_TAGS(X)
#undef X
};

enum { LONGEST_NAME = 10, NAME_SLOTS = 512 };

/* A name of at most 16 bytes, in lower case and little-endian. Made in registers: bytes that are written one by one and
 * then read as a word stall the processor, a quarter of the time that reading a tag took. */
typedef struct {
    uint64_t first, second;
} Name;

static Name slot_names[NAME_SLOTS];
static uint8_t slot_tags[NAME_SLOTS];

static inline uint8_t lowered(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
}

/* In lower case, all eight at once. */
static inline uint64_t lowered_word(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t low = word & 0x7F * ones;
    uint64_t from_a = low + (0x80 - 'A') * ones, beyond_z = low + (0x7F - 'Z') * ones;
    return word | ((from_a ^ beyond_z) & ~word & 0x80 * ones) >> 2;
}

/* Of at most 16 bytes; 16 can be read. */
static inline Name name_of(const uint8_t *from, size_t length)
{
    uint64_t first = lowered_word(first_bytes(little_word(from), length));
    return (Name){first, length > 8 ? lowered_word(first_bytes(little_word(from + 8), length - 8)) : 0};
}

/* The slot of that name, or the free one where it would be. */
static inline uint32_t slot_of(Name name)
{
    uint32_t slot = (uint32_t)((name.first ^ name.second * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u >> 55);
    while (slot_tags[slot] && (slot_names[slot].first != name.first || slot_names[slot].second != name.second))
        slot = (slot + 1) % NAME_SLOTS;
    return slot;
}

static void fill_names(void)
{
    for (int tag = 1; tag < TAGS; tag++) {
        uint8_t padded[16] = {0};
        memcpy(padded, names_of[tag], strlen(names_of[tag]));
        Name name = name_of(padded, strlen(names_of[tag]));
        uint32_t slot = slot_of(name);
        slot_names[slot] = name;
        slot_tags[slot] = (uint8_t)tag;
    }
}

static int tag_named(const uint8_t *name, size_t length)
{
    return length > LONGEST_NAME ? OTHER : slot_tags[slot_of(name_of(name, length))];
}

/* `said` is lower case. */
static bool is_named(const uint8_t *name, size_t length, const char *said)
{
    if (length != strlen(said))
        return false;
    for (size_t i = 0; i < length; i++)
        if (lowered(name[i]) != (uint8_t)said[i])
            return false;
    return true;
}

#endif
