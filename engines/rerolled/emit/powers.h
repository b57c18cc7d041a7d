/* pow(x, y) with libm's bits for whole y from 1 to 8 (polynomials, squared errors), -1 (divisions) and -2 (their
   derivatives).

   A result is first the sum of two doubles, head and tail, with a relative error below 2^-100. If
   head + (tail - margin) and head + (tail + margin) round to the same double, and libm errs by no more than the margin
   beyond its last rounding, then libm returns this double. Otherwise libm computes it: in one call of 25.

   Example: the exact result is 0.48 units in the last place above a double. A margin of 0.0152 units changes nothing,
   so this double is the result. At 0.49 units, libm may return the next larger double.

   This file is included only if `machine/libm/powers.powers_match_libm` says so: libm is glibc 2.28 or later, and agrees on
   96 random numbers for each exponent.

   `lengths/lanes.py` derives an error of at most 0.51507 units for pow in glibc from 2.28 on, if |y * log(x)| is at
   most 89, as it is here for results from 2^-128 to 2^128. The last rounding makes 0.5 of them. The margin is a
   fraction of the head, which is at least 2^52 units, so it is at least 0.0152 units. That leaves 0.0001 units for the
   error of head + tail, which is far less. */

#if defined(__FMA__) && defined(__x86_64__) && defined(__linux__)
#define MARGIN (0.0152 * 0x1p-52)

struct pair {
    double head, tail;
};

/* 1 / x */
INLINE struct pair inverse(double x)
{
    const double r = 1.0 / x;
    return (struct pair){r, r * __builtin_fma(-x, r, 1.0)};
}

INLINE struct pair square(struct pair a)
{
    const double head = a.head * a.head;
    const double rest = __builtin_fma(a.head, a.tail, a.tail * a.head);
    return (struct pair){head, __builtin_fma(a.head, a.head, -head) + rest};
}

INLINE struct pair times(struct pair a, double x)
{
    const double head = a.head * x;
    return (struct pair){head, __builtin_fma(a.head, x, -head) + a.tail * x};
}

INLINE double rounded_pow(double x, double y)
{
    if (y == 1.0)
        return x; /* the exact result: libm errs by far less than half a unit before it rounds */
    const struct pair itself = {x, 0.0};
    struct pair result = y > 0.0 ? square(itself) : y == -1.0 ? inverse(x) : square(inverse(x));
    for (int power = 2; power < y; power++)
        result = times(result, x);
    const double low = result.head + __builtin_fma(-result.head, MARGIN, result.tail);
    const double high = result.head + __builtin_fma(result.head, MARGIN, result.tail);
    const double size = __builtin_fabs(low);
    const int is_sure = low == high && size >= 0x1p-128 && size <= 0x1p128;
    return __builtin_expect(is_sure, 1) ? low : pow(x, y);
}

#define IS_ROUNDED(y)                                                                                                  \
    (__builtin_constant_p(y) && ((y) == -1.0 || (y) == -2.0 || ((y) >= 1.0 && (y) <= 8.0 && (y) == (int)(y))))
#define pow(x, y) (IS_ROUNDED(y) ? rounded_pow(x, y) : pow(x, y))
#endif
