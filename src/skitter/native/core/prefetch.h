/* Memory that will be looked at soon is asked for in advance: then many misses of the cache take as long as a few.
 *
 * In gcc's eyes a function that only prefetches has no effect, and calls of it are removed: for a long time no
 * instruction of `keyset` prefetched anything, until somebody read the machine code. The empty assembly counts as an
 * effect, and costs nothing. Do not remove it. */

#ifndef SKITTER_PREFETCH_H
#define SKITTER_PREFETCH_H

static inline void prefetch(const void *place)
{
    __builtin_prefetch(place);
    __asm__ volatile("" : : "r"(place));
}

#endif
