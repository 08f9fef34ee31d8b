/* What all fuzz drivers share: a corpus of small files, mutations that depend on a seed and a number alone, a budget of
 * time, and a limit of processor time for each input in proportion to its size.
 *
 * A driver includes this, defines `PIECES`, `start` and `try_input`, and is run as
 *
 *   fuzz_NAME SECONDS SEED FILE...        try mutations of these files for so long
 *   fuzz_NAME --only FILE                 try this file as it is
 *
 * Every input lies in memory of exactly its size. What fails is written to the file `fuzz_NAME.failed`. */

#ifndef SKITTER_FUZZ_H
#define SKITTER_FUZZ_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_INPUT = 65536, MOST_FILES = 1000, MOST_EDITS = 24, HANGS_AFTER = 60 };

/* Sanitizers slow a core down five to ten times, and other processes disturb it. A core that takes time in proportion to
 * the square of 64 KB takes seconds. */
static const double SECONDS_ALWAYS = 0.05, SECONDS_PER_BYTE = 2e-6;

typedef struct {
    const char *text;
    size_t length;
} Piece;

#define PIECE(literal) {literal, sizeof literal - 1}

typedef struct {
    uint8_t *bytes;
    size_t length;
} Input;

extern void __sanitizer_set_death_callback(void (*callback)(void));

/* The driver's own. */
static const Piece PIECES[];
static const size_t PIECE_COUNT;
static void start(void);
static void try_input(const uint8_t *bytes, size_t length);

static Input files[MOST_FILES];
static size_t file_count;
static uint64_t drawn_state;
static const char *program;
static const uint8_t *current;
static size_t current_length;
static uint64_t current_number;

static uint64_t draw(void)
{
    drawn_state += 0x9E3779B97F4A7C15u;
    uint64_t word = drawn_state;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(draw() % limit) : 0;
}

static void keep_failed(void)
{
    char name[500];
    snprintf(name, sizeof name, "%s.failed", program);
    FILE *file = fopen(name, "wb");
    if (file) {
        fwrite(current, 1, current_length, file);
        fclose(file);
    }
    fprintf(stderr, "%s: input %llu of %zu bytes failed; it is in %s\n", program, (unsigned long long)current_number,
        current_length, name);
}

/* The undefined behaviour sanitizer aborts and knows no callback; a core that never ends is ended by the alarm. */
static void on_signal(int signal)
{
    fprintf(stderr, "%s: %s\n", program, signal == SIGALRM ? "it does not end" : "aborted");
    keep_failed();
    _Exit(1);
}

static void fail(const char *why)
{
    fprintf(stderr, "%s: %s\n", program, why);
    keep_failed();
    exit(1);
}

/* What must hold of a core's answer. */
static inline void expect(bool holds, const char *what)
{
    if (!holds)
        fail(what);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In memory of exactly its size: reading one byte more is a fault. */
static void try_exactly(const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length ? length : 1);
    if (length)
        memcpy(exact, bytes, length);
    uint8_t *end = exact + (length ? 0 : 1);
    current = length ? exact : end;
    current_length = length;
    alarm(HANGS_AFTER);
    double limit = SECONDS_ALWAYS + SECONDS_PER_BYTE * (double)length, least = limit + 1;
    /* Slow once may be the machine's doing, slow three times is the core's. */
    for (int attempt = 0; attempt < 3 && least > limit; attempt++) {
        double begun = processor_seconds();
        try_input(current, length);
        double taken = processor_seconds() - begun;
        least = taken < least ? taken : least;
    }
    if (least > limit) {
        fprintf(stderr, "%.3f s of processor time, %.3f s allowed\n", least, limit);
        fail("too slow for its size");
    }
    free(exact);
}

static size_t insert(uint8_t *bytes, size_t length, size_t at, const void *text, size_t size)
{
    if (length + size > LARGEST_INPUT)
        size = LARGEST_INPUT - length;
    memmove(bytes + at + size, bytes + at, length - at);
    memcpy(bytes + at, text, size);
    return length + size;
}

