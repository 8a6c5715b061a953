/* The functions of maths.h in float64. */

#ifndef LG_MATHS_F64_H
#define LG_MATHS_F64_H

#define LG_SIGN_F64 0x8000000000000000u
#define LG_ROUND_F64 0x1.8p52 /* x + this - this is x rounded to an integer, whose bits are the low ones of the sum */

LG_INLINE uint64_t lg_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LG_INLINE double lg_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

LG_INLINE double lg_abs_f64(double x) { return lg_from_bits_f64(lg_bits_f64(x) & ~LG_SIGN_F64); }

/* |x| with the sign of y */
LG_INLINE double lg_copysign_f64(double x, double y) {
    return lg_from_bits_f64((lg_bits_f64(x) & ~LG_SIGN_F64) | (lg_bits_f64(y) & LG_SIGN_F64));
}

/* ---- exponentials: exp(x) = 2^n (1 + r + rest) ---------------------------------------------------------------- */

typedef struct {
    double r, low, rest; /* low: what rounding took from r; rest: exp(r) - 1 - r */
    uint64_t n_bits;     /* n, in the low bits */
} lg_reduced_exp_f64;

/* exp(r) - 1 - r on [-0.347, 0.694]: 2^-60 of exp(r) - 1. Even and odd powers apart have half the latency. */
LG_INLINE double lg_exp_rest_f64(double r) {
    double square = r * r;
    double even = 2.069929426956888223e-9;
    even = LG_FMA_F64(even, square, 2.755794869284675664e-7);
    even = LG_FMA_F64(even, square, 0.00002480158655778090926);
    even = LG_FMA_F64(even, square, 0.001388888888927348142);
    even = LG_FMA_F64(even, square, 0.04166666666666580576);
    even = LG_FMA_F64(even, square, 0.5000000000000000059);
    double odd = 1.884152123720037587e-10;
    odd = LG_FMA_F64(odd, square, 2.50491613776943248e-8);
    odd = LG_FMA_F64(odd, square, 2.755731045048769591e-6);
    odd = LG_FMA_F64(odd, square, 0.0001984126985763507491);
    odd = LG_FMA_F64(odd, square, 0.00833333333332460111);
    odd = LG_FMA_F64(odd, square, 0.1666666666666668003);
    return square * LG_FMA_F64(odd, r, even);
}

/* x = n log 2 + r with |x| < 2^50, where n is x / log 2 + shift, rounded */
LG_INLINE lg_reduced_exp_f64 lg_reduce_exp_f64(double x, double shift) {
    double shifted = LG_FMA_F64(x, 0x1.71547652b82fep0, shift) + LG_ROUND_F64;
    double n = shifted - LG_ROUND_F64;
    double first = LG_FMA_F64(-n, 0x1.62e42fefa0000p-1, x);
    double r = LG_FMA_F64(-n, 0x1.cf79abc9e3b3ap-40, first);
    double low = LG_FMA_F64(-n, 0x1.cf79abc9e3b3ap-40, first - r);
    return (lg_reduced_exp_f64){r, low, lg_exp_rest_f64(r), lg_bits_f64(shifted)};
}

/* 2^(n + add), which must be a normal number */
LG_INLINE double lg_power_of_two_f64(uint64_t n_bits, int64_t add) {
    return lg_from_bits_f64((n_bits + (uint64_t)(1023 + add)) << 52);
}

/* 2^n y in two factors: n goes from -1076, for denormal results, to 1025 */
LG_INLINE double lg_scale_f64(double y, uint64_t n_bits) {
    uint64_t n = n_bits - lg_bits_f64(LG_ROUND_F64) + 2048, half = n >> 1;
    return y * lg_from_bits_f64((half - 1) << 52) * lg_from_bits_f64((n - half - 1) << 52);
}

LG_INLINE double lg_exp_f64(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(x, 0.0);
    return lg_scale_f64(1 + (e.r + e.rest), e.n_bits);
}

LG_INLINE double lg_exp2_f64(double x) {
    x = x > 1025.0 ? 1025.0 : x;
    x = x < -1076.0 ? -1076.0 : x;
    double shifted = x + LG_ROUND_F64;
    double r = (x - (shifted - LG_ROUND_F64)) * 0x1.62e42fefa39efp-1;
    return lg_scale_f64(1 + (r + lg_exp_rest_f64(r)), lg_bits_f64(shifted));
}

