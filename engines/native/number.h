/* Numbers as Python has them: doubles, NumPy's float64, and ints that a double holds exactly.

   Every function below gives Python's result, or sets `*hard`. Then the caller repeats the whole operation with
   Python's own objects, which give the exact large int, raise the right exception, or warn as NumPy does. Example:
   3 * 4 is the int 12, and 2.0 * 4 the double 8.0; 1 / 0 is hard. */

#include <math.h>
#include <stdint.h>

#define TWO_TO_53 9007199254740992.0 /* a double holds every int below it; a larger int may have rounded to it */

enum { REAL, WHOLE = 1, NUMPY = 2, OBJECT = 4 }; /* kinds of numbers; no function gets an OBJECT, which is elsewhere */

typedef struct {
    double d;
    int kind;
} Number;

static inline Number real(double d) { return (Number){d, REAL}; }

static inline Number whole(double d) { return (Number){d, WHOLE}; }

/* The result of an operator on numbers that are not both ints. kinds: of the operands. */
static inline Number number_mixed(double d, int kinds, int *hard) {
    *hard |= kinds & NUMPY && !isfinite(d);
    return (Number){d, kinds & NUMPY};
}

/* The result of a sum, a difference or a product. An int has no negative zero. */
static inline Number number_ring(double d, Number x, Number y, int *hard) {
    if (!(x.kind & y.kind & WHOLE))
        return number_mixed(d, x.kind | y.kind, hard);
    *hard |= !(fabs(d) < TWO_TO_53);
    return whole(d + 0.0);
}

static inline Number number_add(Number x, Number y, int *hard) { return number_ring(x.d + y.d, x, y, hard); }

static inline Number number_sub(Number x, Number y, int *hard) { return number_ring(x.d - y.d, x, y, hard); }

static inline Number number_mul(Number x, Number y, int *hard) { return number_ring(x.d * y.d, x, y, hard); }

static inline Number number_div(Number x, Number y, int *hard) {
    *hard |= y.d == 0.0;
    return number_mixed(x.d / y.d, x.kind | y.kind, hard);
}

static inline Number number_less(Number x, Number y) { return whole(x.d < y.d); }

static inline Number number_greater(Number x, Number y) { return whole(x.d > y.d); }

static inline Number number_where(Number condition, Number then, Number otherwise) {
    return condition.d != 0.0 ? then : otherwise;
}

/* A function of libm. */
#define LIBM(name) \
    static inline Number number_##name(Number x, int *hard) { \
        double d = name(x.d); \
        *hard |= !isfinite(d); \
        return real(d); \
    }

/* A power of ints may be an int; one of a negative base may be complex; 0 has no negative powers. */
static inline Number number_pow(Number x, Number y, int *hard) {
    double d = pow(x.d, y.d);
    *hard |= !isfinite(d) || x.kind & y.kind & WHOLE || (x.d < 0.0 && y.d != floor(y.d)) || (x.d == 0.0 && y.d < 0.0);
    return number_mixed(d, x.kind, hard);
}
