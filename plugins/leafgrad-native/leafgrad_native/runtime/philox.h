/* Random numbers by a counter: Philox 4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
   3", SC 2011). Any part of a stream can be had on its own; leafgrad.backends.numpy.philox_bernoulli is the same in NumPy. */

#ifndef LG_PHILOX_H
#define LG_PHILOX_H

#include <stdint.h>

#ifdef __SIZEOF_INT128__ /* not on 32-bit processors, where programs that draw do not compile, and NumPy runs them */

/* Eight 32-bit numbers: those of one counter. */
static inline void lg_philox(uint64_t key, uint64_t counter, uint32_t *out) {
    uint64_t a = counter, b = 0, c = 0, d = 0, k = key, l = 0;
    for (int round = 0; round < 10; round++) {
        const unsigned __int128 x = (unsigned __int128)a * 0xD2E7470EE14C6C93u;
        const unsigned __int128 y = (unsigned __int128)c * 0xCA5A826395121157u;
        a = (uint64_t)(y >> 64) ^ b ^ k;
        b = (uint64_t)y;
        c = (uint64_t)(x >> 64) ^ d ^ l;
        d = (uint64_t)x;
        k += 0x9E3779B97F4A7C15u;
        l += 0xBB67AE8584CAA73Bu;
    }
    const uint64_t words[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        out[2 * i] = (uint32_t)words[i];
        out[2 * i + 1] = (uint32_t)(words[i] >> 32);
    }
}

/* Elements first to first + count of an array of zeros and ones, each 1 where the upper 24 bits of its number are below
   `bound`. Element e goes to out[e % lanes * step + e / lanes], counted from the row that `first` begins. */
#define LG_COINS(kind, type)                                                                                        \
    static inline void lg_bernoulli_##kind(type *out, uint64_t key, uint32_t bound, long first, long count, long lanes, \
                                       long step) {                                                                 \
        uint32_t found[8];                                                                                          \
        long lane = 0, row = 0;                                                                                     \
        for (long e = first, end = first + count; e < end;) {                                                       \
            lg_philox(key, (uint64_t)e / 8 + 1, found);                                                             \
            for (long i = e % 8; i < 8 && e < end; i++, e++) {                                                      \
                out[lane * step + row] = (type)(found[i] >> 8 < bound);                                             \
                if (++lane == lanes) { lane = 0; row++; }                                                           \
            }                                                                                                       \
        }                                                                                                           \
    }
LG_COINS(f32, float)
LG_COINS(f64, double)

#endif
#endif
