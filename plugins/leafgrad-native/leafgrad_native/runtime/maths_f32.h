/* The functions of maths.h in float32. */

#ifndef LG_MATHS_F32_H
#define LG_MATHS_F32_H

#define LG_SIGN_F32 0x80000000u
#define LG_ROUND_F32 0x1.8p23f /* x + this - this is x rounded to an integer, whose bits are the low ones of the sum */

LG_INLINE uint32_t lg_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LG_INLINE float lg_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

LG_INLINE float lg_abs_f32(float x) { return lg_from_bits_f32(lg_bits_f32(x) & ~LG_SIGN_F32); }

/* |x| with the sign of y */
LG_INLINE float lg_copysign_f32(float x, float y) {
    return lg_from_bits_f32((lg_bits_f32(x) & ~LG_SIGN_F32) | (lg_bits_f32(y) & LG_SIGN_F32));
}

/* ---- exponentials: exp(x) = 2^n (1 + r + rest) ---------------------------------------------------------------- */

typedef struct {
    float r, rest;   /* rest: exp(r) - 1 - r */
    uint32_t n_bits; /* n, in the low bits */
} lg_reduced_exp_f32;

/* exp(r) - 1 - r on [-0.347, 0.347]: 2^-26 of exp(r) - 1 */
LG_INLINE float lg_exp_rest_f32(float r) {
    float q = 0.001394656722f;
    q = LG_FMA_F32(q, r, 0.00836667421f);
    q = LG_FMA_F32(q, r, 0.04166628088f);
    q = LG_FMA_F32(q, r, 0.1666654243f);
    q = LG_FMA_F32(q, r, 0.5000000062f);
    return r * r * q;
}

/* x = n log 2 + r, |r| <= log(2) / 2, of |x| < 2^21 */
LG_INLINE lg_reduced_exp_f32 lg_reduce_exp_f32(float x) {
    float shifted = LG_FMA_F32(x, 0x1.715476p0f, LG_ROUND_F32);
    float n = shifted - LG_ROUND_F32;
    float r = LG_FMA_F32(-n, 0x1.62e4p-1f, x);
    r = LG_FMA_F32(-n, 0x1.7f7d1cp-20f, r);
    return (lg_reduced_exp_f32){r, lg_exp_rest_f32(r), lg_bits_f32(shifted)};
}

/* 2^(n + add), which must be a normal number */
LG_INLINE float lg_power_of_two_f32(uint32_t n_bits, int32_t add) {
    return lg_from_bits_f32((n_bits + (uint32_t)(127 + add)) << 23);
}

/* 2^n y in two factors: n goes from -150, for denormal results, to 129 */
LG_INLINE float lg_scale_f32(float y, uint32_t n_bits) {
    uint32_t n = n_bits - lg_bits_f32(LG_ROUND_F32) + 256, half = n >> 1;
    return y * lg_from_bits_f32((half - 1) << 23) * lg_from_bits_f32((n - half - 1) << 23);
}

LG_INLINE float lg_exp_f32(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    lg_reduced_exp_f32 e = lg_reduce_exp_f32(x);
    return lg_scale_f32(1 + (e.r + e.rest), e.n_bits);
}

LG_INLINE float lg_exp2_f32(float x) {
    x = x > 129.0f ? 129.0f : x;
    x = x < -150.0f ? -150.0f : x;
    float shifted = x + LG_ROUND_F32;
    float r = (x - (shifted - LG_ROUND_F32)) * 0x1.62e43p-1f;
    return lg_scale_f32(1 + (r + lg_exp_rest_f32(r)), lg_bits_f32(shifted));
}

LG_INLINE float lg_expm1_f32(float x) {
    float a = x > 89.0f ? 89.0f : x;
    a = a < -20.0f ? -20.0f : a;
    lg_reduced_exp_f32 e = lg_reduce_exp_f32(a);
    float half = lg_power_of_two_f32(e.n_bits, -1);
    return lg_copysign_f32(2 * LG_FMA_F32(half, e.rest, LG_FMA_F32(half, e.r, half - 0.5f)), x);
}

/* 1 / (1 + exp(-x)) */
LG_INLINE float lg_sigmoid_f32(float x) {
    float a = x < -89.0f ? -89.0f : x;
    a = a > 20.0f ? 20.0f : a;
    lg_reduced_exp_f32 e = lg_reduce_exp_f32(-a);
    float half = lg_power_of_two_f32(e.n_bits, -1);
    return 1 / (1 + 2 * LG_FMA_F32(half, e.r + e.rest, half));
}

