/* pow(x, 2.0) and pow(x, 0.5) in lanes, with libm's bits.

   r, which is x * x or the square root of x, is the double nearest to the exact result. libm's pow may return another
   one, whose distance from the exact result is at most BOUND units in the last place of r. If r's own distance is below
   1 - BOUND, every other double is too far, so pow returns r. A fused multiply-add gives that distance. Other lanes call
   libm: those near the middle of two doubles, powers of two, where the unit changes, and numbers outside a range.

   Example with BOUND 0.52: the exact result is 0.47 units above r, and 0.53 below the next double. pow returns r.

   In glibc from 2.28 on, pow computes exp(y * log(x)) with an error of 0.511 units from exp, and 1.5 * 2^-68 relative to
   the logarithm. While |y * log(x)| <= 89, that is at most 0.5152 units. */

#if LANES > 1
typedef double lanes __attribute__((vector_size(8 * LANES)));
typedef long long bits __attribute__((vector_size(8 * LANES)));
typedef lanes in_memory __attribute__((aligned(8), may_alias));
#define AT(place) (*(in_memory *)(place))
#endif

static long long libm_is_known, left_to_libm __attribute__((unused));

#define square(x) pow(x, 2.0)
#define root(x) pow(x, 0.5)

#if LANES > 1
#define BOUND 0.515625
#define EXPONENT 0x7ff0000000000000LL
#define FRACTION 0x000fffffffffffffLL
static const double smallest = 0x1p-128, largest = 0x1p128;

static __attribute__((noinline, unused)) lanes by_libm(lanes x, double y, lanes r, bits unsure)
{
    for (int lane = 0; lane < LANES; lane++)
        if (unsure[lane]) {
            r[lane] = pow(x[lane], y);
            left_to_libm++;
        }
    return r;
}

static inline int any(bits is)
{
    long long found = 0;
    for (int lane = 0; lane < LANES; lane++)
        found |= is[lane];
    return found != 0;
}

#if defined(__FMA__) && defined(__x86_64__)
/* r = x * x: exact minus r. */
static inline lanes error_of_square(lanes x, lanes r)
{
    lanes e = x;
    __asm__("vfmsub213pd %2, %1, %0" : "+v"(e) : "v"(x), "v"(r));
    return e;
}

/* x - r * r. */
static inline lanes error_of_root(lanes x, lanes r)
{
    lanes e = r;
    __asm__("vfnmadd213pd %2, %1, %0" : "+v"(e) : "v"(r), "v"(x));
    return e;
}

static inline lanes magnitude(lanes x)
{
    return (lanes)((bits)x & 0x7fffffffffffffffLL);
}

/* Half the distance from r to the next larger double, times 2. */
static inline lanes unit(lanes r)
{
    return (lanes)((bits)r & EXPONENT) * 0x1p-52;
}

static inline __attribute__((unused)) lanes square_lanes(lanes x)
{
    const lanes r = x * x, e = magnitude(error_of_square(x, r));
    const bits near = e < unit(r) * (1.0 - BOUND), plain = ((bits)r & FRACTION) != 0;
    const bits sure = (near & plain & (r > smallest) & (r < largest) & -libm_is_known) | (x == 0.0);
    return any(~sure) ? by_libm(x, 2.0, r, ~sure) : r;
}

static inline __attribute__((unused)) lanes root_lanes(lanes x)
{
    lanes r;
    __asm__("vsqrtpd %1, %0" : "=v"(r) : "v"(x));
    /* The root of x is r + e / (2 * r), up to a relative error of 2^-53. BOUND has room for it. */
    const lanes e = magnitude(error_of_root(x, r));
    const bits near = e < unit(r) * (2.0 - 2.0 * BOUND) * r, plain = ((bits)r & FRACTION) != 0;
    const bits sure = (near & plain & (x > smallest) & (x < largest) & -libm_is_known) | ((bits)x == 0);
    return any(~sure) ? by_libm(x, 0.5, r, ~sure) : r;
}
#else
static inline __attribute__((unused)) lanes square_lanes(lanes x)
{
    return by_libm(x, 2.0, x, (x == x) | (x != x));
}

static inline __attribute__((unused)) lanes root_lanes(lanes x)
{
    return by_libm(x, 0.5, x, (x == x) | (x != x));
}
#endif
#endif
