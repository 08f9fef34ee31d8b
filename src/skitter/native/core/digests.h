/* SHA-256 (FIPS 180-4) of a body, and of a head and that body, side by side: each instruction of one waits for the one
 * before, so that two go in little more than the time of one. By the SHA instructions of x86 only; whoever lacks them
 * has a library that is as quick as can be. */

#ifndef SKITTER_DIGESTS_CORE_H
#define SKITTER_DIGESTS_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHA256_BLOCK = 64, SHA256_DIGEST = 32, SHA256_LENGTH = 8 };

#if defined(__x86_64__) && defined(__GNUC__)
#define SKITTER_HAS_SHA 1

#include <cpuid.h>
#include <immintrin.h>

#define SHA_TARGET __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t sha256_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The eight words of a state in the order that the instructions want: A B E F and C D G H, highest first. */
typedef struct {
    __m128i abef, cdgh;
} Sha256;

static int sha256_is_usable(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3))
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

SHA_TARGET static inline Sha256 sha256_start(void)
{
    Sha256 state;
    state.abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c);
    state.cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
    return state;
}

SHA_TARGET static inline __m128i sha256_load(const uint8_t *bytes)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes), order);
}

/* Four rounds with four words of the schedule. */
#define SHA256_ROUNDS(s, words, k)                                                                                  \
    do {                                                                                                            \
        __m128i with = _mm_add_epi32(words, k);                                                                     \
        (s).cdgh = _mm_sha256rnds2_epu32((s).cdgh, (s).abef, with);                                                 \
        (s).abef = _mm_sha256rnds2_epu32((s).abef, (s).cdgh, _mm_shuffle_epi32(with, 0x0E));                        \
    } while (0)

/* The next four words of the schedule take the place of the oldest. */
#define SHA256_EXTEND(w0, w1, w2, w3)                                                                               \
    (w0) = _mm_sha256msg2_epu32(                                                                                    \
        _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3)

