/* One pool of threads for the process. lg_run calls task(context, part) for every part below parts: the caller does
   parts 0, threads, 2 threads, ...; worker k, the same from k on, which are its share. One thread does all of a share.
   The caller does the shares that no worker has begun when it is done with its own, and so waits for none that sleeps.

   A worker without work spins for a moment, since phases follow each other within microseconds, and then sleeps. A
   second caller, and a task that calls lg_run itself, do all parts alone. A forked child starts workers of its own; where
   a handler of a signal forked in the middle of a call, what workers had begun is lost, and the child's call is ABANDONED.

   lg_call calls a function without Python's lock. While it runs, lg_look gives Python's handlers of signals their turn,
   and tells whether one of them raised an exception, with which the call shall end. */

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define MOST 255 /* workers */
#define SPIN 50000 /* ns that a thread waits before it sleeps */
#define ALONE 5000 /* the first of them without giving way to other threads */
#define ORDERED 0x101 /* NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED */
#define ABANDONED 2 /* as NOT_IN_C: NumPy does it anew */
#define LOOK 40000000 /* ns between two looks for signals */

#ifdef _WIN32
#include <windows.h>
#define LG_EXPORT __declspec(dllexport)
#define LG_THREAD DWORD WINAPI
typedef SRWLOCK lg_mutex;
typedef CONDITION_VARIABLE lg_condition;
static void lg_lock(lg_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static void lg_unlock(lg_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }
static void lg_sleep(lg_condition *condition, lg_mutex *mutex, int looks) {
    SleepConditionVariableSRW(condition, mutex, looks ? LOOK / 1000000 : INFINITE, 0);
}
static void lg_wake(lg_condition *condition) { WakeAllConditionVariable(condition); }
static void lg_give_way(void) { SwitchToThread(); }

static int64_t lg_clock(void) {
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&frequency);
    return (int64_t)((double)ticks.QuadPart * 1e9 / (double)frequency.QuadPart);
}
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#define LG_EXPORT __attribute__((visibility("default")))
#define LG_THREAD void *
typedef pthread_mutex_t lg_mutex;
typedef pthread_cond_t lg_condition;
static void lg_lock(lg_mutex *mutex) { pthread_mutex_lock(mutex); }
static void lg_unlock(lg_mutex *mutex) { pthread_mutex_unlock(mutex); }
static void lg_sleep(lg_condition *condition, lg_mutex *mutex, int looks) {
    if (!looks) {
        pthread_cond_wait(condition, mutex);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(condition, mutex, &until);
}
static void lg_wake(lg_condition *condition) { pthread_cond_broadcast(condition); }
static void lg_give_way(void) { sched_yield(); }

static int64_t lg_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}
#endif

static void lg_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* ---- Python ----------------------------------------------------------------------------------------------------- */

static struct {
    void *(*release)(void); /* PyEval_SaveThread */
    void (*acquire)(void *state); /* PyEval_RestoreThread */
    int (*signals)(void); /* PyErr_CheckSignals */
    void *(*item)(void *list, intptr_t place); /* PyList_GetItem */
} python;

static _Thread_local void *state; /* of a thread of Python's, while lg_call runs in it */
static _Thread_local int64_t due; /* when it looks again */

LG_EXPORT void lg_python(void *(*release)(void), void (*acquire)(void *state), int (*signals)(void),
                         void *(*item)(void *list, intptr_t place)) {
    python.release = release;
    python.acquire = acquire;
    python.signals = signals;
    python.item = item;
}

/* Where the elements of NumPy's arrays lie, those of a list from `first` on, into a table; `none` is passed over. The
   number of the first array whose elements do not lie in order, or `count`. `data`, `flags`: where in an array object
   its address and its flags are. */
LG_EXPORT int lg_point(void *list, void **table, int first, int count, void *none, int data, int flags) {
    for (int k = first; k < count; k++) {
        char *array = python.item(list, k);
        if (array == none) continue;
        if ((*(int *)(array + flags) & ORDERED) != ORDERED) return k;
        table[k] = *(void **)(array + data);
    }
    return count;
}

static void lg_leave_python(void) {
    state = python.release();
    due = lg_clock() + LOOK;
}

static void lg_enter_python(void) {
    python.acquire(state);
    state = NULL;
}

LG_EXPORT int lg_call(int (*function)(void *context), void *context) {
    lg_leave_python();
    int code = function(context);
    lg_enter_python();
    return code;
}

static int none, *stopping = &none; /* why the task of the pool shall end, if not 0 */

/* -1 when a handler raised an exception; in workers, why they shall stop */
LG_EXPORT int lg_look(void) {
    if (!state) return __atomic_load_n(stopping, __ATOMIC_RELAXED);
    if (lg_clock() < due) return 0;
    lg_enter_python();
    int raised = python.signals();
    lg_leave_python();
    return raised;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* A number that one thread raises and another waits for; of a worker, how often it was called, and the last call that
   somebody took */
typedef struct {
    _Alignas(128) atomic_uint value;
    atomic_uint taken;
    atomic_int sleeping;
    lg_mutex mutex;
    lg_condition condition;
} lg_gate;

static void lg_gate_init(lg_gate *gate) {
    memset(gate, 0, sizeof *gate);
#ifdef _WIN32
    InitializeSRWLock(&gate->mutex);
    InitializeConditionVariable(&gate->condition);
#else
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->condition, NULL);
#endif
}