/* e / (e + 2), where e = exp(2 |x|) - 1 */
LG_INLINE float lg_tanh_f32(float x) {
    float a = lg_abs_f32(x);
    a = a > 10.0f ? 10.0f : a;
    lg_reduced_exp_f32 e = lg_reduce_exp_f32(2 * a);
    float power = lg_power_of_two_f32(e.n_bits, 0);
    float em1 = LG_FMA_F32(power, e.r + e.rest, power - 1);
    return lg_copysign_f32(em1 / (em1 + 2), x);
}

/* 1 - exp(log(erfc(x))), as in float64 */
LG_INLINE float lg_erf_f32(float x) {
    float a = lg_abs_f32(x);
    a = a > 3.95f ? 3.95f : a;
    /* log(erfc(a)) / a on [0, 3.95]: 2^-31 of erf(a) */
    float q = -1.19325762e-6f;
    q = LG_FMA_F32(q, a, 2.135414823e-5f);
    q = LG_FMA_F32(q, a, -0.000167479017f);
    q = LG_FMA_F32(q, a, 0.0007406815224f);
    q = LG_FMA_F32(q, a, -0.001799348308f);
    q = LG_FMA_F32(q, a, 0.0002530570874f);
    q = LG_FMA_F32(q, a, 0.0191176964f);
    q = LG_FMA_F32(q, a, -0.1027712774f);
    q = LG_FMA_F32(q, a, -0.6366198346f);
    lg_reduced_exp_f32 e = lg_reduce_exp_f32(LG_FMA_F32(a, -1.128379167f, a * a * q));
    float power = lg_power_of_two_f32(e.n_bits, 0);
    return lg_copysign_f32(LG_FMA_F32(power, e.rest, LG_FMA_F32(power, e.r, power - 1)), x);
}

/* ---- logarithms: x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ------------------------------------------------ */

typedef struct {
    float e, f;
    uint32_t biased; /* e + 128 */
} lg_reduced_log_f32;

/* Of a positive normal x */
LG_INLINE lg_reduced_log_f32 lg_reduce_normal_log_f32(float x) {
    uint32_t bits = lg_bits_f32(x);
    uint32_t biased = (bits + (0x40000000u - 0x3f3504f3u)) >> 23;
    float e = lg_from_bits_f32(biased | 0x4b000000u) - (0x1p23f + 128);
    return (lg_reduced_log_f32){e, lg_from_bits_f32(bits - ((biased - 128) << 23)) - 1, biased};
}

/* e log 2 + log(1 + f + low) */
LG_INLINE float lg_log1p_reduced_f32(float e, float f, float low) {
    float square = f * f;
    /* (log(1 + f) - f + f^2/2) / f^3 on [-0.294, 0.415]: 2^-27 */
    float even = 0.1288328624f;
    even = LG_FMA_F32(even, square, 0.1418095192f);
    even = LG_FMA_F32(even, square, 0.2000229755f);
    even = LG_FMA_F32(even, square, 0.3333331665f);
    float odd = -0.07865560704f;
    odd = LG_FMA_F32(odd, square, -0.1312702134f);
    odd = LG_FMA_F32(odd, square, -0.1662476404f);
    odd = LG_FMA_F32(odd, square, -0.2500080216f);
    low += LG_FMA_F32(e, 0x1.7f7d1cp-20f, square * f * LG_FMA_F32(odd, f, even));
    return LG_FMA_F32(e, 0x1.62e4p-1f, f + LG_FMA_F32(-0.5f, square, low));
}

/* y, or what a logarithm is where x is not positive and finite */
LG_INLINE float lg_log_limits_f32(float x, float y) {
    y = x < INFINITY ? y : x;
    return x > 0 ? y : x == 0 ? -INFINITY : NAN;
}

LG_INLINE float lg_log_f32(float x) {
    int denormal = x < 0x1p-126f;
    lg_reduced_log_f32 l = lg_reduce_normal_log_f32(denormal ? x * 0x1p24f : x);
    return lg_log_limits_f32(x, lg_log1p_reduced_f32(l.e - (denormal ? 24.0f : 0.0f), l.f, 0.0f));
}

LG_INLINE float lg_log1p_f32(float x) {
    float sum = 1 + x, back = sum - 1;
    float low = (1 - (sum - back)) + (x - back); /* what rounding took from the sum */
    lg_reduced_log_f32 l = lg_reduce_normal_log_f32(sum);
    low = sum < 0x1p30f ? low * lg_from_bits_f32((255 - l.biased) << 23) : 0; /* low / 2^e */
    float f = l.f + low;
    return lg_copysign_f32(lg_log_limits_f32(sum, lg_log1p_reduced_f32(l.e, f, (l.f - f) + low)), x);
}

