/* Numbers and vectors of them.

   LANES is the width of the widest vector. `vec` is that vector, or a number if there are no vectors. */

typedef double number;
typedef long long whole; /* an integer as long as a number */
typedef unsigned long long word;

#define UNUSED __attribute__((unused))
#define INLINE static inline __attribute__((always_inline, unused))

/* `a` if `is` holds, else `b`. Both are computed first, so compilers can choose without a jump. Such a jump depends on
   data, so processors would often mispredict it. TCC inlines no functions, and always jumps. */
#ifdef __TINYC__
#define where1(is, a, b) ((is) ? (a) : (b))
#else
INLINE number where1(int is, number a, number b) { return is ? a : b; }
#endif

#if LANES == 1
typedef number vec;
typedef whole mask;
#define ALL(a) (a)
#define AT(place) (*(place))
#define EACH(a, op) (a)
#else
/* v4: four numbers. m4: four results of a comparison. AT4: four numbers in memory, at the address of any number. */
#define VECTORS(N, ...)                                                                                                \
    typedef number v##N __attribute__((vector_size(sizeof(number) * N)));                                              \
    typedef whole m##N __attribute__((vector_size(sizeof(number) * N)));                                               \
    typedef v##N u##N __attribute__((aligned(sizeof(number)), may_alias));                                             \
    INLINE v##N all##N(number a) { return (v##N){__VA_ARGS__}; }                                                       \
    INLINE v##N where##N(m##N is, v##N a, v##N b) { return (v##N)((is & (m##N)a) | (~is & (m##N)b)); }                 \
    INLINE v##N truth##N(m##N is) { return (v##N)(is & (m##N)all##N(1.0)); }

VECTORS(2, a, a)
#define AT2(place) (*(u2 *)(place))
#if LANES >= 4
VECTORS(4, a, a, a, a)
#define AT4(place) (*(u4 *)(place))
#endif
#if LANES >= 8
VECTORS(8, a, a, a, a, a, a, a, a)
#define AT8(place) (*(u8 *)(place))
#endif

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
typedef JOIN(v, LANES) vec;
typedef JOIN(m, LANES) mask;
#define ALL JOIN(all, LANES)
#define AT JOIN(AT, LANES)
/* Reduce all lanes of a vector: their sum, or whether any of them is true. */
#define EACH2(a, op) ((a)[0] op(a)[1])
#define EACH4(a, op) (EACH2(a, op) op(a)[2] op(a)[3])
#define EACH8(a, op) (EACH4(a, op) op(a)[4] op(a)[5] op(a)[6] op(a)[7])
#define EACH JOIN(EACH, LANES)
#endif