static unsigned lg_open(lg_gate *gate) {
    unsigned value = atomic_fetch_add(&gate->value, 1) + 1;
    if (atomic_load(&gate->sleeping)) {
        lg_lock(&gate->mutex);
        lg_wake(&gate->condition);
        lg_unlock(&gate->mutex);
    }
    return value;
}

/* Until the value is not the one seen, or for a while; for one that looks for signals, until then: the value */
static unsigned lg_wait(lg_gate *gate, unsigned seen, int looks) {
    unsigned now;
    for (int k = 0; k < 64; k++) { /* a microsecond or a few, without looking at the clock */
        if ((now = atomic_load_explicit(&gate->value, memory_order_acquire)) != seen) return now;
        lg_pause();
    }
    int64_t start = lg_clock(), passed;
    while ((passed = lg_clock() - start) < SPIN) {
        if ((now = atomic_load_explicit(&gate->value, memory_order_acquire)) != seen) return now;
        if (passed < ALONE) {
            lg_pause();
        } else {
            lg_give_way();
        }
    }
    lg_lock(&gate->mutex);
    atomic_store(&gate->sleeping, 1); /* before the value is read: whoever raises it reads this afterwards */
    if (atomic_load(&gate->value) == seen) lg_sleep(&gate->condition, &gate->mutex, looks);
    now = atomic_load(&gate->value);
    atomic_store(&gate->sleeping, 0);
    lg_unlock(&gate->mutex);
    return now;
}

static struct {
    atomic_flag busy;
    int ready, workers;
    void (*task)(void *context, int part);
    void *context;
    int parts, threads;
    atomic_int working;
    lg_gate done, gates[MOST];
} pool = {.busy = ATOMIC_FLAG_INIT};

static _Thread_local int calling; /* whether this thread is the one that the pool works for */
static int forks; /* how many there were between the first process and this one */

static void lg_do_parts(int first) {
    for (int part = first; part < pool.parts; part += pool.threads) pool.task(pool.context, part);
}

/* Take the share of this call of a worker: 1 for whoever comes first */
static int lg_take(lg_gate *gate, unsigned call) {
    unsigned before = call - 1;
    return atomic_compare_exchange_strong(&gate->taken, &before, call);
}

static LG_THREAD lg_worker(void *argument) {
    int number = (int)(intptr_t)argument;
    lg_gate *gate = &pool.gates[number - 1];
    unsigned seen = 0, now;
    for (;;) {
        while ((now = lg_wait(gate, seen, 0)) == seen) {}
        seen = now;
        if (!lg_take(gate, now)) continue;
        lg_do_parts(number);
        if (atomic_fetch_sub(&pool.working, 1) == 1) lg_open(&pool.done);
    }
    return 0;
}

#ifdef _WIN32
static int lg_start(int number) {
    HANDLE thread = CreateThread(NULL, 0, lg_worker, (void *)(intptr_t)number, 0, NULL);
    return thread != NULL && CloseHandle(thread);
}
#else
static void lg_forget(void) { /* in a forked child: there are no workers, and nobody is busy */
    if (!calling) atomic_flag_clear(&pool.busy);
    pool.ready = pool.workers = 0;
    forks++;
}

/* As the library is loaded: a fork may come while the first call of all, with the lock of Python given up, is here */
__attribute__((constructor)) static void lg_watch_forks(void) { pthread_atfork(NULL, NULL, lg_forget); }

static int lg_start(int number) { /* signals are for the threads that were there before */
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, lg_worker, (void *)(intptr_t)number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed && !pthread_detach(thread);
}
#endif

/* As many workers as asked for, or as the system grants */
static int lg_grow(int workers) {
    if (!pool.ready) {
        lg_gate_init(&pool.done);
        pool.ready = 1;
    }
    if (workers > MOST) workers = MOST;
    while (pool.workers < workers) {
        lg_gate_init(&pool.gates[pool.workers]);
        if (!lg_start(pool.workers + 1)) break;
        pool.workers++;
    }
    return workers < pool.workers ? workers : pool.workers;
}

/* The number of shares. A look for signals while it waits that says to stop is left in `stopped`. */
LG_EXPORT int lg_run(void (*task)(void *context, int part), void *context, int parts, int threads, int *stopped) {
    if (threads > parts) threads = parts;
    if (threads < 2 || atomic_flag_test_and_set(&pool.busy)) {
        for (int part = 0; part < parts; part++) task(context, part);
        return 1;
    }
    int before = forks;
    calling = 1;
    threads = 1 + lg_grow(threads - 1);
    pool.task = task;
    pool.context = context;
    pool.parts = parts;
    pool.threads = threads;
    stopping = stopped;
    atomic_store(&pool.working, threads - 1);
    unsigned seen = atomic_load(&pool.done.value), calls[MOST];
    for (int k = 1; k < threads; k++) calls[k - 1] = lg_open(&pool.gates[k - 1]);
    lg_do_parts(0);
    for (int k = 1; k < threads; k++)
        if (lg_take(&pool.gates[k - 1], calls[k - 1])) {
            lg_do_parts(k);
            atomic_fetch_sub(&pool.working, 1);
        }
    while (atomic_load(&pool.working)) {
        if (forks != before) {
            *stopped = ABANDONED;
            break;
        }
        seen = lg_wait(&pool.done, seen, state != NULL);
        int raised = lg_look();
        if (raised) __atomic_store_n(stopped, raised, __ATOMIC_RELAXED);
    }
    stopping = &none;
    calling = 0;
    atomic_flag_clear(&pool.busy);
    return threads;
}
