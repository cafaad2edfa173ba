/* What threads.h declares. Helpers sleep between calls. They run nothing of Python's, and one call at a time has them: other
   calls, and a call that finds the machine busy, compute all parts on their own thread. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { HELPERS = 255 };
#ifndef WORTH
#define WORTH 100000 /* nanoseconds of work from which helpers gain more than they cost */
#define LEAST 20000  /* the same if they are awake */
#define GAIN 0.85    /* of the time alone: work that takes longer with helpers does without them for a while */
#endif
#define LONG 1000000 /* the same, however long it takes to wake them */
#define FAILURES 10  /* after so many, 2047 works do without helpers; after the first one, one */
#ifndef ROW
#define ROW 20       /* short works that follow each other, from which on helpers stay awake for them */
#endif
#ifndef AWAKE
#define AWAKE 50000  /* nanoseconds that helpers wait for the next work before they sleep */
#endif

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  Part part; const void *given; int64_t n, threads; /* the work */
  int in_turn;                                       /* whether parts wait for those before them */
  int64_t next;                                      /* ... and the first of them that nobody has claimed */
  uint64_t claimed;                                  /* else a bit for each part, of at most 64 */
  int beyond, open, taken, rest, failures, called;
  int64_t ended, row, until;                         /* when the last work ended, how many came at once, until when helpers wait */
  unsigned turn;
  int64_t helpers, asleep, inside;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
static void wait_a_bit(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Parts that nobody has claimed: in turn, so that the first that is not done waits for none; else from one's own share on. */
static int claimed_parts(int64_t helper) {
  const int64_t n = pool.n, start = n * helper / pool.threads;
  int beyond = 0;
  if (pool.in_turn) {
    for (int64_t k; (k = __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED)) < n;) beyond |= pool.part(pool.given, k);
    return beyond;
  }
  for (int64_t k = 0; k < n; k++) {
    const int64_t own = (start + k) % n;
    const uint64_t bit = UINT64_C(1) << own;
    if (__atomic_load_n(&pool.claimed, __ATOMIC_RELAXED) & bit) continue;
    if (!(__atomic_fetch_or(&pool.claimed, bit, __ATOMIC_ACQ_REL) & bit)) beyond |= pool.part(pool.given, own);
  }
  return beyond;
}

static void *helper(void *number) {
  const int64_t own = (int64_t)(intptr_t)number;
  unsigned seen = 0, now;
  for (;;) {
    const int64_t since = nanoseconds(), until = __atomic_load_n(&pool.until, __ATOMIC_RELAXED);
    const int64_t end = until > since ? until : since + AWAKE;
    while ((now = __atomic_load_n(&pool.turn, __ATOMIC_SEQ_CST)) == seen && nanoseconds() < end) wait_a_bit();
    if (now == seen) {
      pthread_mutex_lock(&pool.lock);
      __atomic_fetch_add(&pool.asleep, 1, __ATOMIC_SEQ_CST);
      while ((now = __atomic_load_n(&pool.turn, __ATOMIC_SEQ_CST)) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
      __atomic_fetch_sub(&pool.asleep, 1, __ATOMIC_SEQ_CST);
      pthread_mutex_unlock(&pool.lock);
    }
    seen = now;
    __atomic_fetch_add(&pool.inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool.open, __ATOMIC_SEQ_CST) && own < pool.threads && claimed_parts(own))
      __atomic_store_n(&pool.beyond, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&pool.inside, 1, __ATOMIC_SEQ_CST);
  }
  return 0;
}

/* A forked process has no helpers. */
static void forked(void) {
  memset(&pool, 0, sizeof(pool));
  pthread_mutex_init(&pool.lock, 0);
  pthread_cond_init(&pool.wake, 0);
}

/* Start helpers, which take no signals; as many as there can be. */
static void start_helpers(int64_t wanted) {
  static int watched;
  pthread_attr_t attributes;
  sigset_t all, before;
  if (!watched) { pthread_atfork(0, 0, forked); watched = 1; }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 1 << 21);
  for (pthread_t made; pool.helpers < wanted && pool.helpers < HELPERS; pool.helpers++)
    if (pthread_create(&made, &attributes, helper, (void *)(intptr_t)(pool.helpers + 1))) break;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

static void do_without(void) {
  pool.rest = (2 << pool.failures) - 1;
  pool.failures = pool.failures + 2 < FAILURES ? pool.failures + 2 : FAILURES; /* a failure costs twice what a success gains */
  pool.called = 0;
}

