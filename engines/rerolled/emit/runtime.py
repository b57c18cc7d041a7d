"""The C that goes round recovered loops: vectors, the way into the workspace and out of it, and training."""

HEAD = """\
/* A Value graph as recovered loops.
   x: {inputs} inputs   p: {parameters} parameters   w: workspace of {workspace}   y: {outputs} outputs
   q: gradients of the parameters   No two of these buffers overlap. The workspace holds copies, in the loops' order. */
"""

VECTORS = """\
typedef double v@ __attribute__((vector_size(8 * @)));
typedef long long m@ __attribute__((vector_size(8 * @)));
typedef v@ u@ __attribute__((aligned(8), may_alias)); /* as it lies in memory */
#define AT@(place) (*(u@ *)(place))
INLINE v@ all@(double a) {{ return (v@){{{copies}}}; }}
INLINE v@ where@(m@ is, v@ a, v@ b) {{ return (v@)((is & (m@)a) | (~is & (m@)b)); }}
INLINE v@ truth@(m@ is) {{ return (v@)(is & (m@)all@(1.0)); }}
"""
"""Over {copies}; @ is the width."""

WORDS = """\
void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);
#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))
"""

RUNTIME = """\
{columns}
{plain}
enum {{ P = {p}, Q = {q}, ROOM = {size} }};

/* A workspace begins at a multiple of 64 bytes: a vector that crosses a cache line takes twice the time. */
static double *aligned(double *w)
{{
    return (double *)(((unsigned long long)w + 63) & ~63ULL);
}}

static void take_inputs(double *restrict w, const double *restrict x)
{{
    for (long long i = 0; i < INPUTS; i++)
        w[i] = x[i];
}}

/* One for all: parameters lie from w on, their gradients as far behind them as Q is behind P. */
static __attribute__((noinline)) void move(double *restrict w, double *restrict theirs, int out)
{{
{copies}}}

static void take_parameters(double *restrict w, const double *restrict p)
{{
{numbers}    move(w, (double *)p, 0);
}}

static void take_gradients(double *restrict w, const double *restrict q)
{{
    move(w + (Q - P), (double *)q, 0);
}}

static void give_parameters(double *restrict w, double *restrict p)
{{
    move(w, p, 1);
}}

static void give_gradients(double *restrict w, double *restrict q)
{{
    move(w + (Q - P), q, 1);
}}

static void give_outputs(const double *restrict w, double *restrict y)
{{
{give_outputs}}}

{export}double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{{
    w = aligned(w);
    take_inputs(w, x);
    take_parameters(w, p);
{whole}    values(w{live});
    give_outputs(w, y);
    return {loss};
}}

{export}void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{{
    (void)x, (void)p;
    w = aligned(w);
    take_gradients(w, q);
{whole}    gradients(w{live});
    sinks(w{live});
    give_gradients(w, q);
}}

static void update_all(double *restrict w, double rate, double batch)
{{
    if (batch == 1.0)
        for (long long i = 0; i < ROOM; i += {width})
            {at}(w + P + i) -= {rate} * {at}(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += {width})
            {at}(w + P + i) -= {rate} * {at}(w + Q + i) / {batch};
    for (long long i = 0; i < ROOM; i += {width})
        {at}(w + Q + i) = {zero};
}}

/* A byte's quotient is looked up: a row of divisions takes longer than its products. */
struct quotients {{
    double of[256];
}};

static void take_row(double *restrict x, const struct column *columns, const struct quotients *known, long long count,
                     long long row)
{{
    for (long long n = 0; n < count; x += columns[n].width, n++) {{
        const struct column *c = &columns[n];
        if (c->kind == BYTES) {{
            const unsigned char *cell = (const unsigned char *)c->data + row * c->width;
            const double *of = known[n].of;
            long long i = 0;
            for (; i + 4 <= c->width; i += 4, cell += 4) {{
                x[i] = of[cell[0]];
                x[i + 1] = of[cell[1]];
                x[i + 2] = of[cell[2]];
                x[i + 3] = of[cell[3]];
            }}
            for (; i < c->width; i++)
                x[i] = of[*cell++];
        }} else {{
            set_input(x, c, 1, row);
        }}
    }}
}}

{take_rows}/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
{export}long long train(double *restrict x, double *restrict p, double *restrict w, double *restrict y,
                double *restrict q, const struct column *columns, long long count, long long rows,
                long long first_row, long long steps, long long batch, long long taken,
                const double *restrict rates, double *restrict losses)
{{
    struct quotients known[count];
    for (long long n = 0; n < count; n++)
        for (long long byte = 0; byte < 256; byte++)
            known[n].of[byte] = byte / columns[n].divisor;
    w = aligned(w);
    take_parameters(w, p);
    take_gradients(w, q);
    long long step = 0, fresh = 0; /* whether all gradients are zero */
{prepare}    for (; step < steps; step++) {{
{rows}{keep}        take_row(w, columns, known, count, (first_row + step) % rows);
{find}{value}        losses[step] = {loss};
        if (losses[step] - losses[step] != 0.0)
            break;
        gradients(w{live});
{before}{descend}        sinks(w{live});
        if (++taken % batch)
            continue;
        update_all(w, *rates++, (double)batch);
        fresh = 1;
{after}    }}
{at_last}    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
    if (steps)
        give_outputs(w, y);
    give_parameters(w, p);
    give_gradients(w, q);
    return step;
}}
"""

