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

static __attribute__((noinline)) int has_zeros(const number *a)
{
    long long i = 0;
    for (; i + 4 * LANES <= LISTED; i += 4 * LANES) {
        mask zeros = AT((number *)a + i) == ALL(0.0);
        for (int n = 1; n < 4; n++)
            zeros |= AT((number *)a + i + n * LANES) == ALL(0.0);
        if (EACH(zeros, |))
            return 1;
    }
    for (; i < LISTED; i++)
        if (a[i] == 0.0)
            return 1;
    return 0;
}

static __attribute__((noinline)) void list_every_input(struct live *live)
{
    for (int i = 0; i < LISTED; i++)
        live->at[i] = i;
    live->count = LISTED;
}

/* For 8 bytes, of which bit n of the first index says that byte n is not zero: their numbers, packed to the left. */
static int packed[256][8];

static __attribute__((constructor)) void fill_packed(void)
{
    for (int set = 0; set < 256; set++)
        for (int n = 0, count = 0; n < 8; n++)
            if (set >> n & 1)
                packed[set][count++] = n;
}

/* The inputs that may be skipped, in the row that is `ahead` rows after the next one. NULL unless they are bytes of
   one column. */
static const unsigned char *bytes_of(const struct training *t, long long ahead)
{
    const struct stretch *s = t->stretch;
    const struct column *c = s->columns;
    long long first = FIRST;
    for (; first >= c->width; c++)
        first -= c->width;
    if (c->kind != BYTES || first + LISTED > c->width)
        return 0;
    return (const unsigned char *)c->data + (t->row + ahead) % s->rows * c->width + first;
}

/* List the bytes that are not 0, and return how many there are. */
static long long list_bytes(const unsigned char *bytes, int *at)
{
    typedef unsigned long long __attribute__((aligned(1), may_alias)) eight;
    typedef int __attribute__((vector_size(8 * sizeof(int)), aligned(sizeof(int)), may_alias)) ints;
    const eight low = 0x7f7f7f7f7f7f7f7f;
    long long count = 0;
    int i = 0;
    for (; i + 8 <= LISTED; i += 8) {
        const eight some = *(const eight *)(bytes + i);
        const eight marks = ((((some & low) + low) | some) & ~low) >> 7; /* 1 for each byte that is not 0 */
        const int set = marks * 0x0102040810204080 >> 56;                /* the same in 8 bits */
        *(ints *)(at + count) = *(const ints *)packed[set] + i;
        count += marks * 0x0101010101010101 >> 56; /* their sum */
    }
    for (; i < LISTED; i++) {
        at[count] = i;
        count += bytes[i] != 0;
    }
    return count;
}

typedef word __attribute__((may_alias)) bits;

/* List the numbers that are not 0.0, and return how many there are. */
static long long list_numbers(const bits *inputs, int *at)
{
    long long count = 0;
    int i = 0;
    for (; i + 4 <= LISTED; i += 4) {
        at[count] = i;
        count += inputs[i] << 1 != 0; /* all bits except the sign */
        at[count] = i + 1;
        count += inputs[i + 1] << 1 != 0;
        at[count] = i + 2;
        count += inputs[i + 2] << 1 != 0;
        at[count] = i + 3;
        count += inputs[i + 3] << 1 != 0;
    }
    for (; i < LISTED; i++) {
        at[count] = i;
        count += inputs[i] << 1 != 0;
    }
    return count;
}

/* List the inputs x of the row `ahead` rows after the next one. */
static void list_inputs(const struct training *t, const number *x, long long ahead, struct live *live)
{
    const int skips = t->state.bound < LIMIT;
    const unsigned char *bytes = bytes_of(t, ahead);
    if (skips && bytes)
        live->count = list_bytes(bytes, live->at);
    else if (skips && has_zeros(x + FIRST))
        live->count = list_numbers((const bits *)(x + FIRST), live->at);
    else if (live->count != LISTED) /* a full list already holds every input */
        list_every_input(live);
}

/* `reach` bounds all products of an input and a factor, also after an update multiplies them by its rate. */
static void check_factors(struct training *t, const number *x, const number *factors, struct live *live, int ends_batch)
{
    double reach = (1.0 + squares(x + FIRST, LISTED)) * (1.0 + squares(factors, FACTOR_COUNT));
    if (ends_batch)
        reach *= 1.0 + t->rates[0] * t->rates[0];
    if (!(reach < LIMIT) && live->count != LISTED)
        list_every_input(live);
    t->state.bound += reach;
}

#ifdef ROWS_TOGETHER
static void list_rows(const struct training *t, const number *rows, long long per_row, struct live *lists,
                      long long count)
{
    for (long long row = 0; row < count; row++) {
        lists[row].count = 0;
        list_inputs(t, rows + row * per_row, row, lists + row);
    }
}

static int all_listed(const struct live *lists, long long count)
{
    for (long long row = 0; row < count; row++)
        if (lists[row].count != LISTED)
            return 0;
    return 1;
}

/* Rows are added in their order, so each gradient keeps its order of terms. */
static void turn_lists(const struct live *lists, struct turned *turned, long long count)
{
    for (int i = 0; i < LISTED; i++)
        turned[i].count = 0;
    for (int row = 0; row < count; row++)
        for (const int *at = lists[row].at, *end = at + lists[row].count; at < end; at++) {
            struct turned *list = turned + *at;
            list->at[list->count++] = row;
        }
}
#endif