/* `blocks` of both; one may be left out by giving it none of its own. */
#define SHA256_QUARTER(i, w, x, y, z)                                                                               \
    do {                                                                                                            \
        k = _mm_load_si128((const __m128i *)(sha256_constants + 4 * (i)));                                          \
        SHA256_ROUNDS(one, a##w, k);                                                                                \
        SHA256_ROUNDS(two, b##w, k);                                                                                \
        if ((i) < 12) {                                                                                             \
            SHA256_EXTEND(a##w, a##x, a##y, a##z);                                                                  \
            SHA256_EXTEND(b##w, b##x, b##y, b##z);                                                                  \
        }                                                                                                           \
    } while (0)

SHA_TARGET static void sha256_both(Sha256 *first, const uint8_t *of, Sha256 *second, const uint8_t *other, size_t blocks)
{
    Sha256 one = *first, two = *second;
    for (; blocks; blocks--, of += SHA256_BLOCK, other += SHA256_BLOCK) {
        const Sha256 before = one, earlier = two;
        __m128i a0 = sha256_load(of), a1 = sha256_load(of + 16), a2 = sha256_load(of + 32), a3 = sha256_load(of + 48);
        __m128i b0 = sha256_load(other), b1 = sha256_load(other + 16);
        __m128i b2 = sha256_load(other + 32), b3 = sha256_load(other + 48);
        __m128i k;
        SHA256_QUARTER(0, 0, 1, 2, 3);
        SHA256_QUARTER(1, 1, 2, 3, 0);
        SHA256_QUARTER(2, 2, 3, 0, 1);
        SHA256_QUARTER(3, 3, 0, 1, 2);
        SHA256_QUARTER(4, 0, 1, 2, 3);
        SHA256_QUARTER(5, 1, 2, 3, 0);
        SHA256_QUARTER(6, 2, 3, 0, 1);
        SHA256_QUARTER(7, 3, 0, 1, 2);
        SHA256_QUARTER(8, 0, 1, 2, 3);
        SHA256_QUARTER(9, 1, 2, 3, 0);
        SHA256_QUARTER(10, 2, 3, 0, 1);
        SHA256_QUARTER(11, 3, 0, 1, 2);
        SHA256_QUARTER(12, 0, 1, 2, 3);
        SHA256_QUARTER(13, 1, 2, 3, 0);
        SHA256_QUARTER(14, 2, 3, 0, 1);
        SHA256_QUARTER(15, 3, 0, 1, 2);
        one.abef = _mm_add_epi32(one.abef, before.abef);
        one.cdgh = _mm_add_epi32(one.cdgh, before.cdgh);
        two.abef = _mm_add_epi32(two.abef, earlier.abef);
        two.cdgh = _mm_add_epi32(two.cdgh, earlier.cdgh);
    }
    *first = one;
    *second = two;
}

/* One alone, for what the other does not have: the second is thrown away. */
SHA_TARGET static void sha256_one(Sha256 *state, const uint8_t *bytes, size_t blocks)
{
    Sha256 unused = *state;
    sha256_both(state, bytes, &unused, bytes, blocks);
}

/* The last bytes, fewer than a block, and how many there were in all. */
SHA_TARGET static void sha256_end(Sha256 *state, const uint8_t *rest, size_t count, uint64_t total, uint8_t *digest)
{
    uint8_t last[2 * SHA256_BLOCK] = {0};
    size_t size = count + 1 + SHA256_LENGTH > SHA256_BLOCK ? 2 * SHA256_BLOCK : SHA256_BLOCK;
    memcpy(last, rest, count);
    last[count] = 0x80;
    for (int i = 0; i < SHA256_LENGTH; i++)
        last[size - 1 - i] = (uint8_t)(total * 8 >> 8 * i);
    sha256_one(state, last, size / SHA256_BLOCK);
    uint32_t words[8];
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, state->abef);
    _mm_storeu_si128((__m128i *)cdgh, state->cdgh);
    words[0] = abef[3], words[1] = abef[2], words[4] = abef[1], words[5] = abef[0];
    words[2] = cdgh[3], words[3] = cdgh[2], words[6] = cdgh[1], words[7] = cdgh[0];
    for (int i = 0; i < SHA256_DIGEST; i++)
        digest[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i % 4)));
}

/* Of the body, and of head and body together. */
SHA_TARGET static void sha256_digests(
    const uint8_t *head, size_t head_length, const uint8_t *body, size_t length, uint8_t *of_body, uint8_t *of_both)
{
    Sha256 one = sha256_start(), two = sha256_start();
    size_t whole = head_length / SHA256_BLOCK, left = head_length % SHA256_BLOCK, taken = 0;
    sha256_one(&two, head, whole);
    if (left) {
        /* the block in which the head ends and the body begins */
        uint8_t joint[SHA256_BLOCK];
        taken = length < SHA256_BLOCK - left ? length : SHA256_BLOCK - left;
        memcpy(joint, head + whole * SHA256_BLOCK, left);
        memcpy(joint + left, body, taken);
        if (left + taken < SHA256_BLOCK) {
            sha256_end(&two, joint, left + taken, (uint64_t)head_length + length, of_both);
            sha256_end(&one, body, length, length, of_body);
            return;
        }
        sha256_one(&two, joint, 1);
    }
    size_t mine = length / SHA256_BLOCK, others = (length - taken) / SHA256_BLOCK;
    sha256_both(&one, body, &two, body + taken, others);
    sha256_one(&one, body + others * SHA256_BLOCK, mine - others);
    sha256_end(&one, body + mine * SHA256_BLOCK, length % SHA256_BLOCK, length, of_body);
    taken += others * SHA256_BLOCK;
    sha256_end(&two, body + taken, length - taken, (uint64_t)head_length + length, of_both);
}

#endif
#endif