/* ---- sine and cosine: |x| = n pi/2 + r, |r| <= pi/4 ----------------------------------------------------------- */

typedef struct {
    float r;
    uint32_t n_bits; /* n, in the low bits */
} lg_reduced_angle_f32;

#define LG_FAR_F32 0x1p17f

/* Of a positive x below LG_FAR_F32 */
LG_INLINE lg_reduced_angle_f32 lg_reduce_angle_f32(float x) {
    float shifted = LG_FMA_F32(x, 0x1.45f306p-1f, LG_ROUND_F32);
    float n = shifted - LG_ROUND_F32;
#ifdef LG_HAS_FMA
    float r = LG_FMA_F32(-n, 0x1.921fb6p0f, x);
    r = LG_FMA_F32(-n, -0x1.777a5cp-25f, r);
    r = LG_FMA_F32(-n, -0x1.ee59dap-50f, r);
#else
    double wide = (double)x - (double)n * 0x1.921fb54400000p0 - (double)n * 0x1.0b4611a600000p-34;
    float r = (float)wide;
#endif
    return (lg_reduced_angle_f32){r, lg_bits_f32(shifted)};
}

/* sin(n pi/2 + r), the sign flipped by the top bit of flip */
LG_INLINE float lg_sine_f32(float r, uint32_t n, uint32_t flip) {
    float z = r * r;
    /* (sin(r) - r) / r^3 in z = r^2 on [0, 0.618]: 2^-28 of sin(r) / r */
    float s = -1.951668438e-4f;
    s = LG_FMA_F32(s, z, 8.332173807e-3f);
    s = LG_FMA_F32(s, z, -1.666665488e-1f);
    s = LG_FMA_F32(r * z, s, r);
    /* (cos(r) - 1 + z/2) / z^2: 2^-33 */
    float c = 2.443784578e-5f;
    c = LG_FMA_F32(c, z, -1.388736261e-3f);
    c = LG_FMA_F32(c, z, 4.166664678e-2f);
    c = LG_FMA_F32(c, z, -0.5f);
    c = LG_FMA_F32(c, z, 1.0f);
    return lg_from_bits_f32(lg_bits_f32((n & 1) ? c : s) ^ (((n << 30) ^ flip) & LG_SIGN_F32));
}

LG_INLINE float lg_sin_f32(float x) {
    lg_reduced_angle_f32 a = lg_reduce_angle_f32(lg_abs_f32(x));
    return lg_sine_f32(a.r, a.n_bits, lg_bits_f32(x));
}

LG_INLINE float lg_cos_f32(float x) {
    lg_reduced_angle_f32 a = lg_reduce_angle_f32(lg_abs_f32(x));
    return lg_sine_f32(a.r, a.n_bits + 1, 0);
}

/* To the nearest number of bfloat16, ties to even: the upper half of the bits. */
LG_INLINE float lg_nearest_bfloat16_f32(float x) {
    uint32_t bits = lg_bits_f32(x);
    bits += 0x7fffu + ((bits >> 16) & 1);
    return x != x ? x : lg_from_bits_f32(bits & 0xffff0000u);
}

/* ---- the others, which are used seldom, in float64 ------------------------------------------------------------- */

#define LG_THROUGH_F64(name) \
    LG_INLINE float lg_##name##_f32(float x) { return (float)lg_##name##_f64(x); }
#define LG_PAIR_THROUGH_F64(name) \
    LG_INLINE float lg_##name##_f32(float x, float y) { return (float)lg_##name##_f64(x, y); }

LG_THROUGH_F64(log2)
LG_THROUGH_F64(log10)
LG_THROUGH_F64(sinh)
LG_THROUGH_F64(cosh)
LG_THROUGH_F64(tan)
LG_THROUGH_F64(asin)
LG_THROUGH_F64(acos)
LG_THROUGH_F64(atan)
LG_THROUGH_F64(asinh)
LG_THROUGH_F64(acosh)
LG_THROUGH_F64(atanh)
LG_PAIR_THROUGH_F64(atan2)
LG_PAIR_THROUGH_F64(pow)

LG_INLINE float lg_hypot_f32(float x, float y) {
    float length = (float)sqrt((double)x * x + (double)y * y);
    return ((lg_abs_f32(x) == INFINITY) | (lg_abs_f32(y) == INFINITY)) ? INFINITY : length;
}

#endif
