/*
 * Records what a process does to one SQLite database, in the order in which it really happened, so that a test
 * can rebuild what a disk may hold after a power cut. Preloaded (LD_PRELOAD) by record.ts; Linux, 64 bit, test only.
 *
 * Recorded are writes, truncates, flushes, creations, links and unlinks of <database>, <database>-wal,
 * <database>-journal and <database>-backup with the temporary file it is linked from, flushes of their folder (with
 * whether the main thread made them), and marks: whatever is written to <database>.marks. The -shm file is left out:
 * it is shared memory that recovery rebuilds and that no power cut preserves.
 *
 * Order. Each recorded call runs together with the append of its record under one mutex shared by all recorded
 * processes, so the log's order is the real order, across processes and threads. A flush takes the mutex twice,
 * before and after the real call and not during it: only what was logged before its begin is covered by its end.
 *
 * Identity. A file is its device and inode, looked up with fstat at every call. A table of descriptors would lie:
 * libuv closes them by raw system calls, and a descriptor can be duplicated. So a write to a WAL that was unlinked
 * is a write to the old file, not to the new one of the same name.
 *
 * Death. The mutex is robust. A process killed while it holds it has either done nothing yet (`busy` is 0, go on)
 * or done a call whose record is missing; then `cut` ends the log, since nothing after it could be trusted.
 *
 * Environment (HOLDFAST_SHIM_…): DATABASE absolute path without symlinks; LOG and STATE files shared by all
 * processes (without them only the injections work); SKIP_FLUSH=1 does not call the real flush; FLUSH_DELAY_MS;
 * FAIL_FDATASYNC_AFTER=n and FAIL_FSYNC_AFTER=n let n flushes of recorded files by that call succeed, then fail
 * with EIO, FAIL_TIMES times (default: for ever); KILL_AFTER=n sends SIGKILL to itself in place of call n + 1.
 *
 * Lost writes. With FAIL_TIMES a failure is what Linux (since 4.13) makes of a write that the disk refused: every
 * descriptor of the file that was open then is told once, by its next flush; one that is opened later is told nothing,
 * and flushes succeed over the hole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* recording.ts reads these numbers and the header below. */
enum { CREATE = 1, OPEN, WRITE, TRUNCATE, FLUSH_BEGIN, FLUSH_END, FLUSH_FAIL, UNLINK, MARK, UNSUPPORTED, LINK };

struct header {
  uint32_t kind, pid, file, length; /* length of the payload that follows */
  uint64_t position;                /* offset of a write, size of a truncate, number of a flush */
};

enum { FOLDER = 0, MARKS = UINT32_MAX, FILES_MAX = 4096, VECTORS_MAX = 1024 };

struct tracked {
  uint64_t device, inode;
  uint32_t file, unlinked, lost; /* lost: how many writes were, as far as descriptors are told */
};

struct state {
  uint32_t ready, busy, cut; /* record.ts reads busy and cut */
  uint32_t files_count, files_next;
  uint64_t flushes_next;
  struct tracked files[FILES_MAX];
  pthread_mutex_t mutex;
};

static struct state *state;
static int log_descriptor = -1;
static char database[4096];
static size_t database_length;
static struct stat folder;
static long skip_flush, flush_delay_ms, kill_after, calls;
static long fail_after[2], fail_times;
static atomic_long flushes[2], failures;
enum { DESCRIPTORS_MAX = 65536 };
static uint32_t told[DESCRIPTORS_MAX]; /* how many lost writes of its file each descriptor knows of */

static void die(const char *why) {
  char line[256];
  int length = snprintf(line, sizeof line, "power-loss shim: %s (errno %d)\n", why, errno);
  syscall(SYS_write, 2, line, length);
  abort();
}

static long number(const char *name, long fallback) {
  const char *text = getenv(name);
  return text && *text ? atol(text) : fallback;
}

static void initialise(struct state *fresh) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&fresh->mutex, &attributes);
  fresh->files_next = FOLDER + 1;
  fresh->ready = 1;
}

