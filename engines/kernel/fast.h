/* exp, tanh, and powers with constant multiples of 1/2 from -8 to 8, for engines that do not promise libm's bits.
   `machine/libm/fast.py` computes the same, and explains the method.

   They have no branches, and with SSE4.1 or later no calls, so compilers compute them in vectors. */

#define FAST static inline __attribute__((always_inline, unused))

FAST double fast_pow(double x, double y)
{
    const double size = y < 0.0 ? -y : y;
    double result = size == (int)size ? 1.0 : __builtin_sqrt(x);
    for (int power = 1; power <= size; power++)
        result *= x;
    return y < 0.0 ? 1.0 / result : result;
}
#define IS_FAST(y) (__builtin_constant_p(y) && (y) >= -8.0 && (y) <= 8.0 && 2.0 * (y) == (int)(2.0 * (y)))
#define pow(x, y) (IS_FAST(y) ? fast_pow(x, y) : pow(x, y))

/* exp(x) = power * (1 + rest). The first term that the polynomial lacks is r^13 / 13!, below 2^-52. */
struct exponential {
    double power, rest;
};

FAST struct exponential exponential(double x)
{
    static const double terms[] = {1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040,
                                   1. / 720,       1. / 120,      1. / 24,      1. / 6,      1. / 2,     1.};
    const double n = __builtin_rint(x * 0x1.71547652b82fep0), r = x - n * 0x1.62e42fefa39efp-1;
    const long long bits = (1023LL + (int)n) << 52;
    struct exponential result = {0.0, 0.0};
    for (int k = 0; k < 12; k++)
        result.rest = (result.rest + terms[k]) * r;
    __builtin_memcpy(&result.power, &bits, sizeof bits);
    return result;
}

/* log(2) is rounded, so the relative error grows with |x|, to 1e-13. Below -708 the result is 0, where libm's is at most
   3.4e-308. Above 709.4 it is infinite, as libm's is from 709.79. */
FAST double fast_exp(double x)
{
    const struct exponential e = exponential(x >= -708.0 && x <= 709.4 ? x : 0.0); /* NaN fits no int */
    return x < -708.0 ? 0.0 : x <= 709.4 ? e.power * e.rest + e.power : x + __builtin_inf(); /* NaN stays NaN */
}
#define exp fast_exp

FAST double fast_tanh(double x)
{
    const struct exponential e = exponential(x > 20.0 ? 40.0 : x >= -20.0 ? 2.0 * x : -40.0);
    const double minus_one = e.power * e.rest + (e.power - 1.0);
    return x == x ? minus_one / (minus_one + 2.0) : x;
}
#define tanh fast_tanh
