/* Fingerprints as they are stored, 8 bytes each, into filters of odd sizes: the first byte is the size. */

#include "../../src/skitter/native/core/near_words.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE("\0\0\0\0\0\0\0\0"), PIECE("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), PIECE("\x80"),
    PIECE("abcdefgh"), PIECE("\x01"), PIECE("\0\0\0\0"), PIECE("\xFF\xFF\xFF\xFF")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static uint64_t *masks;

static void start(void)
{
    masks = malloc(MASKS * sizeof *masks);
    for (int i = 0; i < MASKS; i++)
        masks[i] = draw() & draw() & draw() & draw();
}

static void check_fingerprint(const Filter *filter, uint64_t fingerprint)
{
    int *found = malloc(ASKED * sizeof *found);
    find_candidates(filter, fingerprint, found);
    add_fingerprint(filter, fingerprint);
    int count = find_candidates(filter, fingerprint, found);
    expect(count > 1 && found[0] == 0, "a fingerprint that was added is not there");
    for (int i = 0; i < count; i++)
        expect(found[i] >= 0 && found[i] < 2 * PROBES, "no number of a probe");
    expect(is_close(fingerprint, fingerprint ^ 1, 1) && !is_close(fingerprint, fingerprint ^ 7, 2), "a wrong distance");
    free(found);
}

static void try_input(const uint8_t *bytes, size_t length)
{
    if (!length)
        return;
    uint64_t count = 1 + bytes[0];
    Filter filter = {calloc(count, sizeof(uint64_t)), count, masks};
    for (size_t at = 1; at + FINGERPRINT <= length && at < 4000; at += FINGERPRINT)
        check_fingerprint(&filter, fingerprint_at(bytes + at));
    free(filter.words);
}