static struct state *share(const char *path) {
  int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 || flock(descriptor, LOCK_EX)) die("cannot open the state file");
  if (syscall(SYS_ftruncate, descriptor, sizeof(struct state))) die("cannot size the state file");
  struct state *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (shared == MAP_FAILED) die("cannot map the state file");
  if (!shared->ready) initialise(shared);
  flock(descriptor, LOCK_UN); /* close would not release it: the mapping keeps the open file alive */
  close(descriptor);
  return shared;
}

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("HOLDFAST_SHIM_DATABASE");
  const char *log_path = getenv("HOLDFAST_SHIM_LOG");
  const char *state_path = getenv("HOLDFAST_SHIM_STATE");
  if (!path) return;
  database_length = strlen(path);
  if (path[0] != '/' || database_length + 16 > sizeof database) die("the database path must be absolute and short");
  memcpy(database, path, database_length + 1);
  char parent[sizeof database];
  memcpy(parent, path, database_length + 1);
  *strrchr(parent, '/') = 0;
  if (stat(*parent ? parent : "/", &folder)) die("the database's folder does not exist");
  skip_flush = number("HOLDFAST_SHIM_SKIP_FLUSH", 0);
  flush_delay_ms = number("HOLDFAST_SHIM_FLUSH_DELAY_MS", 0);
  fail_after[0] = number("HOLDFAST_SHIM_FAIL_FSYNC_AFTER", -1);
  fail_after[1] = number("HOLDFAST_SHIM_FAIL_FDATASYNC_AFTER", -1);
  fail_times = number("HOLDFAST_SHIM_FAIL_TIMES", -1);
  kill_after = number("HOLDFAST_SHIM_KILL_AFTER", -1);
  if (log_path && state_path) {
    int descriptor = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor < 0) die("cannot open the log");
    /* A high number, out of the way of programs that reuse the lowest free one. */
    log_descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 200);
    if (log_descriptor < 0) die("cannot move the log's descriptor");
    close(descriptor);
    state = share(state_path);
  } else {
    struct state *own = calloc(1, sizeof *own);
    if (!own) die("out of memory");
    initialise(own);
    state = own;
  }
}

static void lock(void) {
  int result = pthread_mutex_lock(&state->mutex);
  if (result == EOWNERDEAD) {
    if (state->busy) state->cut = 1;
    state->busy = 0;
    result = pthread_mutex_consistent(&state->mutex);
  }
  if (result) die("cannot take the order lock");
}

static void unlock(void) { pthread_mutex_unlock(&state->mutex); }

