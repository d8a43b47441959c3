/* The wall clock of a process is off by the seconds in a file named as the process, in the folder STORM_CLOCKS names.
 * Loaded by LD_PRELOAD. Whoever writes the file sets the clock while the process runs; those that it forks share it.
 * Intervals are measured right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);
static volatile long *offset;

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    const char *folder = getenv("STORM_CLOCKS");
    real = dlsym(RTLD_NEXT, "clock_gettime");
    if (folder == NULL)
        return;
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *offset) != 0)
        abort();
    offset = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *found)
{
    if (real == NULL)
        begin();
    int failed = real(clock, found);
    if (!failed && offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        found->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *found, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found != NULL)
        *found = now.tv_sec;
    return now.tv_sec;
}
