/* What generated programs stand on: vector types, and what a call of a program is given. */

#ifndef LG_KERNELS_H
#define LG_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "philox.h"

#ifndef LG_VB
#error "LG_VB, the bytes of a vector, is given by the program"
#endif

typedef float lg_vf32 __attribute__((vector_size(LG_VB), may_alias));
typedef double lg_vf64 __attribute__((vector_size(LG_VB), may_alias));
typedef float lg_uf32 __attribute__((vector_size(LG_VB), aligned(4), may_alias));
typedef double lg_uf64 __attribute__((vector_size(LG_VB), aligned(8), may_alias));
#define LG_VL(type) ((long)(LG_VB / sizeof(type)))

/* a b + c with one rounding where there is an instruction for it, else with two. Sums of matrix products are made by it,
   as a BLAS makes them; elsewhere a product and a sum are two operations, as in NumPy: x x - y y is 0 where x is y. */
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
#if __has_builtin(__builtin_elementwise_fma)
#define LG_FUSED_F32(a, b, c) __builtin_elementwise_fma(a, b, c)
#define LG_FUSED_F64(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif LG_VB == 64 && defined(__AVX512F__) && __has_builtin(__builtin_ia32_vfmaddps512_mask)
#define LG_FUSED_F32(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define LG_FUSED_F64(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
#elif LG_VB == 32 && defined(__FMA__) && __has_builtin(__builtin_ia32_vfmaddps256)
#define LG_FUSED_F32(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define LG_FUSED_F64(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#elif LG_VB == 16 && defined(__FMA__) && __has_builtin(__builtin_ia32_vfmaddps)
#define LG_FUSED_F32(a, b, c) __builtin_ia32_vfmaddps(a, b, c)
#define LG_FUSED_F64(a, b, c) __builtin_ia32_vfmaddpd(a, b, c)
#elif LG_VB == 16 && defined(__aarch64__)
#include <arm_neon.h>
#define LG_FUSED_F32(a, b, c) vfmaq_f32(c, a, b)
#define LG_FUSED_F64(a, b, c) vfmaq_f64(c, a, b)
#else
#define LG_FUSED_F32(a, b, c) ((a) * (b) + (c))
#define LG_FUSED_F64(a, b, c) ((a) * (b) + (c))
#endif
typedef float lg_if32 __attribute__((vector_size(LG_VB))); /* as these take them */
typedef double lg_if64 __attribute__((vector_size(LG_VB)));
static inline lg_vf32 lg_fused_f32(lg_if32 a, lg_if32 b, lg_if32 c) { return LG_FUSED_F32(a, b, c); }
static inline lg_vf64 lg_fused_f64(lg_if64 a, lg_if64 b, lg_if64 c) { return LG_FUSED_F64(a, b, c); }

/* Functions that may be compiled apart from those that call them, in parts.py's parts. */
#ifdef LG_PARTS
#define LG_FUNCTION __attribute__((noinline, visibility("hidden")))
#else
#define LG_FUNCTION static __attribute__((noinline))
#define LG_PARTS -1
#endif

/* Blocks of a product: o, or what is `more` than is there, becomes a @ b. From row to row of o and a it is oi and ai
   elements, to the next of a row oj and ak; b has whole vectors side by side, bk apart, and those of column j at j * bj. */
#define LG_TILE(type) long rows, long columns, long depth, const type *restrict a, long ai, long ak, \
    const type *restrict b, long bk, long bj, type *restrict o, long oi, long oj, int more
typedef void lg_tile_f32(LG_TILE(float));
typedef void lg_tile_f64(LG_TILE(double));

/* Of a product of matrices: inner and outer length, strides, blocks of the right matrix in panels of `step` columns,
   which are so many vectors, and of the blocks of rows how many have `height` rows; the others have one less. */
typedef struct { long depth, columns, ai, ak, bk, bj, oi, oj, deep, wide, step, vectors, height, tall; } lg_sizes;

/* o = a @ b by blocks of rows, from `first` to `last` of them: see packed.py. */
typedef struct lg_call lg_call;
#define LG_PRODUCT(type) lg_call *call, const type *restrict a, const type *restrict b, type *restrict o, \
    const lg_sizes *z, long first, long last
typedef int lg_product_f32(LG_PRODUCT(float));
typedef int lg_product_f64(LG_PRODUCT(double));

/* The loop over lg_first to lg_end that follows is cut into stretches, with a look for signals before each. */
#define LG_STRETCHES(first, end, size)                                                          \
    for (long lg_first = (first), lg_end, lg_code; lg_first < (end); lg_first = lg_end)          \
        if (lg_end = lg_first + (size) < (end) ? lg_first + (size) : (end), (lg_code = call->look())) \
            return (int)lg_code;                                                                 \
        else

/* lg_pairG(a, b), where a and b hold groups of G elements: adds the halves of each group, and holds a's groups before
   b's. A tree of them makes the vector of the sums of as many vectors as one has elements. */
#define LG_PAIR(group, kind, lows, highs)                                        \
    static inline lg_v##kind lg_pair##group##_##kind(lg_v##kind a, lg_v##kind b) { \
        return __builtin_shufflevector(a, b, LG_LIST lows) + __builtin_shufflevector(a, b, LG_LIST highs); \
    }
#define LG_LIST(...) __VA_ARGS__

