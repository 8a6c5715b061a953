/* Elementary functions that a C compiler turns into vector code: no branch, no table, no call, no errno.

   Each is a plain scalar function; a loop over it is vectorised by gcc and clang at -O3. Both sides of every
   condition are computed and one is kept, so a condition becomes a blend. Infinities, nan, signed zeros and
   denormals are as NumPy has them. Bounds of error, measured against mpmath: 2 ulp in float64, 4 ulp in float32.

   Methods: Muller, "Elementary Functions" (3rd ed., 2016); Cody and Waite, "Software Manual for the Elementary
   Functions" (1980). Polynomials: minimax, from a Remez exchange in 50 digits; beside each, what it approximates,
   where, and how closely. Needs IEEE arithmetic: never compile this with -ffast-math or -ffinite-math-only. */

#ifndef LG_MATHS_H
#define LG_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "maths.h rounds by adding and subtracting, and tells nan from numbers: compile without -ffast-math"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define LG_INLINE static inline __attribute__((always_inline, unused))
#else
#define LG_INLINE static inline
#endif

/* x y + z with one rounding where the processor has it; elsewhere with two, and products that must be exact are short */
#if defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)
#define LG_HAS_FMA
#define LG_FMA_F64(x, y, z) __builtin_fma(x, y, z)
#define LG_FMA_F32(x, y, z) __builtin_fmaf(x, y, z)
#else
#define LG_FMA_F64(x, y, z) ((x) * (y) + (z))
#define LG_FMA_F32(x, y, z) ((x) * (y) + (z))
#endif

#include "maths_f64.h"
#include "maths_f32.h" /* after float64, through which the seldom ones go */

#define LG_REAL double
#define LG_NAME(function) lg_##function##_f64
#define LG_C(function) function
#define LG_FAR LG_FAR_F64
#include "maths_common.h"
#undef LG_REAL
#undef LG_NAME
#undef LG_C
#undef LG_FAR

#define LG_REAL float
#define LG_NAME(function) lg_##function##_f32
#define LG_C(function) function##f
#define LG_FAR LG_FAR_F32
#include "maths_common.h"
#undef LG_REAL
#undef LG_NAME
#undef LG_C
#undef LG_FAR

#endif