PLAIN = {
    **dict.fromkeys(("live", "whole", "take_rows", "prepare", "rows", "keep", "find"), ""),
    **dict.fromkeys(("before", "descend", "after", "at_last"), ""),
    "value": "        values(w);\n",
}
"""What `RUNTIME` says where updates are plain, and nothing is skipped."""

IN_PLACE = {
    "descend": """\
        if (batch == 1 && fresh) {
            descend(w, *rates++);
            continue;
        }
"""
}
"""An update for which no gradient has to be kept."""

DEFERRING = {
    "prepare": """\
    double due = 0.0; /* the rate of an update that waits for the next row */
    int is_due = 0, is_kept = 0; /* whether the row it is made with is kept already */
""",
    "keep": """\
        if (is_due && !is_kept)
            memcpy(w + {before}, w + {start}, {count} * sizeof(double));
""",
    "value": """\
        if (is_due)
            descend_and_values(w, due);
        else
            values(w);
        is_kept = {one_block} && is_due;
        is_due = 0;
""",
    "descend": """\
        if (batch == 1 && fresh) {{
            due = *rates++;
            is_due = 1;
            descend(w, due);
            continue;
        }}
""",
    "at_last": """\
    if (is_due && !is_kept)
        memcpy(w + {before}, w + {start}, {count} * sizeof(double));
    if (is_due)
        settle(w{live}, due);
""",
}
"""And where part of it waits. Over {start}, {count}, {before}, {one_block} and {live}."""

ROWS = """\
        if (batch > 1 && step + {rows} <= steps && batch - taken % batch >= {rows}{full}
            && take_rows(w, columns, known, count, first_row + step, rows)) {{
            values_of_rows(w{live});
            long long r = 0;
            for (; r < {rows}; r++) {{
                const double *x_r = w + {inputs} + r * {step};
                memcpy(w, x_r, {start} * sizeof(double));
                memcpy(w + {stop}, x_r + {stop}, (INPUTS - {stop}) * sizeof(double));
                memcpy(w + {sum}, w + {sums} + r * {lanes}, {width} * sizeof(double));
                values_but_first(w{live});
                losses[step + r] = {loss};
                if (losses[step + r] - losses[step + r] != 0.0)
                    break;
                gradients(w{live});
                sinks_but_one(w{live});
                memcpy(w + {factors} + r * {lanes}, w + {factor}, {width} * sizeof(double));
            }}
            if (r == {rows}) {{
                sinks_of_rows(w{live});
                memcpy(w, w + {inputs} + (r - 1) * {step}, INPUTS * sizeof(double));
                taken += r;
                fresh = taken % batch == 0;
                if (fresh) {{
                    update_all(w, *rates++, (double)batch);
{after}                }}
                step += r - 1;
                continue;
            }}
            for (long long before = 0; before < r; before++) {{ /* those that went well still count */
                memcpy(w, w + {inputs} + before * {step}, INPUTS * sizeof(double));
                memcpy(w + {factor}, w + {factors} + before * {lanes}, {width} * sizeof(double));
                sink_one(w{live});
            }}
            memcpy(w, w + {inputs} + r * {step}, INPUTS * sizeof(double));
            step += r;
            break;
        }}
"""
"""Over the places and strides of `Rows`, and over {start} and {stop}, {sum}, {factor}, {width} and {loss}; where inputs
may be skipped {full}, {live} and {after} see to it that rows go together only where nothing is."""

TAKE_ROWS = """\
/* Gives whether they may go together. */
static int take_rows(double *restrict w, const struct column *columns, const struct quotients *known, long long count,
                     long long first, long long rows)
{{
    for (long long r = 0; r < {rows}; r++) {{
        double *x = w + {inputs} + r * {step};
        take_row(x, columns, known, count, (first + r) % rows);
{unless}    }}
    return 1;
}}

"""
"""Before `train`, where it has ROWS. `unless`: what keeps a row from it."""

