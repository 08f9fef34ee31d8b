/* Bodies of any length through both digests at once; cut elsewhere, head and body together have the same digest. */

#include "../../src/skitter/native/core/digests.h"
#include "fuzz.h"

static const Piece PIECES[] = {PIECE("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), PIECE("\x80"),
    PIECE("\0\0\0\0\0\0\0\0"), PIECE("a"), PIECE("HTTP/1.1 200 OK\r\n\r\n")};
static const size_t PIECE_COUNT = sizeof PIECES / sizeof *PIECES;

static void start(void)
{
}

#ifdef SKITTER_HAS_SHA
static void digest_cut_at(const uint8_t *bytes, size_t length, size_t cut, uint8_t *of_both)
{
    uint8_t of_body[SHA256_DIGEST];
    uint8_t *head = malloc(cut ? cut : 1), *body = malloc(length - cut ? length - cut : 1);
    if (cut)
        memcpy(head, bytes, cut);
    if (length - cut)
        memcpy(body, bytes + cut, length - cut);
    sha256_digests(head, cut, body, length - cut, of_body, of_both);
    free(head);
    free(body);
}
#endif

static void try_input(const uint8_t *bytes, size_t length)
{
#ifdef SKITTER_HAS_SHA
    if (!sha256_is_usable())
        return;
    uint8_t whole[SHA256_DIGEST], cut[SHA256_DIGEST];
    digest_cut_at(bytes, length, 0, whole);
    for (int times = 0; times < 8; times++) {
        digest_cut_at(bytes, length, below(length + 1), cut);
        expect(!memcmp(whole, cut, SHA256_DIGEST), "two digests of one record");
    }
#endif
}
