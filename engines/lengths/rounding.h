/* pow(x, 2.0), pow(x, 0.5) and x / divisor in lanes, with the bits of libm and of the processor's division.

   Each function is quick, and right for nearly every lane. Lanes that it can't vouch for are marked `unsure`; the
   caller computes them again, one by one. If KEEPS_BITS is 0, last bits may differ: no lane is unsure, and operations
   that would only decide those bits are left out.

   Powers. r, which is x * x or the square root of x, is the double nearest to the exact result, or nearly (see `root`).
   libm's pow may return its neighbour `other`, but only if the exact result is near the middle of the two. A fused
   multiply-add gives e, the exact result minus r. Adding WIDER * e to r gives the neighbour if e is near half a unit in
   the last place, and r itself otherwise. So pow returns r or other, and these are different doubles for one lane in
   thirty. Even then, most expressions have the same bits for both, because they round: 0.99 * v + 0.01 * r does, if v
   is the larger.

   Example with WIDER 1.03: the exact result is 0.47 units above r. 1.03 * 0.47 < 0.5, so other is r.
   With 0.49 units, other is the next larger double.

   In glibc from 2.28 on, pow computes exp(y * log(x)) with an error of 0.511 units from exp, and 1.5 * 2^-68 relative to
   the logarithm. |y * log(x)|, the logarithm of r, is at most 89 within the range of a square, and 45 within that of a
   root. So the error is at most 0.51507 and 0.51307 units, of which the last rounding makes 0.5. The neighbour can be the
   result only if e is at least 1 - 0.51507 units, and then WIDER * e is at least half a unit.

   If r is a power of two, the doubles below it are half as far apart as those above. The sum rounds there as it should,
   and the bound holds for units of either size, because it is for the smallest unit: results just below a power of two.
   Few numbers have such a result, and `tests/engines/lengths` compares all of them. */

#if LANES > 1 && defined(__FMA__) && defined(__x86_64__) && (LANES <= 4 || defined(__AVX512F__))
#define IN_LANES
#define WIDER 1.032 /* above 0.5 / (1 - 0.51507) */

typedef double lanes __attribute__((vector_size(8 * LANES)));
typedef long long bits __attribute__((vector_size(8 * LANES)));
typedef unsigned long long naturals __attribute__((vector_size(8 * LANES)));
typedef lanes in_memory __attribute__((aligned(8), may_alias));
#define AT(place) (*(in_memory *)(place))

/* a * b + c, a * b - c and c - a * b, rounded once. The flags keep the compiler from fusing these itself. */
#define FUSED(name, instruction)                                                                                       \
    static inline __attribute__((unused)) lanes name(lanes a, lanes b, lanes c)                                        \
    {                                                                                                                  \
        __asm__(instruction " %2, %1, %0" : "+v"(a) : "v"(b), "v"(c));                                                 \
        return a;                                                                                                      \
    }
FUSED(product_plus, "vfmadd213pd")
FUSED(product_minus, "vfmsub213pd")
FUSED(minus_product, "vfnmadd213pd")

static inline lanes all(double number)
{
    return number - (lanes){0.0};
}

/* A bit for each lane that is not 0. */
static inline __attribute__((unused)) unsigned marked(bits is)
{
#if LANES == 8 && defined(__AVX512DQ__)
    unsigned char mask;
    __asm__("vptestmq %1, %1, %0" : "=Yk"(mask) : "v"(is));
    return mask;
#elif LANES == 8
    unsigned mask = 0;
    for (int lane = 0; lane < LANES; lane++)
        mask |= (unsigned)(is[lane] != 0) << lane;
    return mask;
#else
    unsigned mask;
    __asm__("vmovmskpd %1, %0" : "=r"(mask) : "x"(is != 0));
    return mask;
#endif
}

/* Whether any lane is not 0. From plain C, compilers go through a vector mask instead. */
static inline __attribute__((unused)) int any(bits is)
{
    int any;
#if LANES == 8 && defined(__AVX512DQ__)
    __asm__("vptestmq %1, %1, %%k1\n\tkortestb %%k1, %%k1" : "=@ccnz"(any) : "v"(is) : "k1");
#elif LANES == 8
    any = marked(is) != 0;
#else
    __asm__("vptest %1, %1" : "=@ccnz"(any) : "x"(is));
#endif
    return __builtin_expect(any, 0);
}

/* The marked lanes of `left`, the others of `right`. */
static inline __attribute__((unused)) lanes chosen(bits is, lanes left, lanes right)
{
    const bits mask = is != 0;
    return (lanes)(((bits)left & mask) | ((bits)right & ~mask));
}

/* Marks numbers other than 0 below 2^-(exponents / 2), or from 2^(exponents / 2) on. exponents: a power of two.

   Without the sign, and less the smallest, a number of the range has empty upper bits. */
static inline __attribute__((unused)) bits outside(lanes x, unsigned long long exponents)
{
    const naturals digits = (naturals)x + (naturals)x;
    const naturals above = digits - ((1023 - exponents / 2) << 53);
    return (bits)(above & (naturals)(digits != 0) & -(exponents << 53));
}

/* x: in the range of 128 exponents. */
static inline __attribute__((unused)) lanes square(lanes x, lanes *other)
{
    const lanes r = x * x;
    *other = product_plus(product_minus(x, x, r), all(WIDER), r);
    return r;
}