LIST = """\
/* The inputs that are not skipped. */
struct live {{
    long long count;
    int at[{count} + 1]; /* one more: what is not counted is written, too */
}};
"""
"""Over {count}."""

LIVE = """\
static const double LIMIT = 1e300; /* of magnitudes; what is infinite or NaN is not below it */

static double squares(const double *a, long long count)
{{
    {vector} sums[4] = {{{zero}, {zero}, {zero}, {zero}}};
    long long i = 0;
    for (; i + 4 * {width} <= count; i += 4 * {width})
        for (int n = 0; n < 4; n++) {{
            {vector} some = {at}((double *)a + i + n * {width});
            sums[n] += some * some;
        }}
    {vector} sum = sums[0] + sums[1] + sums[2] + sums[3];
    double all = {total};
    for (; i < count; i++)
        all += a[i] * a[i];
    return all;
}}

/* No weight is larger: x <= 1 + x * x. */
static double bound_of(const double *w)
{{
    return 1.0 + {weights};
}}

/* Nor is any product of an input and what it is multiplied with. */
static double reach_of(const double *w)
{{
    return (1.0 + {inputs}) * (1.0 + {factors});
}}

static struct live *live_of(double *w)
{{
    struct live *live = (struct live *)(w + {place});
    live->count = 0;
    return live;
}}

static int has_zeros(const double *a)
{{
    long long i = 0;
    for (; i + 4 * {width} <= {count}; i += 4 * {width}) {{
        {mask} found = {at}((double *)a + i) == {zero};
        for (int n = 1; n < 4; n++)
            found |= {at}((double *)a + i + n * {width}) == {zero};
        if ({any})
            return 1;
    }}
    for (; i < {count}; i++)
        if (a[i] == 0.0)
            return 1;
    return 0;
}}

typedef unsigned long long __attribute__((may_alias)) word;

static void find(const double *w, struct live *live, int skips)
{{
    long long count = 0;
    const word *bits = (const word *)(w + {start});
    if (skips && has_zeros(w + {start})) {{
        int i = 0;
        for (; i + 4 <= {count}; i += 4) {{
            live->at[count] = i;
            count += bits[i] << 1 != 0; /* all but the sign */
            live->at[count] = i + 1;
            count += bits[i + 1] << 1 != 0;
            live->at[count] = i + 2;
            count += bits[i + 2] << 1 != 0;
            live->at[count] = i + 3;
            count += bits[i + 3] << 1 != 0;
        }}
        for (; i < {count}; i++) {{
            live->at[count] = i;
            count += bits[i] << 1 != 0;
        }}
    }} else {{
        count = live->count == {count} ? {count} : 0; /* it holds all already */
        for (; count < {count}; count++)
            live->at[count] = (int)count;
    }}
    live->count = count;
}}
"""
"""Over {count}, {start}, {place}; {weights}, {inputs} and {factors}, sums of squares; and how vectors are written."""

SKIPPING = {
    "live": ", live",
    "value": "        values(w, live);\n",
    "descend": """\
        if (batch == 1 && fresh) {
            descend(w, live, *rates++);
            continue;
        }
""",
    "whole": "    struct live *live = live_of(w);\n    find(w, live, 0);\n",
    "prepare": "    struct live *live = live_of(w);\n    double bound = bound_of(w);\n",
    "find": """\
        if (!(bound < LIMIT))
            bound = bound_of(w);
        find(w, live, bound < LIMIT);
""",
    "before": """\
        double reach = reach_of(w);
        if (taken % batch == batch - 1)
            reach *= 1.0 + rates[0] * rates[0];
        if (!(reach < LIMIT))
            find(w, live, 0);
        bound += reach;
""",
    "after": "        bound = bound_of(w);\n",
}
"""What it says where something is."""

SKIPPING_OR_DEFERRING = {
    **DEFERRING,
    "prepare": SKIPPING["prepare"] + DEFERRING["prepare"],
    "find": """\
        if (!(bound < LIMIT)) {{
            if (is_due)
                settle(w, live, due);
            is_due = 0;
            bound = bound_of(w);
        }}
        find(w, live, bound < LIMIT);
""",
    "value": """\
        if (is_due && live->count == {count})
            descend_and_values(w, live, due);
        else {{
            if (is_due)
                settle(w, live, due);
            values(w, live);
        }}
        is_kept = {one_block} && is_due && live->count == {count};
        is_due = 0;
""",
    "descend": """\
        if (batch == 1 && fresh) {{
            due = *rates++;
            is_due = live->count == {count};
            descend(w, live, due);
            if (!is_due)
                descend_one(w, live, due);
            continue;
        }}
""",
}
"""Where both may be: an update waits if its row has no zeros, and meets the next row on the way if that has none."""