#if LG_VB == 64
LG_PAIR(16, f32, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
        (8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
LG_PAIR(8, f32, (0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
        (4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31))
LG_PAIR(4, f32, (0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29),
        (2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31))
LG_PAIR(2, f32, (0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))
LG_PAIR(8, f64, (0, 1, 2, 3, 8, 9, 10, 11),
        (4, 5, 6, 7, 12, 13, 14, 15))
LG_PAIR(4, f64, (0, 1, 4, 5, 8, 9, 12, 13),
        (2, 3, 6, 7, 10, 11, 14, 15))
LG_PAIR(2, f64, (0, 2, 4, 6, 8, 10, 12, 14),
        (1, 3, 5, 7, 9, 11, 13, 15))
#elif LG_VB == 32
LG_PAIR(8, f32, (0, 1, 2, 3, 8, 9, 10, 11),
        (4, 5, 6, 7, 12, 13, 14, 15))
LG_PAIR(4, f32, (0, 1, 4, 5, 8, 9, 12, 13),
        (2, 3, 6, 7, 10, 11, 14, 15))
LG_PAIR(2, f32, (0, 2, 4, 6, 8, 10, 12, 14),
        (1, 3, 5, 7, 9, 11, 13, 15))
LG_PAIR(4, f64, (0, 1, 4, 5),
        (2, 3, 6, 7))
LG_PAIR(2, f64, (0, 2, 4, 6),
        (1, 3, 5, 7))
#else
LG_PAIR(4, f32, (0, 1, 4, 5),
        (2, 3, 6, 7))
LG_PAIR(2, f32, (0, 2, 4, 6),
        (1, 3, 5, 7))
LG_PAIR(2, f64, (0, 2),
        (1, 3))
#endif

/* Adds a vector, four elements to each row, to rows that lie `step` elements apart. */
#define LG_ADD_ROWS(kind, type)                                                          \
    typedef type lg_four_##kind __attribute__((vector_size(4 * sizeof(type)), aligned(sizeof(type)), may_alias)); \
    static inline void lg_add_rows_##kind(type *row, long step, lg_v##kind v) {          \
        union { lg_v##kind all; lg_four_##kind part[sizeof(lg_v##kind) / sizeof(lg_four_##kind) + 1]; } u;  \
        u.all = v;                                                                       \
        for (long r = 0; r < LG_VL(type) / 4; r++) *(lg_four_##kind *)(row + r * step) += u.part[r]; \
    }
LG_ADD_ROWS(f32, float)
LG_ADD_ROWS(f64, double)

/* Sines of angles that maths.h can reduce; others set the variable `far` of the loop that they stand in, and so do
   elements that an op refuses. */
#define lg_near_sin_f32(x) (far |= lg_is_far_f32(x), lg_sin_f32(x))
#define lg_near_cos_f32(x) (far |= lg_is_far_f32(x), lg_cos_f32(x))
#define lg_near_tan_f32(x) (far |= lg_is_far_f32(x), lg_tan_f32(x))
#define lg_near_sin_f64(x) (far |= lg_is_far_f64(x), lg_sin_f64(x))
#define lg_near_cos_f64(x) (far |= lg_is_far_f64(x), lg_cos_f64(x))
#define lg_near_tan_f64(x) (far |= lg_is_far_f64(x), lg_tan_f64(x))
#define lg_refused_f32(x) (far |= (x) != 0, 0.0f)

#ifdef LG_BLAS_LONG
typedef int64_t lg_blas;
#else
typedef int lg_blas;
#endif

typedef void lg_sgemm(int order, int a, int b, lg_blas m, lg_blas n, lg_blas k, float alpha, const float *x, lg_blas ldx,
                      const float *y, lg_blas ldy, float beta, float *z, lg_blas ldz);
typedef void lg_dgemm(int order, int a, int b, lg_blas m, lg_blas n, lg_blas k, double alpha, const double *x,
                      lg_blas ldx, const double *y, lg_blas ldy, double beta, double *z, lg_blas ldz);
typedef int lg_pool(void (*task)(void *context, int part), void *context, int parts, int threads, int *stopped);
typedef int lg_look(void);

/* One call: arrays from outside, memory for what lies between, a thread's scratch, accumulators of each part. */
struct lg_call {
    void **arrays;
    char *arena;
    char *scratch;
    char *sums;
    uint64_t *keys; /* of random numbers */
    const long *sizes;   /* whole numbers of a text that serves batches of any length, */
    const double *reals; /* and its other numbers */
    lg_sgemm *sgemm;
    lg_dgemm *dgemm;
    lg_product_f32 *product_f32;
    lg_product_f64 *product_f64;
    lg_pool *pool;
    lg_look *look; /* for signals: not 0 if the call shall end */
    long threads;
    int next;   /* the part that a free thread takes */
    int parts;  /* of a kernel on whole arrays, one for each thread */
    int failed; /* why a part stopped: 1 an index out of range, 2 an angle that is too large, -1 a signal */
};

/* Which rounds of a loop are a part's, in whole stretches of `grain` but for the last. */
#define LG_ROUNDS(count, grain)                                                                     \
    const long lg_stretches = ((long)(count) + (grain)-1) / (grain);                                 \
    const long first = part * lg_stretches / call->parts * (grain);                                  \
    const long lg_next = (part + 1) * lg_stretches / call->parts * (grain);                          \
    const long last = lg_next < (count) ? lg_next : (count);

/* Run a task's parts on as many threads as there are, at most `most`. */
static inline int lg_share(lg_call *call, void (*task)(void *context, int part), long most) {
    call->failed = 0;
    call->parts = (int)(call->threads < most ? call->threads : most);
    if (call->parts < 2) {
        call->parts = 1;
        task(call, 0);
    } else {
        call->pool(task, call, call->parts, call->parts, &call->failed);
    }
    return call->failed;
}

#endif
