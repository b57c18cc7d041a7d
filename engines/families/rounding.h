/* pow(x, 2.0) and pow(x, 0.5) for many x, with libm's bits.

   r, which is x * x or the square root of x, is the double nearest to the exact result. libm's pow may return another
   one, whose distance from the exact result is at most BOUND units in the last place of r. If r's own distance is below
   1 - BOUND, every other double is too far, so pow returns r. A fused multiply-add gives that distance. The others call
   libm: those near the middle of two doubles, powers of two, where the unit changes, and numbers outside a range.

   Example with BOUND 0.52: the exact result is 0.47 units above r, and 0.53 below the next double. pow returns r.

   In glibc from 2.28 on, pow computes exp(y * log(x)) with an error of 0.511 units from exp, and 1.5 * 2^-68 relative to
   the logarithm. While |y * log(x)|, the logarithm of r, is at most 45, that is at most 0.51307 units. */

enum { BLOCK = 512 }; /* most numbers of a call */

static long long libm_is_known, left_to_libm;

#if LANES > 1
typedef double lanes __attribute__((vector_size(8 * LANES)));
typedef long long bits __attribute__((vector_size(8 * LANES)));
typedef lanes in_memory __attribute__((aligned(8), may_alias));
#define AT(place) (*(in_memory *)(place))
#endif

#if LANES > 1 && defined(__FMA__) && defined(__x86_64__)
#define BOUND 0.5131
static const double smallest = 0x1p-64, largest = 0x1p64;

/* A bit for each lane that is all ones; the others are 0. */
static inline unsigned bits_of(bits is)
{
#if LANES == 8 && defined(__AVX512DQ__)
    unsigned char found;
    __asm__("vpmovq2m %1, %0" : "=Yk"(found) : "v"(is));
    return found;
#elif LANES < 8
    unsigned found;
    __asm__("vmovmskpd %1, %0" : "=r"(found) : "x"(is));
    return found;
#else
    unsigned found = 0;
    for (int lane = 0; lane < LANES; lane++)
        found |= (unsigned)(is[lane] & 1) << lane;
    return found;
#endif
}

/* The unit in the last place of r: the distance to the next larger double. */
static inline lanes unit(lanes r)
{
    return (lanes)((bits)r & 0x7ff0000000000000LL) * 0x1p-52;
}

/* The lanes that must call libm. e: the error of r, and its limit. */
static inline unsigned unsure(lanes x, lanes r, lanes e, lanes limit)
{
    const lanes distance = (lanes)((bits)e & 0x7fffffffffffffffLL);
    const bits is_between_powers = ((bits)r & 0x000fffffffffffffLL) != 0;
    const bits is_sure = (distance < limit) & is_between_powers & (r > smallest) & (r < largest);
    return bits_of(~((is_sure & -libm_is_known) | ((bits)x == 0)));
}

static inline unsigned square(const double *x, double *y)
{
    const lanes a = AT(x), r = a * a;
    lanes e = a;
    __asm__("vfmsub213pd %2, %1, %0" : "+v"(e) : "v"(a), "v"(r)); /* a * a - r */
    AT(y) = r;
    return unsure(a, r, e, unit(r) * (1.0 - BOUND));
}

static inline unsigned root(const double *x, double *y)
{
    const lanes a = AT(x);
    lanes r, e;
    __asm__("vsqrtpd %1, %0" : "=v"(r) : "v"(a));
    e = r;
    __asm__("vfnmadd213pd %2, %1, %0" : "+v"(e) : "v"(r), "v"(a)); /* a - r * r */
    AT(y) = r;
    /* The root is r + e / (2 * r), up to a relative error of 2^-53. BOUND has room for it. */
    return unsure(a, r, e, unit(r) * (2.0 - 2.0 * BOUND) * r);
}

/* Without a branch for the first lane of a vector, which no processor could predict, calls overlap. */
#define POWERS(in_lanes, exponent)                                                                                     \
    int left[BLOCK + 1], lefts = 0;                                                                                    \
    long long i = 0;                                                                                                   \
    for (; i + LANES <= count; i += LANES) {                                                                           \
        unsigned its = in_lanes(x + i, y + i);                                                                         \
        left[lefts] = (int)i + __builtin_ctz(its | 1U << LANES);                                                       \
        lefts += its != 0;                                                                                             \
        while (its &= its - 1)                                                                                                \
            left[lefts++] = (int)i + __builtin_ctz(its);                                                               \
    }                                                                                                                  \
    left_to_libm += lefts;                                                                                             \
    for (int n = 0; n < lefts; n++)                                                                                    \
        y[left[n]] = pow(x[left[n]], exponent);                                                                        \
    for (; i < count; i++)                                                                                             \
        y[i] = pow(x[i], exponent);
#else
#define POWERS(in_lanes, exponent)                                                                                     \
    left_to_libm += count;                                                                                             \
    for (long long i = 0; i < count; i++)                                                                              \
        y[i] = pow(x[i], exponent);
#endif

static __attribute__((unused)) void squares(const double *restrict x, double *restrict y, long long count)
{
    POWERS(square, 2.0)
}

static __attribute__((unused)) void roots(const double *restrict x, double *restrict y, long long count)
{
    POWERS(root, 0.5)
}
