/* exp(x), and pow(x, y) for some constant y, for engines that do not promise libm's bits.

   They have no branches, and with SSE4.1 or later no calls, so compilers compute them in vectors. */

#define FAST static inline __attribute__((always_inline, unused))

FAST double fast_pow(double x, double y)
{
    return y == 2.0    ? x * x
           : y == 0.5  ? __builtin_sqrt(x)
           : y == -1.0 ? 1.0 / x
           : y == -0.5 ? 1.0 / __builtin_sqrt(x)
           : y == -2.0 ? 1.0 / (x * x)
                       : 1.0 / (x * __builtin_sqrt(x));
}
#define IS_FAST(y)                                                                                                     \
    (__builtin_constant_p(y) && ((y) == 2.0 || (y) == 0.5 || (y) == -1.0 || (y) == -0.5 || (y) == -2.0 || (y) == -1.5))
#define pow(x, y) (IS_FAST(y) ? fast_pow(x, y) : pow(x, y))

/* exp(x) = 2^n * exp(r), where n is the whole number nearest to x / log(2), so |r| is at most 0.35. The first term that
   the polynomial lacks is r^13 / 13!, below 2^-52. log(2) is rounded, so the relative error grows with |x|, to 1e-13.
   Below -708 the result is 0, where libm's is at most 3.4e-308. Above 709 it is infinite, as libm's is from 709.79. */
FAST double fast_exp(double x)
{
    static const double terms[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                   1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,     1.0 / 6,
                                   1.0 / 2,         1.0,            1.0};
    const double bounded = x >= -708.0 && x <= 709.0 ? x : 0.0; /* also for NaN, for which there is no int */
    const double n = __builtin_rint(bounded * 0x1.71547652b82fep0), r = bounded - n * 0x1.62e42fefa39efp-1;
    double sum = 0.0;
    for (int k = 0; k < 13; k++)
        sum = sum * r + terms[k];
    const union {
        long long bits;
        double number;
    } power = {(1023LL + (int)n) << 52};
    return x < -708.0 ? 0.0 : x <= 709.0 ? sum * power.number : x + __builtin_inf(); /* NaN stays NaN */
}
#define exp fast_exp