static void call_helpers(int64_t until) {
  __atomic_store_n(&pool.until, nanoseconds() + until, __ATOMIC_RELAXED);
  __atomic_fetch_add(&pool.turn, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool.asleep, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
  }
}

/* Whether helpers gain for work that takes so long alone. To wake them takes as long as short work: if works follow each
   other, sleeping helpers are woken for the next one, and the machine is busy if that finds them asleep. */
static int gain(int64_t alone, int64_t start, int64_t threads) {
  pool.row = start - __atomic_load_n(&pool.ended, __ATOMIC_RELAXED) < AWAKE ? pool.row + 1 : 0;
  if (!pool.row) pool.called = 0;
  if (pool.rest) { pool.rest--; return 0; }
  const int awake = pool.helpers >= threads - 1 && !__atomic_load_n(&pool.asleep, __ATOMIC_SEQ_CST);
  if (awake || alone > LONG || (alone > WORTH && !pool.row)) { pool.called = 0; return 1; }
  if (alone <= WORTH && pool.row < ROW) return 0;
  if (pool.called) { do_without(); return 0; }
  if (pool.helpers < threads - 1) start_helpers(threads - 1);
  pool.called = 1;
  call_helpers(2 * alone);
  return 0;
}

/* All parts but the first, with helpers; ``alone`` is the time that they would take without. */
static int with_helpers(Part part, const void *given, int64_t n, int64_t threads, int in_turn, int64_t alone) {
  const int64_t start = nanoseconds();
  if (pool.helpers < threads - 1) start_helpers(threads - 1);
  pool.part = part; pool.given = given; pool.n = n; pool.threads = threads;
  pool.in_turn = in_turn; pool.next = 1; pool.claimed = 1; pool.beyond = 0;
  __atomic_store_n(&pool.open, 1, __ATOMIC_SEQ_CST);
  call_helpers(0);
  const int beyond = claimed_parts(0);
  __atomic_store_n(&pool.open, 0, __ATOMIC_SEQ_CST);
  for (int64_t k = 0; __atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST); k++) if (k < 2000) wait_a_bit(); else sched_yield();
  if (nanoseconds() - start > GAIN * alone) do_without(); else if (pool.failures) pool.failures--;
  return beyond | __atomic_load_n(&pool.beyond, __ATOMIC_RELAXED);
}

static int own_in_parts(Part part, const void *given, int64_t n, int64_t threads, int in_turn) {
  int beyond = 0;
  int64_t k = 0, alone = 0;
  if (threads > 1 && n > 2) {
    const int64_t start = nanoseconds();
    beyond = part(given, k++);
    alone = (nanoseconds() - start) * (n - 1);
    if (alone > LEAST && !__atomic_exchange_n(&pool.taken, 1, __ATOMIC_ACQUIRE)) {
      if (gain(alone, start, threads)) {
        beyond |= with_helpers(part, given, n, threads, in_turn, alone);
        k = n;
      }
      __atomic_store_n(&pool.taken, 0, __ATOMIC_RELEASE);
    }
  }
  for (; k < n; k++) beyond |= part(given, k);
  if (alone > LEAST) __atomic_store_n(&pool.ended, nanoseconds(), __ATOMIC_RELAXED);
  return beyond;
}

/* All modules of a process use the helpers of the first one. */
typedef int (*Parts)(Part, const void *, int64_t, int64_t, int);
static Parts chosen = own_in_parts;
RG_SHARED int in_parts(Part part, const void *given, int64_t n, int64_t threads, int in_turn) {
  return chosen(part, given, n, threads, in_turn);
}

RG_SHARED void await_turn(const int64_t *turn, int64_t part) {
  for (int64_t k = 0; __atomic_load_n(turn, __ATOMIC_ACQUIRE) != part; k++) if (k < 2000) wait_a_bit(); else sched_yield();
}
RG_SHARED void end_turn(int64_t *turn, int64_t part) { __atomic_store_n(turn, part + 1, __ATOMIC_RELEASE); }

static PyObject *ask;
RG_SHARED PyObject *share(PyObject *self, PyObject *const *a, int64_t n) {
  (void)self;
  if (n != 2) return 0;
  Py_IncRef(ask = a[0]);
  const long long first = PyLong_AsLongLong(a[1]);
  if (first) chosen = (Parts)(intptr_t)first;
  return PyLong_FromLongLong((intptr_t)chosen);
}

RG_SHARED int64_t allowed(void) {
  if (!ask) return 1;
  PyObject *told = PyObject_CallNoArgs(ask);
  if (!told) return -1;
  const int64_t n = PyLong_AsLongLong(told);
  Py_DecRef(told);
  return n;
}