/* Called with the lock held, right before a real call that will be recorded. */
static void begin_call(void) {
  if (kill_after >= 0 && calls++ >= kill_after) {
    /* Nobody is inside a recorded call now and busy is 0, so the log stays exact. */
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  state->busy = 1;
}

static void end_call(void) {
  state->busy = 0;
  unlock();
}

static void append_vectors(uint32_t kind, uint32_t file, uint64_t position, const struct iovec *vectors, int count,
                           size_t length) {
  if (log_descriptor < 0 || state->cut) return;
  if (length > UINT32_MAX || count > VECTORS_MAX) die("a write is too large to record");
  struct header header = {kind, (uint32_t)getpid(), file, (uint32_t)length, position};
  struct iovec parts[VECTORS_MAX + 1];
  int used = 0;
  size_t left = length;
  parts[used++] = (struct iovec){&header, sizeof header};
  for (int i = 0; i < count && left > 0; i++) {
    size_t take = vectors[i].iov_len < left ? vectors[i].iov_len : left;
    parts[used++] = (struct iovec){vectors[i].iov_base, take};
    left -= take;
  }
  if (syscall(SYS_writev, log_descriptor, parts, used) != (ssize_t)(sizeof header + length)) die("cannot append to the log");
}

static void append(uint32_t kind, uint32_t file, uint64_t position, const char *text) {
  struct iovec vector = {(void *)text, text ? strlen(text) : 0};
  append_vectors(kind, file, position, &vector, 1, vector.iov_len);
}

/*
 * "" for the database itself, "-wal", "-journal", "-backup", ".marks", or NULL for a path that is not ours. The random
 * end of a backup's temporary name is left out; its journal and its lock are not ours.
 */
static const char *suffix_of(const char *path) {
  static const char *const suffixes[] = {"", "-wal", "-journal", ".marks", "-backup"};
  static const char temporary[] = "-backup.tmp-";
  if (!state || !path || strncmp(path, database, database_length)) return NULL;
  const char *suffix = path + database_length;
  for (int i = 0; i < 5; i++)
    if (!strcmp(suffix, suffixes[i])) return suffixes[i];
  size_t length = sizeof temporary - 1;
  if (strncmp(suffix, temporary, length) || strspn(suffix + length, "0123456789abcdef") != 16 || suffix[length + 16])
    return NULL;
  return "-backup.tmp";
}

/* With the lock held. An unlinked file keeps its entry while it has no name; its inode may later be given to another. */
static struct tracked *find(const struct stat *status) {
  for (uint32_t i = 0; i < state->files_count; i++) {
    struct tracked *entry = &state->files[i];
    if (entry->device == status->st_dev && entry->inode == status->st_ino)
      return entry->unlinked && status->st_nlink > 0 ? NULL : entry;
  }
  return NULL;
}

static void track(const struct stat *status, const char *suffix, int created) {
  struct tracked *entry = NULL;
  for (uint32_t i = 0; i < state->files_count && !entry; i++)
    if (state->files[i].device == status->st_dev && state->files[i].inode == status->st_ino) entry = &state->files[i];
  if (!entry) {
    if (state->files_count == FILES_MAX) die("too many files: raise FILES_MAX");
    entry = &state->files[state->files_count++];
  }
  int marks = !strcmp(suffix, ".marks");
  *entry = (struct tracked){status->st_dev, status->st_ino, marks ? MARKS : state->files_next++, 0, 0};
  if (!marks) append(created ? CREATE : OPEN, entry->file, 0, suffix);
}

static int recorded_open(int base, const char *path, int flags, mode_t mode) {
  const char *suffix = suffix_of(path);
  if (!suffix) return syscall(SYS_openat, base, path, flags, mode);
  lock();
  begin_call();
  int created = 0, descriptor = -1;
  /* First without O_CREAT, to learn whether this call creates the file. */
  if (!(flags & O_CREAT) || !(flags & O_EXCL)) descriptor = syscall(SYS_openat, base, path, flags & ~O_CREAT, mode);
  if (descriptor < 0 && (flags & O_CREAT) && ((flags & O_EXCL) || errno == ENOENT)) {
    descriptor = syscall(SYS_openat, base, path, flags, mode);
    created = descriptor >= 0;
  }
  int error = errno;
  struct stat status;
  if (descriptor >= 0 && !fstat(descriptor, &status) && S_ISREG(status.st_mode)) {
    struct tracked *entry = created ? NULL : find(&status);
    if (!entry) track(&status, suffix, created);
    else if (entry->file != MARKS && (flags & O_TRUNC)) append(TRUNCATE, entry->file, 0, NULL);
    if (flags & O_DSYNC) append(UNSUPPORTED, 0, 0, "open with O_DSYNC or O_SYNC");
    if (descriptor >= DESCRIPTORS_MAX) die("too many descriptors: raise DESCRIPTORS_MAX");
    told[descriptor] = entry ? entry->lost : 0;
  }
  end_call();
  errno = error;
  return descriptor;
}

/* The offset -1 means the descriptor's own position. */
static ssize_t raw_write(int descriptor, const struct iovec *vectors, int count, off_t offset) {
  if (offset >= 0 && count == 1)
    return syscall(SYS_pwrite64, descriptor, vectors[0].iov_base, vectors[0].iov_len, offset);
  if (offset >= 0) return syscall(SYS_pwritev, descriptor, vectors, count, offset, 0);
  if (count == 1) return syscall(SYS_write, descriptor, vectors[0].iov_base, vectors[0].iov_len);
  return syscall(SYS_writev, descriptor, vectors, count);
}

static ssize_t recorded_write(int descriptor, const struct iovec *vectors, int count, off_t offset) {
  struct stat status;
  if (!state || fstat(descriptor, &status) || !S_ISREG(status.st_mode))
    return raw_write(descriptor, vectors, count, offset);
  lock();
  struct tracked *entry = find(&status);
  if (!entry) {
    unlock();
    return raw_write(descriptor, vectors, count, offset);
  }
  begin_call();
  off_t position = offset;
  if (fcntl(descriptor, F_GETFL) & O_APPEND) {
    /* Linux appends even with pwrite. The size is read again: it may have grown before the lock was ours. */
    fstat(descriptor, &status);
    position = status.st_size;
  } else if (offset < 0) {
    position = syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
  }
  ssize_t written = raw_write(descriptor, vectors, count, offset);
  int error = errno;
  if (written > 0 || (written == 0 && entry->file == MARKS))
    append_vectors(entry->file == MARKS ? MARK : WRITE, entry->file == MARKS ? 0 : entry->file, position, vectors,
                   count, written);
  end_call();
  errno = error;
  return written;
}

static int recorded_truncate(int descriptor, off_t size) {
  struct stat status;
  if (!state || fstat(descriptor, &status)) return syscall(SYS_ftruncate, descriptor, size);
  lock();
  struct tracked *entry = find(&status);
  if (!entry || entry->file == MARKS) {
    unlock();
    return syscall(SYS_ftruncate, descriptor, size);
  }
  begin_call();
  int result = syscall(SYS_ftruncate, descriptor, size), error = errno;
  if (!result) append(TRUNCATE, entry->file, size, NULL);
  end_call();
  errno = error;
  return result;
}

static int should_fail(int data_only) {
  if (fail_after[data_only] < 0 || atomic_fetch_add(&flushes[data_only], 1) < fail_after[data_only]) return 0;
  return fail_times < 0 || atomic_fetch_add(&failures, 1) < fail_times;
}

static int recorded_flush(int descriptor, int data_only) {
  long call = data_only ? SYS_fdatasync : SYS_fsync;
  struct stat status;
  if (!state || fstat(descriptor, &status)) return syscall(call, descriptor);
  lock();
  int is_folder = status.st_dev == folder.st_dev && status.st_ino == folder.st_ino;
  struct tracked *entry = is_folder ? NULL : find(&status);
  if (!is_folder && (!entry || entry->file == MARKS)) {
    unlock();
    return syscall(call, descriptor);
  }
  begin_call();
  uint32_t file = is_folder ? FOLDER : entry->file;
  uint64_t flush = state->flushes_next++;
  append(FLUSH_BEGIN, file, flush, syscall(SYS_gettid) == getpid() ? "main" : NULL);
  end_call();

  if (flush_delay_ms > 0) {
    struct timespec delay = {flush_delay_ms / 1000, flush_delay_ms % 1000 * 1000000};
    while (nanosleep(&delay, &delay) && errno == EINTR) continue;
  }
  int result = 0, error = 0;
  int fails = !is_folder && should_fail(data_only);
  if (!fails && !skip_flush) {
    result = syscall(call, descriptor);
    error = errno;
  }

  lock();
  state->busy = 1;
  if (!is_folder && fail_times >= 0) {
    entry->lost += fails;
    fails = told[descriptor] < entry->lost;
    told[descriptor] = entry->lost;
  }
  if (fails) {
    result = -1;
    error = EIO;
  }
  append(result ? FLUSH_FAIL : FLUSH_END, file, flush, NULL);
  end_call();
  errno = error;
  return result;
}

static int recorded_unlink(int base, const char *path, int flags) {
  const char *suffix = suffix_of(path);
  if (!suffix) return syscall(SYS_unlinkat, base, path, flags);
  lock();
  struct stat status;
  struct tracked *entry = stat(path, &status) ? NULL : find(&status);
  begin_call();
  int result = syscall(SYS_unlinkat, base, path, flags), error = errno;
  if (!result && entry) {
    entry->unlinked = status.st_nlink <= 1;
    if (entry->file != MARKS) append(UNLINK, entry->file, 0, suffix);
  }
  end_call();
  errno = error;
  return result;
}

static int recorded_link(const char *from, const char *to) {
  const char *suffix = suffix_of(to);
  if (!suffix) return syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  lock();
  begin_call();
  int result = syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0), error = errno;
  struct stat status;
  struct tracked *entry = result || stat(to, &status) ? NULL : find(&status);
  if (entry) append(LINK, entry->file, 0, suffix);
  else if (!result) append(UNSUPPORTED, 0, 0, "a link to a file that is not recorded");
  end_call();
  errno = error;
  return result;
}