/* x: in the range of 256 exponents.

   The root is r + (x - r * r) * h, where h is nearly 1 / (2 * r). So r need not be the double nearest to the root: if it
   is within 0.51 units, `other` is the only other double that libm may return.

   For lanes of eight, AVX-512 has an estimate of 1 / sqrt(x), with a relative error of at most 2^-14. Two steps of
   Newton's method reduce the error of g to 2^-27 and 2^-53. A third gives r, within 0.51 units. These eleven operations
   take half the time of the processor's root. Adding 2^-1022 keeps the estimate for 0 finite, and changes no x from
   2^-969 on. Adding 0.0 turns -0.0 into 0.0, which is what pow returns.

   In narrower lanes, r is the processor's root. Subtracting its bits from a constant gives c / r for c = 0.717 with an
   error of at most 1.51 %. One step of Newton's method makes this c * c / r, which is 0.5142 / r, with an error of at
   most 0.023 %. */
static inline __attribute__((unused)) lanes root(lanes x, lanes *other)
{
    lanes r, wider_h; /* wider_h: h, times a number above 0.5 / (1 - 0.51307), which is 1.02684 */
#if LANES == 8
    lanes estimate;
    __asm__("vrsqrt14pd %1, %0" : "=v"(estimate) : "v"(x + 0x1p-1022));
    lanes g = product_plus(x, estimate, all(0.0)), h = 0.5 * estimate;
    const lanes lack = minus_product(g, h, all(0.5));
    g = product_plus(g, lack, g);
    h = product_plus(h, lack, h);
    g = product_plus(minus_product(g, g, x), h, g);
    if (KEEPS_BITS)
        r = product_plus(minus_product(g, g, x), h, g);
    else
        r = chosen((bits)(x <= __DBL_MAX__), g, x); /* infinity is its own root */
    wider_h = 1.027 * h;
#else
    __asm__("vsqrtpd %1, %0" : "=v"(r) : "v"(x));
    const lanes guess = (lanes)(0x7fd69a437ff7a1b8 - (bits)r);
    wider_h = guess * minus_product(r, guess, all(1.4342245291445828));
#endif
    *other = product_plus(minus_product(r, r, x), wider_h, r);
    return r;
}

/* A number that divides all lanes. */
struct divisor {
    double number;
    enum { IS_ONE, DIVIDES, HAS_INVERSE } kind;
    double below, rest; /* below + rest is nearly 1 / number; below is the largest double up to it, so rest >= 0 */
    double nearest;     /* to 1 / number */
};

static inline __attribute__((unused)) struct divisor divisor(double number)
{
    struct divisor d = {number, number == 1.0 ? IS_ONE : DIVIDES, 0.0, 0.0, 0.0};
    union {
        double number;
        long long bits;
    } digits = {number}, below;
    /* Up to 1, so that no quotient of a number other than 0 is 0. See `over` for the last digits. */
    if (!(number >= 0x1p-60 && number < 1.0) || (digits.bits & 0x000fffffffffffff) > 0x000ffffffffffff8)
        return d;
    d.kind = HAS_INVERSE;
    below.number = d.nearest = 1.0 / number;
    below.bits -= minus_product(all(number), all(d.nearest), all(1.0))[0] < 0.0;
    d.below = below.number;
    d.rest = minus_product(all(number), all(d.below), all(1.0))[0] / number;
    return d;
}

/* x / d, if the quotient is 0 or in the range of 1024 exponents. If it is not, the result is neither.

   Dividing by 1.0 changes nothing, and Adam's divisors become 1.0. Otherwise, four operations take half the time of a
   division. The first two give q, within half a unit in the last place of x / d, and 2^-51 units. The third gives what
   is left, x - q * d, without an error. The last adds that, divided by d, to q, and rounds once. (Markstein,
   "Computation of elementary functions on the IBM RISC System/6000 processor", 1990.)

   The sum before it is rounded has an error only from `nearest`. Let D be the digits of d as a whole number below 2^53.
   `nearest` has a relative error of at most D * 2^-106, so the sum's is at most (1/2 + 2^-51) * D * 2^-106 units. The
   distance of a quotient of two doubles from the middle of two doubles is a multiple of 1 / (2 * D) units, and not 0.
   For D <= 2^53 - 8 that is more, so the sum rounds as the exact quotient does.

   The signs of the products are such that -0.0 stays -0.0. */
static inline __attribute__((unused)) lanes over_in_range(lanes x, const struct divisor *d)
{
    if (d->kind == IS_ONE)
        return x;
    if (d->kind == DIVIDES)
        return x / d->number;
    if (!KEEPS_BITS)
        return x * d->nearest;
    const lanes q = product_plus(x, all(d->below), x * d->rest);
    const lanes excess = product_minus(all(d->number), q, x);
    return minus_product(excess, all(d->nearest), q);
}

/* x / d. Marks lanes whose quotient may be wrong. */
static inline __attribute__((unused)) lanes over(lanes x, const struct divisor *d, bits *unsure)
{
    const lanes q = over_in_range(x, d);
    if (d->kind == HAS_INVERSE)
        *unsure |= outside(q, 1024);
    return q;
}
#endif