LG_INLINE double lg_expm1_f64(double x) {
    double a = x > 710.0 ? 710.0 : x;
    a = a < -40.0 ? -40.0 : a;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(a, 0.0);
    double half = lg_power_of_two_f64(e.n_bits, -1);
    return lg_copysign_f64(2 * LG_FMA_F64(half, e.rest, LG_FMA_F64(half, e.r, half - 0.5)), x);
}

/* 1 / (1 + exp(-x)) */
LG_INLINE double lg_sigmoid_f64(double x) {
    double a = x < -710.0 ? -710.0 : x;
    a = a > 40.0 ? 40.0 : a;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(-a, 0.0);
    double half = lg_power_of_two_f64(e.n_bits, -1);
    return 1 / (1 + 2 * LG_FMA_F64(half, e.r + e.rest, half));
}

/* h / (h + 1), where h = (exp(2 |x|) - 1) / 2; r is positive, so nothing cancels */
LG_INLINE double lg_tanh_f64(double x) {
    double a = lg_abs_f64(x);
    a = a > 20.0 ? 20.0 : a;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(2 * a, -0.5);
    double half = lg_power_of_two_f64(e.n_bits, -1);
    double h = LG_FMA_F64(half, e.rest, LG_FMA_F64(half, e.r, half - 0.5));
    double sum = h + 1, y = h / sum;
    double lost = h < 1 ? h - (sum - 1) : 0; /* by rounding the sum; 1 / sum is 1 - y */
    return lg_copysign_f64(LG_FMA_F64(-y * lost, 1 - y, y), x);
}

/* (q + q / (4 q + 1)) 2, where q = (exp(|x|) - 1) / 4 does not overflow */
LG_INLINE double lg_sinh_f64(double x) {
    double a = lg_abs_f64(x);
    a = a > 710.5 ? 710.5 : a;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(a, -0.5);
    double quarter = lg_power_of_two_f64(e.n_bits, -2);
    double q = LG_FMA_F64(quarter, e.rest + e.low, LG_FMA_F64(quarter, e.r, quarter - 0.25));
    return lg_copysign_f64(2 * (q + q / LG_FMA_F64(4.0, q, 1.0)), x);
}

/* (q + 1 / (16 q)) 2, where q = exp(|x|) / 4 */
LG_INLINE double lg_cosh_f64(double x) {
    double a = lg_abs_f64(x);
    a = a > 710.5 ? 710.5 : a;
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(a, 0.0);
    double quarter = lg_power_of_two_f64(e.n_bits, -2);
    double q = LG_FMA_F64(quarter, e.r + e.rest, quarter);
    return 2 * (q + 0.0625 / q);
}

/* 1 - exp(log(erfc(x))) needs no case, and the logarithm is smooth: one polynomial does for all x. */
LG_INLINE double lg_erf_f64(double x) {
    double a = lg_abs_f64(x);
    a = a > 5.95 ? 5.95 : a;
    double square = a * a;
    /* log(erfc(a)) / a on [0, 5.95]: 2^-57 of erf(a) */
    double odd = 3.850530860966553863e-14;
    odd = LG_FMA_F64(odd, square, 1.261096878607552234e-11);
    odd = LG_FMA_F64(odd, square, 9.082203253808617244e-10);
    odd = LG_FMA_F64(odd, square, 2.096263612431823418e-8);
    odd = LG_FMA_F64(odd, square, 1.41762278431590625e-7);
    odd = LG_FMA_F64(odd, square, -3.36362311098443284e-7);
    odd = LG_FMA_F64(odd, square, -2.835136633760602819e-6);
    odd = LG_FMA_F64(odd, square, 0.00002972404785764278959);
    odd = LG_FMA_F64(odd, square, -0.00002587860397177839959);
    odd = LG_FMA_F64(odd, square, -0.001696206385725430184);
    odd = LG_FMA_F64(odd, square, 0.01912844700507065009);
    odd = LG_FMA_F64(odd, square, -0.6366197723675836089);
    double even = -7.834219576400261695e-16;
    even = LG_FMA_F64(even, square, -8.845564945922458919e-13);
    even = LG_FMA_F64(even, square, -1.248406260380427103e-10);
    even = LG_FMA_F64(even, square, -4.997695024131210537e-9);
    even = LG_FMA_F64(even, square, -6.573352465331498799e-8);
    even = LG_FMA_F64(even, square, -1.371832212548168154e-7);
    even = LG_FMA_F64(even, square, 1.741544065966983514e-6);
    even = LG_FMA_F64(even, square, -3.40726831440082193e-6);
    even = LG_FMA_F64(even, square, -0.00006449186166154043058);
    even = LG_FMA_F64(even, square, 0.0005901255528035284815);
    even = LG_FMA_F64(even, square, 0.0002091946948394840886);
    even = LG_FMA_F64(even, square, -0.1027726033017887802);
    double y = LG_FMA_F64(a, -1.128379167095512568, square * LG_FMA_F64(even, a, odd));
    lg_reduced_exp_f64 e = lg_reduce_exp_f64(y, 0.0);
    double power = lg_power_of_two_f64(e.n_bits, 0);
    return lg_copysign_f64(LG_FMA_F64(power, e.rest, LG_FMA_F64(power, e.r, power - 1)), x);
}