/* A call whose effect this library does not model: the recording is refused when it is read. */
static void unsupported(const char *what) {
  int error = errno;
  lock();
  append(UNSUPPORTED, 0, 0, what);
  unlock();
  errno = error;
}

#define EXPORT __attribute__((visibility("default")))

static mode_t mode_of(int flags, va_list arguments) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPENS(name)                                            \
  EXPORT int name(const char *path, int flags, ...) {          \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    mode_t mode = mode_of(flags, arguments);                   \
    va_end(arguments);                                         \
    return recorded_open(AT_FDCWD, path, flags, mode);         \
  }
#define OPENS_AT(name)                                         \
  EXPORT int name(int base, const char *path, int flags, ...) { \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    mode_t mode = mode_of(flags, arguments);                   \
    va_end(arguments);                                         \
    return recorded_open(base, path, flags, mode);             \
  }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

EXPORT ssize_t write(int descriptor, const void *bytes, size_t length) {
  struct iovec vector = {(void *)bytes, length};
  return recorded_write(descriptor, &vector, 1, -1);
}
EXPORT ssize_t writev(int descriptor, const struct iovec *vectors, int count) {
  return recorded_write(descriptor, vectors, count, -1);
}
static ssize_t write_at(int descriptor, const void *bytes, size_t length, off_t offset) {
  struct iovec vector = {(void *)bytes, length};
  if (offset < 0) return syscall(SYS_pwrite64, descriptor, bytes, length, offset); /* the kernel says EINVAL */
  return recorded_write(descriptor, &vector, 1, offset);
}
EXPORT ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return write_at(descriptor, bytes, length, offset);
}
EXPORT ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off_t offset) {
  return write_at(descriptor, bytes, length, offset);
}
static ssize_t write_vectors_at(int descriptor, const struct iovec *vectors, int count, off_t offset) {
  if (offset < 0) return syscall(SYS_pwritev, descriptor, vectors, count, offset, 0);
  return recorded_write(descriptor, vectors, count, offset);
}
EXPORT ssize_t pwritev(int descriptor, const struct iovec *vectors, int count, off_t offset) {
  return write_vectors_at(descriptor, vectors, count, offset);
}
EXPORT ssize_t pwritev64(int descriptor, const struct iovec *vectors, int count, off_t offset) {
  return write_vectors_at(descriptor, vectors, count, offset);
}

