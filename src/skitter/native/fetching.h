/* Memory that will be looked at soon is fetched meanwhile: many misses take as long as a few.
 *
 * A function that does nothing else has no effect in gcc's eyes, and is left out wherever it is called: until somebody
 * looked, no instruction of `keyset` fetched anything. The empty assembly is an effect, and costs nothing. */

#ifndef SKITTER_FETCHING_H
#define SKITTER_FETCHING_H

static inline void fetch(const void *place)
{
    __builtin_prefetch(place);
    __asm__ volatile("" : : "r"(place));
}

#endif