/* ---- logarithms: x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ------------------------------------------------ */

typedef struct {
    double e, f;
    uint64_t biased; /* e + 1024 */
} lg_reduced_log_f64;

/* Of a positive normal x */
LG_INLINE lg_reduced_log_f64 lg_reduce_normal_log_f64(double x) {
    uint64_t bits = lg_bits_f64(x);
    uint64_t biased = (bits + (0x4000000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
    double e = lg_from_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 1024);
    return (lg_reduced_log_f64){e, lg_from_bits_f64(bits - ((biased - 1024) << 52)) - 1, biased};
}

/* Of a positive finite x */
LG_INLINE lg_reduced_log_f64 lg_reduce_log_f64(double x) {
    int denormal = x < 0x1p-1022;
    lg_reduced_log_f64 l = lg_reduce_normal_log_f64(denormal ? x * 0x1p54 : x);
    l.e -= denormal ? 54 : 0;
    return l;
}

/* log(1 + f) = f - (half_square - tail); with s = f / (2 + f), log(1 + f) = 2 atanh(s) (Muller, 11.5) */
LG_INLINE double lg_log_tail_f64(double f, double half_square) {
    double s = f / (2 + f), z = s * s;
    /* (2 atanh(s) / s - 2) / z, z = s^2, on [0, 0.0297]: 2^-58 */
    double q = 0.1480180439092600795;
    q = LG_FMA_F64(q, z, 0.1531354723758946867);
    q = LG_FMA_F64(q, z, 0.1818358038382786032);
    q = LG_FMA_F64(q, z, 0.2222219834516671905);
    q = LG_FMA_F64(q, z, 0.2857142874365010066);
    q = LG_FMA_F64(q, z, 0.3999999999941463421);
    q = LG_FMA_F64(q, z, 0.6666666666666733161);
    return s * LG_FMA_F64(q, z, half_square);
}

/* e log 2 + log(1 + f + low) */
LG_INLINE double lg_log1p_reduced_f64(double e, double f, double low) {
    double half_square = 0.5 * f * f;
    low += LG_FMA_F64(e, 0x1.cf79abc9e3b3ap-40, lg_log_tail_f64(f, half_square));
    return LG_FMA_F64(e, 0x1.62e42fefa0000p-1, f - (half_square - low));
}

/* y, or what a logarithm is where x is not positive and finite */
LG_INLINE double lg_log_limits_f64(double x, double y) {
    y = x < INFINITY ? y : x;
    return x > 0 ? y : x == 0 ? -INFINITY : NAN;
}

LG_INLINE double lg_log_f64(double x) {
    lg_reduced_log_f64 l = lg_reduce_log_f64(x);
    return lg_log_limits_f64(x, lg_log1p_reduced_f64(l.e, l.f, 0.0));
}

LG_INLINE double lg_log2_f64(double x) {
    lg_reduced_log_f64 l = lg_reduce_log_f64(x);
    double half_square = 0.5 * l.f * l.f;
    double y = l.f - (half_square - lg_log_tail_f64(l.f, half_square));
    return lg_log_limits_f64(x, LG_FMA_F64(y, 0x1.71547652b82fep0, LG_FMA_F64(y, 0x1.777d0ffda0d24p-56, l.e)));
}

LG_INLINE double lg_log10_f64(double x) {
    lg_reduced_log_f64 l = lg_reduce_log_f64(x);
    double half_square = 0.5 * l.f * l.f;
    double y = l.f - (half_square - lg_log_tail_f64(l.f, half_square));
    double low = LG_FMA_F64(y, 0x1.95355baaafad3p-57, l.e * 0x1.e7fbcc47c4acdp-40);
    low = LG_FMA_F64(y, 0x1.bcb7b1526e50ep-2, low);
    return lg_log_limits_f64(x, LG_FMA_F64(l.e, 0x1.34413509f0000p-2, low));
}

/* log(x + low), where low is what rounding took from x, which is normal */
LG_INLINE double lg_log_sum_f64(double x, double low) {
    lg_reduced_log_f64 l = lg_reduce_normal_log_f64(x);
    low = x < 0x1p60 ? low * lg_from_bits_f64((2047 - l.biased) << 52) : 0; /* low / 2^e */
    double f = l.f + low;
    return lg_log1p_reduced_f64(l.e, f, (l.f - f) + low);
}

LG_INLINE double lg_log1p_f64(double x) {
    double sum = 1 + x, back = sum - 1;
    double low = (1 - (sum - back)) + (x - back);
    return lg_copysign_f64(lg_log_limits_f64(sum, lg_log_sum_f64(sum, low)), x);
}

/* log1p(a + a^2 / (1 + sqrt(a^2 + 1))); far out log(2 a) */
LG_INLINE double lg_asinh_f64(double x) {
    double a = lg_abs_f64(x), square = a * a;
    int far = a > 0x1p60;
    double y = far ? a : a + square / (1 + sqrt(square + 1));
    return lg_copysign_f64(lg_log1p_f64(y) + (far ? 0x1.62e42fefa39efp-1 : 0), x);
}

/* log(x + sqrt(x^2 - 1)); far out log(2 x) */
LG_INLINE double lg_acosh_f64(double x) {
    int far = x > 0x1p60;
    double root = far ? 0 : sqrt((x - 1) * (x + 1)), sum = x + root;
    double y = lg_log_sum_f64(sum, (x - sum) + root) + (far ? 0x1.62e42fefa39efp-1 : 0);
    y = x < INFINITY ? y : x;
    return x >= 1 ? y : NAN;
}

LG_INLINE double lg_atanh_f64(double x) {
    double a = lg_abs_f64(x);
    return lg_copysign_f64(0.5 * lg_log1p_f64(2 * a / (1 - a)), x);
}

/* ---- sine and cosine: |x| = n pi/2 + r, |r| <= pi/4 ----------------------------------------------------------- */

typedef struct {
    double r, low, lost; /* r + low is the angle, to rounding; lost: what rounding took from r, unless r is tiny */
    uint64_t n_bits;     /* n, in the low bits */
} lg_reduced_angle_f64;

/* pi/2 in three parts (Cody and Waite). The first step is exact: fma rounds a difference that fits, or n times 33 bits
   fits. Beyond LG_FAR_F64 n is not exact: see lg_is_far_f64. */
#ifdef LG_HAS_FMA
#define LG_FAR_F64 0x1p45
#define LG_HALF_PI_PARTS_F64 {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}
#else
#define LG_FAR_F64 0x1p20
#define LG_HALF_PI_PARTS_F64 {0x1.921fb54400000p0, 0x1.0b4611a600000p-34, 0x1.3198a2e037073p-69}
#endif

/* Of a positive x below LG_FAR_F64 */
LG_INLINE lg_reduced_angle_f64 lg_reduce_angle_f64(double x) {
    const double parts[3] = LG_HALF_PI_PARTS_F64;
    double shifted = LG_FMA_F64(x, 0x1.45f306dc9c883p-1, LG_ROUND_F64);
    double n = shifted - LG_ROUND_F64;
    double first = LG_FMA_F64(-n, parts[0], x);
    double r = LG_FMA_F64(-n, parts[1], first);
    double lost = LG_FMA_F64(-n, parts[1], first - r);
    return (lg_reduced_angle_f64){r, -n * parts[2], lost, lg_bits_f64(shifted)};
}

/* sin(n pi/2 + r), the sign flipped by the top bit of flip */
LG_INLINE double lg_sine_f64(double r, uint64_t n, uint64_t flip) {
    double z = r * r;
    /* (sin(r) - r) / r^3 in z = r^2 on [0, 0.618]: 2^-58 of sin(r) / r */
    double s = 1.589652244671516149e-10;
    s = LG_FMA_F64(s, z, -2.505075360755681752e-8);
    s = LG_FMA_F64(s, z, 2.755731366460617989e-6);
    s = LG_FMA_F64(s, z, -1.984126982973405456e-4);
    s = LG_FMA_F64(s, z, 8.33333333332232923e-3);
    s = LG_FMA_F64(s, z, -1.666666666666663173e-1);
    s = LG_FMA_F64(r * z, s, r);
    /* (cos(r) - 1 + z/2) / z^2: 2^-64 */
    double c = -1.135954412139911878e-11;
    c = LG_FMA_F64(c, z, 2.08757215754880357e-9);
    c = LG_FMA_F64(c, z, -2.755731434247627032e-7);
    c = LG_FMA_F64(c, z, 2.480158728945911914e-5);
    c = LG_FMA_F64(c, z, -1.388888888887410943e-3);
    c = LG_FMA_F64(c, z, 4.166666666666659957e-2);
    c = LG_FMA_F64(c, z, -0.5);
    c = LG_FMA_F64(c, z, 1.0);
    return lg_from_bits_f64(lg_bits_f64((n & 1) ? c : s) ^ (((n << 62) ^ flip) & LG_SIGN_F64));
}

LG_INLINE double lg_sin_f64(double x) {
    lg_reduced_angle_f64 a = lg_reduce_angle_f64(lg_abs_f64(x));
    return lg_sine_f64(a.r + a.low, a.n_bits, lg_bits_f64(x));
}

LG_INLINE double lg_cos_f64(double x) {
    lg_reduced_angle_f64 a = lg_reduce_angle_f64(lg_abs_f64(x));
    return lg_sine_f64(a.r + a.low, a.n_bits + 1, 0);
}

LG_INLINE double lg_tan_f64(double x) {
    lg_reduced_angle_f64 a = lg_reduce_angle_f64(lg_abs_f64(x));
    double z = a.r * a.r, square = z * z;
    /* (tan(r) - r) / r^3 in z = r^2 on [0, 0.618]: 2^-59 of tan(r) / r */
    double even = 9.841258634566605428e-6;
    even = LG_FMA_F64(even, square, 0.00004905839895049582662);
    even = LG_FMA_F64(even, square, 0.0000676649608894458151);
    even = LG_FMA_F64(even, square, 0.0002438569656347027715);
    even = LG_FMA_F64(even, square, 0.001456052243203187349);
    even = LG_FMA_F64(even, square, 0.008863238024699748597);
    even = LG_FMA_F64(even, square, 0.05396825397316338276);
    even = LG_FMA_F64(even, square, 0.3333333333333338477);
    double odd = -0.00002447307852540643719;
    odd = LG_FMA_F64(odd, square, -0.00002616603518866149654);
    odd = LG_FMA_F64(odd, square, 0.00008330241438748781007);
    odd = LG_FMA_F64(odd, square, 0.0005888331319550555676);
    odd = LG_FMA_F64(odd, square, 0.003592099877733328336);
    odd = LG_FMA_F64(odd, square, 0.02186948839259311222);
    odd = LG_FMA_F64(odd, square, 0.1333333333332483908);
    double low = a.low + (z > 0x1p-30 ? a.lost * LG_FMA_F64(1.6, z, 1.0) : 0); /* 1 + 1.6 z is near the slope */
    double rest = LG_FMA_F64(a.r * z, LG_FMA_F64(odd, z, even), low);
    double t = a.r + rest, cot = -1 / t;
    cot = LG_FMA_F64(cot * cot, (a.r - t) + rest, cot); /* with what rounding took from t */
    t = (a.n_bits & 1) ? cot : t;
    return lg_from_bits_f64(lg_bits_f64(t) ^ (lg_bits_f64(x) & LG_SIGN_F64));
}

/* ---- inverses of the trigonometric functions ------------------------------------------------------------------ */

#define LG_HALF_PI_F64 0x1.921fb54442d18p0
#define LG_HALF_PI_LOW_F64 0x1.1a62633145c07p-54

typedef struct {
    double s, rest; /* asin(s) = s + rest, where s is a, or beyond 0.55 the square root of (1 - a) / 2 */
    int far;
} lg_reduced_asin_f64;

/* Of a = |x| <= 1; asin(a) = pi/2 - 2 asin(s) beyond 0.55 */
LG_INLINE lg_reduced_asin_f64 lg_reduce_asin_f64(double a) {
    int far = a > 0.55;
    double z = far ? 0.5 * (1 - a) : a * a;
    double s = far ? sqrt(z) : a, square = z * z;
    /* (asin(s) - s) / s^3 in z = s^2 on [0, 0.3026]: 2^-59 of asin(s) / s */
    double even = -0.0624473168130057333;
    even = LG_FMA_F64(even, square, -0.01439690470878104084);
    even = LG_FMA_F64(even, square, 0.008398675197369955353);
    even = LG_FMA_F64(even, square, 0.01394335027274346089);
    even = LG_FMA_F64(even, square, 0.02237207894786559765);
    even = LG_FMA_F64(even, square, 0.04464285709291210736);
    even = LG_FMA_F64(even, square, 0.1666666666666650368);
    double odd = 0.05296845491981918677;
    odd = LG_FMA_F64(odd, square, 0.05530091213625299762);
    odd = LG_FMA_F64(odd, square, 0.01489140145276228732);
    odd = LG_FMA_F64(odd, square, 0.01175488395783045712);
    odd = LG_FMA_F64(odd, square, 0.01735435686846284371);
    odd = LG_FMA_F64(odd, square, 0.03038194704638784979);
    odd = LG_FMA_F64(odd, square, 0.07500000000048314567);
    return (lg_reduced_asin_f64){s, s * z * LG_FMA_F64(odd, z, even), far};
}

LG_INLINE double lg_asin_f64(double x) {
    lg_reduced_asin_f64 a = lg_reduce_asin_f64(lg_abs_f64(x));
    double y = a.s + a.rest;
    return lg_copysign_f64(a.far ? LG_HALF_PI_F64 - (2 * y - LG_HALF_PI_LOW_F64) : y, x);
}

LG_INLINE double lg_acos_f64(double x) {
    lg_reduced_asin_f64 a = lg_reduce_asin_f64(lg_abs_f64(x));
    double near = LG_HALF_PI_F64 - (lg_copysign_f64(a.s, x) + (lg_copysign_f64(a.rest, x) - LG_HALF_PI_LOW_F64));
    double far = 2 * (a.s + a.rest);
    far = x < 0 ? 2 * LG_HALF_PI_F64 - (far - 2 * LG_HALF_PI_LOW_F64) : far;
    return a.far ? far : near;
}

/* atan(up / right) of what is not negative is atan(t) + 0, pi/4 or pi/2, |t| <= tan(pi/8), where t is
   up / right, (up - right) / (up + right) or -right / up: one division, and no rounded quotient goes into another */
LG_INLINE double lg_positive_atan_f64(double up, double right) {
    int mid = up > 0x1.a827999fcef32p-2 * right, far = up > 0x1.3504f333f9de6p1 * right;
    double t = (far ? -right : mid ? up - right : up) / (far ? up : mid ? up + right : right);
    double z = t * t, square = z * z;
    /* (atan(t) - t) / t^3 in z = t^2 on [0, 0.172]: 2^-59 of atan(t) / t */
    double even = -0.01790028450623004242;
    even = LG_FMA_F64(even, square, -0.05039139340862212992);
    even = LG_FMA_F64(even, square, -0.06663102129154626286);
    even = LG_FMA_F64(even, square, -0.09090897768495910693);
    even = LG_FMA_F64(even, square, -0.1428571428022559677);
    even = LG_FMA_F64(even, square, -0.3333333333333320008);
    double odd = 0.03805924987022907086;
    odd = LG_FMA_F64(odd, square, 0.05847863326522680308);
    odd = LG_FMA_F64(odd, square, 0.07692060211667542697);
    odd = LG_FMA_F64(odd, square, 0.1111111078430187213);
    odd = LG_FMA_F64(odd, square, 0.1999999999995404872);
    double share = far ? 1 : mid ? 0.5 : 0;
    double rest = LG_FMA_F64(t * z, LG_FMA_F64(odd, z, even), share * LG_HALF_PI_LOW_F64);
    return share * LG_HALF_PI_F64 + (t + rest);
}

LG_INLINE double lg_atan_f64(double x) { return lg_copysign_f64(lg_positive_atan_f64(lg_abs_f64(x), 1.0), x); }

/* The angle of the point (x, y) */
LG_INLINE double lg_atan2_f64(double y, double x) {
    double up = lg_abs_f64(y), right = lg_abs_f64(x);
    double scale = ((up > 0x1p1000) | (right > 0x1p1000)) ? 0.25 : 1; /* or the sum overflows */
    int corner = (up == right) & ((up == 0) | (up == INFINITY));     /* 0 / 0 is taken for 0, inf / inf for 1 */
    up = corner ? (up == 0 ? 0 : 1) : up * scale;
    right = corner ? 1 : right * scale;
    double angle = lg_positive_atan_f64(up, right);
    angle = lg_bits_f64(x) >> 63 ? 2 * LG_HALF_PI_F64 - (angle - 2 * LG_HALF_PI_LOW_F64) : angle;
    return lg_copysign_f64(angle, y);
}

/* ---- powers --------------------------------------------------------------------------------------------------- */

/* |x|^y = 2^(y log2 |x|), the logarithm in two parts, since y makes its error up to 1024 times as large. An exact fma
   takes the low part of each product; nothing else is contracted into one (Muller, 11.3; Dekker, 1971). */
LG_INLINE double lg_pow_magnitude_f64(double a, double y) {
    lg_reduced_log_f64 l = lg_reduce_log_f64(a);
    double sum = 2 + l.f, inverse = 1 / sum;
    double s = l.f * inverse;
    double s_low = (__builtin_fma(-s, sum, l.f) - s * (l.f - (sum - 2))) * inverse;
    double z = s * s, z_low = __builtin_fma(s, s, -z) + 2 * s * s_low;
    double cube = s * z, cube_low = __builtin_fma(s, z, -cube) + (s * z_low + s_low * z);
    /* (2 atanh(s) / s - 2 - 2 z / 3) / z^2, z = s^2, on [0, 0.0297]: 2^-71 */
    double q = 0.1191174466026776371;
    q = LG_FMA_F64(q, z, 0.1168496531944277288);
    q = LG_FMA_F64(q, z, 0.1333576759919624777);
    q = LG_FMA_F64(q, z, 0.1538457269455754036);
    q = LG_FMA_F64(q, z, 0.1818181861155408761);
    q = LG_FMA_F64(q, z, 0.2222222221990945743);
    q = LG_FMA_F64(q, z, 0.2857142857143402734);
    q = LG_FMA_F64(q, z, 0.3999999999999999722);
    double log = __builtin_fma(cube, 0x1.5555555555555p-1, 2 * s);
    double log_low = __builtin_fma(cube, 0x1.5555555555555p-1, 2 * s - log) + cube * 0x1.5555555555555p-55;
    log_low += 2 * s_low + cube_low * 0x1.5555555555555p-1 + cube * z * q;
    double log2 = __builtin_fma(log, 0x1.71547652b82fep0, l.e);
    double log2_low = __builtin_fma(log, 0x1.71547652b82fep0, l.e - log2);
    log2_low += log * 0x1.777d0ffda0d24p-56 + log_low * 0x1.71547652b82fep0;
    log2 = a == 0 ? -INFINITY : a < INFINITY ? log2 : a;
    double power = y * log2;
    int far = lg_abs_f64(power) > 1100;
    double near = far ? 0 : power, shifted = near + LG_ROUND_F64;
    double r = __builtin_fma(y, log2, LG_ROUND_F64 - shifted) + y * log2_low;
    r *= 0x1.62e42fefa39efp-1;
    double result = lg_scale_f64(1 + (r + lg_exp_rest_f64(r)), lg_bits_f64(shifted));
    return far ? (power > 0 ? INFINITY : 0) : result;
}

LG_INLINE double lg_pow_f64(double x, double y) {
    double a = lg_abs_f64(x);
    double result = lg_pow_magnitude_f64(a, y);
    int whole = __builtin_rint(y) == y;
    int odd = whole & (__builtin_rint(0.5 * y) != 0.5 * y);
    result = odd ? lg_copysign_f64(result, x) : result;
    result = ((x < 0) & (a < INFINITY) & !whole) ? NAN : result;
    int one = (y == 0) | (x == 1) | ((x == -1) & (lg_abs_f64(y) == INFINITY));
    return one ? 1 : result;
}

LG_INLINE double lg_hypot_f64(double x, double y) {
    x = lg_abs_f64(x);
    y = lg_abs_f64(y);
    double large = x > y ? x : y, small = x > y ? y : x;
    double ratio = large == 0 ? 0 : small / large;
    double length = large * sqrt(LG_FMA_F64(ratio, ratio, 1.0));
    length = ((x != x) | (y != y)) ? NAN : length;
    return ((x == INFINITY) | (y == INFINITY)) ? INFINITY : length;
}

#endif