EXPORT int ftruncate(int descriptor, off_t size) { return recorded_truncate(descriptor, size); }
EXPORT int ftruncate64(int descriptor, off_t size) { return recorded_truncate(descriptor, size); }
EXPORT int fsync(int descriptor) { return recorded_flush(descriptor, 0); }
EXPORT int fdatasync(int descriptor) { return recorded_flush(descriptor, 1); }
EXPORT int unlink(const char *path) { return recorded_unlink(AT_FDCWD, path, 0); }
EXPORT int unlinkat(int base, const char *path, int flags) { return recorded_unlink(base, path, flags); }

EXPORT int link(const char *from, const char *to) { return recorded_link(from, to); }

EXPORT int rename(const char *from, const char *to) {
  int result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (!result && (suffix_of(from) || suffix_of(to))) unsupported("rename");
  return result;
}
EXPORT int truncate(const char *path, off_t size) {
  int result = syscall(SYS_truncate, path, size);
  if (!result && suffix_of(path)) unsupported("truncate by path");
  return result;
}
static void *map(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  struct stat status;
  if (state && descriptor >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED) && !fstat(descriptor, &status)) {
    lock();
    struct tracked *entry = find(&status);
    unlock();
    if (entry) unsupported("a writable shared mapping");
  }
  return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}
EXPORT void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  return map(address, length, protection, flags, descriptor, offset);
}
EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  return map(address, length, protection, flags, descriptor, offset);
}
