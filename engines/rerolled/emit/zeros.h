/* Skip inputs that are 0.0 if that changes no bit. rearrange/zeros.py explains when it is safe.

   FIRST is the number of the first input that may be skipped, and LISTED the number of such inputs. Sums multiply these
   inputs by weights, and a sink by FACTOR_COUNT factors. Functions with several callers are not inlined, which would
   only cost compile time. */

/* On magnitudes; infinity and NaN are not below it. */
static const double LIMIT = 1e300;

/* 1 more than this bounds all magnitudes, because |x| <= 1 + x * x. */
static __attribute__((noinline)) double squares(const number *a, long long count)
{
    /* Separate names, because compilers that do not unroll keep an array in memory. */
    vec sum0 = ALL(0.0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    number *at = (number *)a;
    long long i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        const vec a0 = AT(at + i), a1 = AT(at + i + LANES), a2 = AT(at + i + 2 * LANES), a3 = AT(at + i + 3 * LANES);
        sum0 += a0 * a0;
        sum1 += a1 * a1;
        sum2 += a2 * a2;
        sum3 += a3 * a3;
    }
    const vec sum = sum0 + sum1 + sum2 + sum3;
    double all = EACH(sum, +);
    for (; i < count; i++)
        all += a[i] * a[i];
    return all;
}

static __attribute__((noinline)) void list_every_input(struct live *live)
{
    for (int i = 0; i < LISTED; i++)
        live->at[i] = i;
    live->count = LISTED;
}

#if defined(__SSE2__) && LANES > 1
/* For 8 numbers, of which bit n of the index says that number n is not 0.0: which ones, packed to the left. */
static int packed[256][8];
static unsigned char counts[256];

static __attribute__((constructor)) void fill_packed(void)
{
    for (int set = 0; set < 256; set++)
        for (int n = 0; n < 8; n++)
            if (set >> n & 1)
                packed[set][counts[set]++] = n;
}

/* Bit n says that number n of 4 is not 0.0. */
INLINE int set_of(const number *a)
{
#if defined(__AVX__) && LANES >= 4
    return __builtin_ia32_movmskpd256((v4)(AT4(a) != all4(0.0)));
#else
    typedef float __attribute__((vector_size(4 * sizeof(float)))) halves;
    const halves low = (halves)(AT2(a) != all2(0.0)), high = (halves)(AT2(a + 2) != all2(0.0));
    return __builtin_ia32_movmskps(__builtin_ia32_shufps(low, high, 0x88)); /* the low half of each */
#endif
}
#endif

/* List the inputs x that are not 0.0. */
static __attribute__((noinline)) void list_inputs(const struct training *t, const number *x, struct live *live)
{
    typedef word __attribute__((may_alias)) bits;
    live->squares = 1.0 + squares(x + FIRST, LISTED);
    if (!(t->state.bound < LIMIT)) {
        list_every_input(live);
        return;
    }
    int i = 0, count = 0;
#if defined(__SSE2__) && LANES > 1
    typedef int __attribute__((vector_size(8 * sizeof(int)), aligned(sizeof(int)), may_alias)) ints;
    for (; i + 8 <= LISTED; i += 8) {
        const int set = set_of(x + FIRST + i) | set_of(x + FIRST + i + 4) << 4;
        *(ints *)(live->at + count) = *(const ints *)packed[set] + i;
#ifdef __POPCNT__
        count += __builtin_popcount(set);
#else
        count += counts[set];
#endif
    }
#endif
    for (; i < LISTED; i++) {
        live->at[count] = i;
        count += *(const bits *)(x + FIRST + i) << 1 != 0; /* all bits except the sign */
    }
    live->count = count;
}

/* `reach` bounds all products of an input and a factor, also after an update multiplies them by its rate. */
static void check_factors(struct training *t, const number *factors, struct live *live, int ends_batch)
{
    double reach = live->squares * (1.0 + squares(factors, FACTOR_COUNT));
    if (ends_batch)
        reach *= 1.0 + t->rates[0] * t->rates[0];
    if (!(reach < LIMIT))
        list_every_input(live);
    t->state.bound += reach;
}

/* Set, for each input, the bits of the rows that list it. */
static UNUSED void turn_lists(const struct live *lists, word *turned, long long count)
{
    for (int i = 0; i < LISTED; i++)
        turned[i] = 0;
    for (int row = 0; row < count; row++)
        for (const int *at = lists[row].at, *end = at + lists[row].count; at < end; at++)
            turned[*at] |= 1ULL << row;
}
