// What the libraries that are linked in take from a glibc newer than 2.28, written with what 2.28 has. Hidden, so that
// no other library of the process sees it. A function that is missing here is an error of the linker, with its name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// Of code that is not compiled for shared libraries (cmake/portable.cmake, transept_archive_for_libraries).
FILE* transept_stderr;
__attribute__((constructor(101))) static void set_stderr(void) { transept_stderr = stderr; }

// glibc 2.32. False is always right: libstdc++ then counts references with atomic instructions.
char __libc_single_threaded = 0;

// glibc 2.33; before, programs called these.
enum { kStatVersion = 1 };
extern int __xstat(int version, const char* path, struct stat* out) __attribute__((visibility("default")));
extern int __lxstat(int version, const char* path, struct stat* out) __attribute__((visibility("default")));
extern int __fxstat(int version, int fd, struct stat* out) __attribute__((visibility("default")));
extern int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags)
    __attribute__((visibility("default")));

int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
int fstat(int fd, struct stat* out) { return __fxstat(kStatVersion, fd, out); }
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, folder, path, out, flags);
}
// One structure on x86-64.
int stat64(const char* path, struct stat64* out) { return stat(path, (struct stat*)out); }
int lstat64(const char* path, struct stat64* out) { return lstat(path, (struct stat*)out); }
int fstat64(int fd, struct stat64* out) { return fstat(fd, (struct stat*)out); }

// glibc 2.32: what a signal is, in English; strsignal() translates it where the process has a locale, which ours has
// not.
const char* sigdescr_np(int signal) { return signal > 0 && signal < NSIG ? strsignal(signal) : NULL; }

// glibc 2.34; the kernel has it since 5.9, and says ENOSYS before.
int close_range(unsigned first, unsigned last, int flags) {
  enum { kCloseRange = 436 };
  return (int)syscall(kCloseRange, first, last, flags);
}

// glibc 2.36: random bits, and no way to fail.
uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
    if (errno != EINTR) abort();
  }
  return bits;
}

// glibc 2.30. Where there is none, the time that is left is waited for on the clock that there is. If that clock was
// set meanwhile, the wait may end early; those who wait look again, as they must.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  typedef int (*Function)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static Function found;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&found, (Function)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"), __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  const Function function = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (function != NULL) return function(condition, mutex, clock, until);
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);

  enum { kSecond = 1000000000 };
  struct timespec now, deadline;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &deadline) != 0) return EINVAL;
  deadline.tv_sec += until->tv_sec - now.tv_sec;
  deadline.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (deadline.tv_nsec < 0) {
    deadline.tv_nsec += kSecond;
    deadline.tv_sec -= 1;
  } else if (deadline.tv_nsec >= kSecond) {
    deadline.tv_nsec -= kSecond;
    deadline.tv_sec += 1;
  }
  const int result = pthread_cond_timedwait(condition, mutex, &deadline);
  if (result != ETIMEDOUT || clock_gettime(clock, &now) != 0) return result;
  const int is_over = now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
  return is_over ? ETIMEDOUT : 0;
}

// glibc 2.35: which library holds an address, and its table of frames: how GCC 12's unwinder finds its way when
// something is thrown. Before, it walked over the libraries, as this does.
struct Search {
  ElfW(Addr) address;
  struct dl_find_object* out;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct Search* search = data;
  ElfW(Addr) begin = UINTPTR_MAX, end = 0;
  void* frames = NULL;
  int holds = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const ElfW(Addr) start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = (void*)start;
    if (part->p_type != PT_LOAD) continue;
    if (start < begin) begin = start;
    if (start + part->p_memsz > end) end = start + part->p_memsz;
    holds |= search->address >= start && search->address < start + part->p_memsz;
  }
  if (!holds || frames == NULL) return 0;
  memset(search->out, 0, sizeof *search->out);
  search->out->dlfo_map_start = (void*)begin;
  search->out->dlfo_map_end = (void*)end;
  search->out->dlfo_eh_frame = frames;
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* out) {
  typedef int (*Function)(void*, struct dl_find_object*);
  static Function found;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&found, (Function)dlsym(RTLD_DEFAULT, "_dl_find_object"), __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  const Function function = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (function != NULL) return function(address, out);
  struct Search search = {(ElfW(Addr))address, out};
  return dl_iterate_phdr(look_into, &search) ? 0 : -1;
}

#pragma GCC visibility pop
