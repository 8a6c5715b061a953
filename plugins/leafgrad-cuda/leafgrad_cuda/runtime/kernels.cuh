/* What kernels are written in. The text is CUDA for NVRTC, and C for the processor, where blocks and threads run one
   after the other in any order that the caller chooses.

   A kernel is phases between barriers. EACH is what every thread t does in a phase; nothing lives across a BARRIER but
   memory, and what a thread has KEPT in registers. On the processor a phase is a loop over threads, and shared memory
   begins as nan. LG_INDEX stands for the type that items are counted in. */

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef INT64_MIN
#define INT64_MIN (-9223372036854775807LL - 1)
#endif
#define LG_FUNCTION static inline __device__
#define LG_SHARED static __device__ __noinline__
typedef LG_INDEX INDEX;
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name(char *const *arrays, char *arena)
#define BLOCK ((INDEX)blockIdx.x)
#define BLOCKS ((INDEX)gridDim.x)
#define THREADS ((int)blockDim.x)
#define SHARED extern __shared__ __align__(16) char shared[];
#define EACH if (const int t = threadIdx.x; true)
#define BARRIER __syncthreads();
#define LG_KEEP(type, count, threads) type kept[count];
#define KEPT kept
#define LG_UNROLL _Pragma("unroll")
#define LG_ROLLED _Pragma("unroll 1")
#define LG_ALIGNED(bytes) __align__(bytes)
#define LG_UPPER(x, y) __umul64hi(x, y)
#define LG_LARGEST(place, x) atomicMax((unsigned long long *)(place), (unsigned long long)(x))
/* float16, which is stored so, and computed with as float. The constructors are explicit: no number becomes one unasked. */
struct lg_f16 {
    unsigned short bits;
    lg_f16() = default;
    template <typename integer> __device__ explicit lg_f16(integer x) : lg_f16((float)x) {}
    __device__ explicit lg_f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ explicit lg_f16(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
    __device__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
    __device__ lg_f16 &operator=(float x) { return *this = lg_f16(x); }
    __device__ lg_f16 &operator+=(float x) { return *this = lg_f16((float)*this + x); }
    __device__ lg_f16 &operator-=(float x) { return *this = lg_f16((float)*this - x); }
    __device__ lg_f16 &operator*=(float x) { return *this = lg_f16((float)*this * x); }
    __device__ lg_f16 &operator/=(float x) { return *this = lg_f16((float)*this / x); }
};
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define LG_FUNCTION static inline
#define LG_SHARED static
typedef LG_INDEX INDEX;
#define lg_f16 _Float16
typedef struct {
    const int32_t *blocks; /* the order of blocks */
    const int32_t *threads; /* orders of threads, one after the other */
    int32_t count, width, orders, bytes;
    char *memory; /* of a block */
} lg_launch;
#define KERNEL(name, threads)                                                                                      \
    static void name##_block(INDEX BLOCK, const lg_launch *launch, char *shared, char *const *arrays, char *arena); \
    void name(const lg_launch *launch, char *const *arrays, char *arena) {                                         \
        for (int k = 0; k < launch->count; k++) {                                                                  \
            memset(launch->memory, 0xff, (size_t)launch->bytes);                                                   \
            name##_block(launch->blocks[k], launch, launch->memory, arrays, arena);                                \
        }                                                                                                          \
    }                                                                                                              \
    static void name##_block(INDEX BLOCK, const lg_launch *launch, char *shared, char *const *arrays, char *arena)
#define BLOCKS ((INDEX)launch->count)
#define THREADS (launch->width)
#define SHARED int phase_ = 0; (void)shared; (void)phase_; (void)BLOCK;
#define EACH for (int i_ = 0, t; i_ < THREADS && ((t = launch->threads[phase_ % launch->orders * THREADS + i_]), 1); i_++)
#define BARRIER phase_++;
#define LG_KEEP(type, count, threads) type kept_[threads][count];
#define KEPT kept_[t]
#define LG_UNROLL
#define LG_ROLLED
#define LG_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define LG_UPPER(x, y) ((uint64_t)((unsigned __int128)(x) * (y) >> 64))
#define LG_LARGEST(place, x) (*(place) = *(place) < (x) ? (x) : *(place))
#endif

/* Four neighbouring points of a lane, which memory gives and takes at once. */
#define LG_QUAD(dtype, type, bytes) typedef struct LG_ALIGNED(bytes) { type at[4]; } lg_quad_##dtype;
LG_QUAD(float32, float, 16)
LG_QUAD(float64, double, 16)
LG_QUAD(bool, uint8_t, 4)
LG_QUAD(uint8, uint8_t, 4)
LG_QUAD(int8, int8_t, 4)
LG_QUAD(int16, int16_t, 8)
LG_QUAD(int32, int32_t, 16)
LG_QUAD(int64, int64_t, 16)
LG_QUAD(float16, lg_f16, 8)
LG_QUAD(bfloat16, uint16_t, 8)

/* ---- functions of C expressions: nan goes through all of them, as it does in NumPy -------------------------------- */

#define LG_ONE(kind, type, name, call) LG_FUNCTION type lg_##name##_##kind(type x) { return (type)(call); }
#define LG_TWO(kind, type, name, call) LG_FUNCTION type lg_##name##_##kind(type x, type y) { return (type)(call); }
#define LG_MATHS(kind, type, F)                                                                         \
    LG_ONE(kind, type, abs, F(fabs)(x))                                                                 \
    LG_ONE(kind, type, acos, F(acos)(x))                                                                \
    LG_ONE(kind, type, acosh, F(acosh)(x))                                                              \
    LG_ONE(kind, type, asin, F(asin)(x))                                                                \
    LG_ONE(kind, type, asinh, F(asinh)(x))                                                              \
    LG_ONE(kind, type, atan, F(atan)(x))                                                                \
    LG_TWO(kind, type, atan2, F(atan2)(x, y))                                                           \
    LG_ONE(kind, type, atanh, F(atanh)(x))                                                              \
    LG_ONE(kind, type, ceil, F(ceil)(x))                                                                \
    LG_TWO(kind, type, copysign, F(copysign)(x, y))                                                     \
    LG_ONE(kind, type, near_cos, F(cos)(x))                                                             \
    LG_ONE(kind, type, cosh, F(cosh)(x))                                                                \
    LG_ONE(kind, type, erf, F(erf)(x))                                                                  \
    LG_ONE(kind, type, erfc, F(erfc)(x))                                                                \
    LG_ONE(kind, type, exp, F(exp)(x))                                                                  \
    LG_ONE(kind, type, exp2, F(exp2)(x))                                                                \
    LG_ONE(kind, type, expm1, F(expm1)(x))                                                              \
    LG_ONE(kind, type, floor, F(floor)(x))                                                              \
    LG_TWO(kind, type, fmod, F(fmod)(x, y))                                                             \
    LG_TWO(kind, type, hypot, F(hypot)(x, y))                                                           \
    LG_ONE(kind, type, log, F(log)(x))                                                                  \
    LG_ONE(kind, type, log10, F(log10)(x))                                                              \
    LG_ONE(kind, type, log1p, F(log1p)(x))                                                              \
    LG_ONE(kind, type, log2, F(log2)(x))                                                                \
    LG_TWO(kind, type, pow, F(pow)(x, y))                                                               \
    LG_ONE(kind, type, round, F(rint)(x)) /* halves to the even neighbour */                            \
    LG_ONE(kind, type, near_sin, F(sin)(x))                                                             \
    LG_ONE(kind, type, sinh, F(sinh)(x))                                                                \
    LG_ONE(kind, type, sqrt, F(sqrt)(x))                                                                \
    LG_ONE(kind, type, near_tan, F(tan)(x))                                                             \
    LG_ONE(kind, type, tanh, F(tanh)(x))                                                                \
    LG_ONE(kind, type, trunc, F(trunc)(x))                                                              \
    LG_ONE(kind, type, sign, x != x ? x : (type)((x > 0) - (x < 0)))                                    \
    LG_ONE(kind, type, sigmoid, x >= 0 ? 1 / (1 + F(exp)(-x)) : F(exp)(x) / (1 + F(exp)(x)))            \
    LG_TWO(kind, type, maximum, x != x ? x : x > y ? x : y)                                             \
    LG_TWO(kind, type, minimum, x != x ? x : x < y ? x : y)                                             \
    LG_ONE(kind, type, softplus, lg_maximum_##kind(x, 0) + F(log1p)(F(exp)(-F(fabs)(x))))               \
    LG_FUNCTION type lg_logaddexp_##kind(type x, type y) {                                              \
        const type gap = x == y ? 0 : F(fabs)(x - y); /* equal infinities */                            \
        return lg_maximum_##kind(x, y) + F(log1p)(F(exp)(-gap));                                        \
    }                                                                                                   \
    LG_FUNCTION type lg_remainder_##kind(type x, type y) {                                              \
        const type rest = F(fmod)(x, y);                                                                \
        return rest == 0 ? F(copysign)(rest, y) : (rest < 0) != (y < 0) ? rest + y : rest;              \
    }                                                                                                   \
    LG_FUNCTION type lg_floor_divide_##kind(type x, type y) {                                           \
        const type rest = F(fmod)(x, y);                                                                \
        type whole = (x - rest) / y;                                                                    \
        whole = rest != 0 && (rest < 0) != (y < 0) ? whole - 1 : whole;                                 \
        type down = F(floor)(whole);                                                                    \
        down = whole - down > (type)0.5 ? down + 1 : down;                                              \
        down = whole == 0 ? F(copysign)((type)0, x / y) : down;                                               \
        return y == 0 ? x / y : down;                                                                   \
    }
