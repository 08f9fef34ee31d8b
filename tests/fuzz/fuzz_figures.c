/* Mutated texts through the sampling of their numbers. */

#include "../../src/skitter/native/core/figures.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE(" "), PIECE("0"), PIECE("9"), PIECE("007"), PIECE("12:45"), PIECE("3.20"),
    PIECE("2026-05-14"), PIECE("99999999999999999999999"), PIECE("word "), PIECE("/"), PIECE(":"), PIECE("\xFF"),
    PIECE("\0"), PIECE("1 2 3 4 5 6 7 8 9 10 11 12")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static void start(void)
{
}

static void try_input(const uint8_t *bytes, size_t length)
{
    Figures found = {.names = 0};
    size_t most = length < MOST_CHARACTERS ? length : MOST_CHARACTERS;
    uint8_t *exact = malloc(most ? most : 1);
    if (most)
        memcpy(exact, bytes, most);
    read_numbers(&found, exact, most / 4, note_in_name);
    read_numbers(&found, exact, most, note_in_text);
    expect(found.names <= MOST_IN_NAME && found.kept <= MARKS_KEPT, "more than there is room for");
    for (int i = 1; i < found.kept; i++)
        expect(found.marks[i - 1] < found.marks[i], "marks that are not in order");
    free(exact);
}
