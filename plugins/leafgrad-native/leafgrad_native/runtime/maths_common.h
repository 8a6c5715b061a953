/* What reads the same in both precisions: included by maths.h once for each, with
   LG_REAL the type, LG_NAME(f) the name of our f, and LG_C(f) the name of the C library's. No include guard. */

LG_INLINE LG_REAL LG_NAME(sqrt)(LG_REAL x) { return LG_C(sqrt)(x); }
LG_INLINE LG_REAL LG_NAME(floor)(LG_REAL x) { return LG_C(floor)(x); }
LG_INLINE LG_REAL LG_NAME(ceil)(LG_REAL x) { return LG_C(ceil)(x); }
LG_INLINE LG_REAL LG_NAME(trunc)(LG_REAL x) { return LG_C(trunc)(x); }
LG_INLINE LG_REAL LG_NAME(round)(LG_REAL x) { return LG_C(rint)(x); } /* halves to the even neighbour */

LG_INLINE LG_REAL LG_NAME(sign)(LG_REAL x) {
    LG_REAL y = (LG_REAL)((x > 0) - (x < 0));
    return x != x ? x : y;
}

/* nan if either is, unlike fmax */
LG_INLINE LG_REAL LG_NAME(maximum)(LG_REAL x, LG_REAL y) {
    LG_REAL larger = x > y ? x : y;
    return x != x ? x : larger;
}

LG_INLINE LG_REAL LG_NAME(minimum)(LG_REAL x, LG_REAL y) {
    LG_REAL smaller = x < y ? x : y;
    return x != x ? x : smaller;
}

/* log(exp(x) + exp(y)) without overflow */
LG_INLINE LG_REAL LG_NAME(logaddexp)(LG_REAL x, LG_REAL y) {
    LG_REAL gap = LG_NAME(abs)(x - y);
    gap = x == y ? 0 : gap; /* equal infinities */
    return LG_NAME(maximum)(x, y) + LG_NAME(log1p)(LG_NAME(exp)(-gap));
}

/* log(1 + exp(x)) without overflow */
LG_INLINE LG_REAL LG_NAME(softplus)(LG_REAL x) {
    return LG_NAME(maximum)(x, 0) + LG_NAME(log1p)(LG_NAME(exp)(-LG_NAME(abs)(x)));
}

/* Far out it is no polynomial's: this calls the C library, and is not vectorised. */
LG_INLINE LG_REAL LG_NAME(erfc)(LG_REAL x) { return LG_C(erfc)(x); }

/* Exact remainders need as many steps as the quotient has bits: these call the C library, and are not vectorised. */
LG_INLINE LG_REAL LG_NAME(fmod)(LG_REAL x, LG_REAL y) { return LG_C(fmod)(x, y); }

/* x - y floor(x / y), with the sign of y, as Python's % */
LG_INLINE LG_REAL LG_NAME(remainder)(LG_REAL x, LG_REAL y) {
    LG_REAL rest = LG_C(fmod)(x, y);
    return rest == 0 ? LG_NAME(copysign)(rest, y) : (rest < 0) != (y < 0) ? rest + y : rest;
}

/* floor(x / y) of the exact quotient, as Python's // */
LG_INLINE LG_REAL LG_NAME(floor_divide)(LG_REAL x, LG_REAL y) {
    LG_REAL quotient = x / y, rest = LG_C(fmod)(x, y);
    LG_REAL whole = (x - rest) / y;
    whole = ((rest != 0) & ((rest < 0) != (y < 0))) ? whole - 1 : whole;
    LG_REAL down = LG_C(floor)(whole);
    down = whole - down > (LG_REAL)0.5 ? down + 1 : down;
    down = whole == 0 ? LG_NAME(copysign)(0, quotient) : down;
    return y == 0 ? quotient : down;
}

/* Whether sin, cos and tan of x are wrong, since its multiple of pi/2 was not found exactly. A loop gathers this with |=,
   and what it computed is then computed anew by the C library or NumPy. */
LG_INLINE int LG_NAME(is_far)(LG_REAL x) {
    LG_REAL a = LG_NAME(abs)(x);
    return (a > LG_FAR) & (a < INFINITY);
}