#define LG_F32(name) name##f
#define LG_F64(name) name
LG_MATHS(f32, float, LG_F32)
LG_MATHS(f64, double, LG_F64)

/* The program cannot go on: 24 bits for what the matter is, 40 for an index. The largest stays, in whatever order. */
LG_FUNCTION void lg_fail(uint64_t *flag, int what, int64_t index) {
    const int64_t most = 1LL << 39, bound = index < -most ? -most : index >= most ? most - 1 : index;
    const uint64_t told = (uint64_t)(what + 1) << 40 | (uint64_t)(bound + most);
    LG_LARGEST(flag, told);
}
#define lg_refused_f32(x) ((x) != 0 ? (lg_fail(flag, lg_which, 0), 0.0f) : 0.0f)
#define lg_refused_f64(x) ((x) != 0 ? (lg_fail(flag, lg_which, 0), 0.0) : 0.0)

/* Random numbers by a counter (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
   as leafgrad.backends.contract.Generator.words explains: eight for a counter, or one. */
LG_FUNCTION void lg_philox4x64(uint64_t key, uint64_t first, uint64_t number, uint32_t *out) {
    uint64_t a = first + number + 1, b = 0, c = 0, d = 0, k = key, l = 0;
    for (int round = 0; round < 10; round++) {
        const uint64_t upper = LG_UPPER(a, 0xD2E7470EE14C6C93ULL), lower = a * 0xD2E7470EE14C6C93ULL;
        a = LG_UPPER(c, 0xCA5A826395121157ULL) ^ b ^ k;
        b = c * 0xCA5A826395121157ULL;
        c = upper ^ d ^ l;
        d = lower;
        k += 0x9E3779B97F4A7C15ULL;
        l += 0xBB67AE8584CAA73BULL;
    }
    out[0] = (uint32_t)a, out[1] = (uint32_t)(a >> 32), out[2] = (uint32_t)b, out[3] = (uint32_t)(b >> 32);
    out[4] = (uint32_t)c, out[5] = (uint32_t)(c >> 32), out[6] = (uint32_t)d, out[7] = (uint32_t)(d >> 32);
}
LG_FUNCTION void lg_philox4x32(uint64_t key, uint64_t first, uint64_t number, uint32_t *out) {
    uint32_t k = (uint32_t)key, l = (uint32_t)(key >> 32), c = 0, d = 0;
    uint32_t a = (uint32_t)(first + number), b = (uint32_t)((first + number) >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = (uint64_t)0xD2511F53U * a, q = (uint64_t)0xCD9E8D57U * c;
        a = (uint32_t)(q >> 32) ^ b ^ k;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ l;
        d = (uint32_t)p;
        k += 0x9E3779B9U;
        l += 0xBB67AE85U;
    }
    out[0] = a;
}

LG_FUNCTION float lg_nearest_bfloat16_f32(float x) {
    union { float number; uint32_t bits; } u;
    u.number = x;
    if (x == x) u.bits = (u.bits + 0x7fffu + (u.bits >> 16 & 1)) & 0xffff0000u;
    return u.number;
}
/* bfloat16 is stored as the upper half of the bits of a float, and these as the number that they are. */
LG_FUNCTION float lg_to_bfloat16_f32(float x) {
    union { float number; uint32_t bits; } u;
    u.number = lg_nearest_bfloat16_f32(x);
    return (float)(u.bits >> 16 | (x != x ? 0x40u : 0)); /* nan stays nan where its lower bits go */
}
LG_FUNCTION float lg_of_bfloat16_f32(float bits) {
    union { float number; uint32_t bits; } u;
    u.bits = (uint32_t)bits << 16;
    return u.number;
}
