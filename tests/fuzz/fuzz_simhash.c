/* Mutated texts through SimHash, and through the UTF-8 that texts are made of and checked for. */

#include "../../src/skitter/native/core/simhash.h"
#include "../../src/skitter/native/core/utf8.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE(" "), PIECE("word "), PIECE("Word"), PIECE("the "), PIECE("0"), PIECE("\n"),
    PIECE("\xC3\xA4"), PIECE("\xE6\x96\x87"), PIECE("\xE6\x96\x87\xE5\xAD\x97"), PIECE("\xED\x9F\xBF"),
    PIECE("\xED\xA0\x80"), PIECE("\xF0\x9F\x98\x80"), PIECE("\xF4\x90\x80\x80"), PIECE("\xE0\x80\x80"), PIECE("\xC0\x80"),
    PIECE("\xFF"), PIECE("\x80"), PIECE("\0"), PIECE("a"), PIECE("zzzzzzzz"), PIECE("zzzzzzzzz"), PIECE("A-Z")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static void start(void)
{
    fill_fold();
}

static void check_encoding(const uint8_t *bytes, size_t length)
{
    uint8_t *twice = malloc(2 * length + 1), *thrice = malloc(3 * (length / 2) + 1);
    uint16_t *pairs = malloc(length + 1);
    size_t made = (size_t)(write_utf8_of_bytes(bytes, length, twice) - twice);
    expect(made <= 2 * length && is_utf8(twice, made), "Latin-1 that became no UTF-8");
    if (length)
        memcpy(pairs, bytes, length / 2 * 2);
    made = (size_t)(write_utf8_of_pairs(pairs, length / 2, thrice) - thrice);
    expect(made <= 3 * (length / 2) && is_utf8(thrice, made), "UCS-2 that became no UTF-8");
    free(twice);
    free(thrice);
    free(pairs);
}

static void try_input(const uint8_t *bytes, size_t length)
{
    uint64_t found = 0, again = 0;
    size_t most = length < MOST_BYTES ? length : MOST_BYTES;
    uint8_t *exact = malloc(most ? most : 1);
    if (most)
        memcpy(exact, bytes, most);
    bool is_found = find_simhash(exact, most, &found);
    expect(find_simhash(exact, most, &again) == is_found && found == again, "two fingerprints of one text");
    free(exact);
    is_utf8(bytes, length);
    check_encoding(bytes, length);
}
