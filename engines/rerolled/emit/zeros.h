/* Skip inputs that are 0.0 if that changes no bit. rearrange/zeros.py explains when it is safe.

   FIRST is the place of the first input that may be skipped, and LISTED the number of such inputs. The generated code
   defines squares_of_weights and squares_of_factors. Functions with several callers are not inlined, which would only
   cost compile time. */

/* On magnitudes; infinity and NaN are not below it. */
static const double LIMIT = sizeof(number) == sizeof(float) ? 1e30 : 1e300;

static double squares_of_weights(const number *w);
static double squares_of_factors(const number *w);

static __attribute__((noinline)) double squares(const number *a, long long count)
{
    vec sums[4] = {ALL(0.0), ALL(0.0), ALL(0.0), ALL(0.0)};
    long long i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int n = 0; n < 4; n++) {
            vec some = AT((number *)a + i + n * LANES);
            sums[n] += some * some;
        }
    vec sum = sums[0] + sums[1] + sums[2] + sums[3];
    double all = EACH(sum, +);
    for (; i < count; i++)
        all += a[i] * a[i];
    return all;
}

/* A bound on the magnitude of all weights, because |x| <= 1 + x * x. */
static double bound_of_weights(const number *w)
{
    return 1.0 + squares_of_weights(w);
}

static __attribute__((noinline)) int has_zeros(const number *a)
{
    long long i = 0;
    for (; i + 4 * LANES <= LISTED; i += 4 * LANES) {
        mask found = AT((number *)a + i) == ALL(0.0);
        for (int n = 1; n < 4; n++)
            found |= AT((number *)a + i + n * LANES) == ALL(0.0);
        if (EACH(found, |))
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

typedef word __attribute__((may_alias)) bits;

static void list_inputs(const number *w, struct live *live, int skips)
{
    if (!skips || !has_zeros(w + FIRST)) {
        if (live->count != LISTED) /* a full list already holds every input */
            list_every_input(live);
        return;
    }
    const bits *inputs = (const bits *)(w + FIRST);
    long long count = 0;
    int i = 0;
    for (; i + 4 <= LISTED; i += 4) {
        live->at[count] = i;
        count += inputs[i] << 1 != 0; /* all bits except the sign */
        live->at[count] = i + 1;
        count += inputs[i + 1] << 1 != 0;
        live->at[count] = i + 2;
        count += inputs[i + 2] << 1 != 0;
        live->at[count] = i + 3;
        count += inputs[i + 3] << 1 != 0;
    }
    for (; i < LISTED; i++) {
        live->at[count] = i;
        count += inputs[i] << 1 != 0;
    }
    live->count = count;
}

/* `reach` bounds all products of an input and a factor, also after an update multiplies them by its rate. */
static void check_factors(struct training *t, const number *x, struct live *live, int ends_batch)
{
    double reach = (1.0 + squares(x + FIRST, LISTED)) * (1.0 + squares_of_factors(t->w));
    if (ends_batch)
        reach *= 1.0 + t->rates[0] * t->rates[0];
    if (!(reach < LIMIT) && live->count != LISTED)
        list_every_input(live);
    t->state.bound += reach;
}

#ifdef ROWS_TOGETHER
static void list_rows(const number *rows, long long per_row, struct live *lists, long long count, int skips)
{
    for (long long row = 0; row < count; row++) {
        lists[row].count = 0;
        list_inputs(rows + row * per_row, lists + row, skips);
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
        for (long long n = 0; n < lists[row].count; n++) {
            struct turned *its = turned + lists[row].at[n];
            its->at[its->count++] = row;
        }
}
#endif
