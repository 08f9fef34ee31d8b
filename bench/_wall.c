/* A wall clock that can be set, for one process and its children, by LD_PRELOAD: CLOCK_REALTIME is off by the
 * nanoseconds that the file named in WALL_SHIFT holds at that moment, in every call by which Python, RocksDB, Arrow and
 * libuv ask for it or wait by it. Every other clock is the kernel's. A wait that has begun keeps its length.
 *
 * libfaketime (0.9.10) does this and more, and its pthread_cond_timedwait returns at once, whatever it waits for: two
 * Python threads then pass the GIL to and fro at every step, and a crawl that writes Parquet asks for nothing. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
/* Nobody tells which clock a condition waits by. No machine has been up for thirty years: beyond that it is a date. */
#define A_DATE 1000000000LL

typedef int (*get_clock)(clockid_t, struct timespec *);
typedef int (*timed_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static const int64_t NONE = 0;
static const volatile int64_t *shift = &NONE;

__attribute__((constructor)) static void map_shift(void) {
    const char *name = getenv("WALL_SHIFT");
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        shift = mapped;
    close(file);
}

static struct timespec moved(struct timespec at, int64_t by) {
    int64_t nanoseconds = at.tv_sec * SECOND + at.tv_nsec + by;
    return (struct timespec){.tv_sec = nanoseconds / SECOND, .tv_nsec = nanoseconds % SECOND};
}

int clock_gettime(clockid_t which, struct timespec *into) {
    static get_clock kernels;
    if (kernels == NULL)
        kernels = (get_clock)dlsym(RTLD_NEXT, "clock_gettime");
    int failed = kernels(which, into);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        *into = moved(*into, *shift);
    return failed;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *into = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL)
        *into = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static timed_wait kernels;
    if (kernels == NULL)
        kernels = (timed_wait)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec real = until->tv_sec > A_DATE ? moved(*until, -*shift) : *until;
    return kernels(condition, mutex, &real);
}