static size_t delete(uint8_t *bytes, size_t length, size_t at, size_t size)
{
    size = size < length - at ? size : length - at;
    memmove(bytes + at, bytes + at + size, length - at - size);
    return length - size;
}

static size_t splice(uint8_t *bytes, size_t length, size_t at)
{
    const Input *other = &files[below(file_count)];
    size_t from = below(other->length + 1), size = below(300);
    size = size < other->length - from ? size : other->length - from;
    return insert(bytes, length, at, other->bytes + from, size);
}

static size_t repeat(uint8_t *bytes, size_t length, size_t at)
{
    Piece piece = PIECES[below(PIECE_COUNT)], second = PIECES[below(PIECE_COUNT)];
    for (size_t times = 1 + below(below(8) ? 40 : LARGEST_INPUT); times && length < LARGEST_INPUT; times--) {
        length = insert(bytes, length, at, piece.text, piece.length);
        if (times & 1 && length < LARGEST_INPUT)
            length = insert(bytes, length, at, second.text, second.length);
        if (length - at > 4096 && !below(2)) /* near the end, where moving the rest costs nothing */
            at = length;
    }
    return length;
}

static size_t edit(uint8_t *bytes, size_t length)
{
    size_t at = below(length + 1);
    Piece piece = PIECES[below(PIECE_COUNT)];
    switch (below(9)) {
    case 0:
    case 1:
    case 2:
        return insert(bytes, length, at, piece.text, piece.length);
    case 3:
        return delete(bytes, length, at, 1 + below(4));
    case 4:
        return delete(bytes, length, at, below(200));
    case 5:
        if (at < length)
            bytes[at] = below(2) ? (uint8_t)draw() : (uint8_t)(bytes[at] ^ 1u << below(8));
        return length;
    case 6:
        return splice(bytes, length, at);
    case 7:
        return delete(bytes, length, at, length);
    default:
        return below(12) ? length : repeat(bytes, length, at);
    }
}

/* An input depends on the seed and its number alone. */
static void try_number(uint64_t seed, uint64_t number)
{
    static uint8_t bytes[LARGEST_INPUT];
    drawn_state = seed * 0xD1342543DE82EF95u + number;
    current_number = number;
    size_t length = 0;
    if (file_count && below(30)) {
        const Input *file = &files[below(file_count)];
        size_t from = below(3) ? 0 : below(file->length + 1);
        length = file->length - from < LARGEST_INPUT ? file->length - from : LARGEST_INPUT;
        memcpy(bytes, file->bytes + from, length);
    }
    for (size_t edits = below(MOST_EDITS); edits; edits--)
        length = edit(bytes, length);
    try_exactly(bytes, length);
}

static Input read_whole_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    Input input = {malloc(LARGEST_INPUT), 0};
    input.length = fread(input.bytes, 1, LARGEST_INPUT, file);
    fclose(file);
    return input;
}

int main(int count, char **arguments)
{
    program = arguments[0];
    start();
    __sanitizer_set_death_callback(keep_failed);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    if (count == 3 && !strcmp(arguments[1], "--only")) {
        Input input = read_whole_file(arguments[2]);
        try_exactly(input.bytes, input.length);
        return 0;
    }
    if (count < 4) {
        fprintf(stderr, "%s SECONDS SEED FILE...\n", program);
        return 2;
    }
    for (int i = 3; i < count && file_count < MOST_FILES; i++)
        files[file_count++] = read_whole_file(arguments[i]);
    for (size_t i = 0; i < file_count; i++) {
        current_number = 0;
        try_exactly(files[i].bytes, files[i].length);
    }
    time_t end = time(NULL) + atoi(arguments[1]);
    uint64_t seed = strtoull(arguments[2], NULL, 10), number = 0;
    while (time(NULL) < end)
        for (int some = 0; some < 20; some++)
            try_number(seed, ++number);
    printf("%llu inputs\n", (unsigned long long)(number + file_count));
    return 0;
}

#endif
