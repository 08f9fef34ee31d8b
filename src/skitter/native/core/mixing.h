/* Every bit of a word says something about every bit of what comes out: SplitMix64's last step. What lies on disk depends
 * on it. */

#ifndef SKITTER_MIXING_H
#define SKITTER_MIXING_H

#include <stdint.h>

static inline uint64_t mixed(uint64_t word)
{
    word ^= word >> 30;
    word *= 0xBF58476D1CE4E5B9u;
    word ^= word >> 27;
    word *= 0x94D049BB133111EBu;
    return word ^ word >> 31;
}

#endif
