/* Steps with the kernels of several lengths.

   `in_c.py` fills the structures, whose fields all take 8 bytes, defines FACTORS, the number of factors of an update, and
   writes `set_factors` and `update_one` from the optimiser's expressions. */

/* The kernel of one shape, with buffers of its own. */
struct member {
    void (*set_input)(double *x, const struct column *columns, long long count, long long row);
    double (*forward)(const double *x, const double *p, double *w, double *y);
    void (*backward)(const double *x, const double *p, double *w, double *q);
    const struct column *columns;
    long long column_count;
    double *x;
    double *w;
    double *y;
};

/* The buffers that all members share, in the same order of parameters. */
struct shared {
    const struct member *members;
    double *p;
    double *q;
    double *const *states; /* the optimiser's state buffers */
    long long parameters;
    /* Updates whole vectors, and lists the lanes that it leaves: see `lanes_in_machine_code`. 0 if there are no lanes. */
    void (*lanes)(double *numbers, long long *words);
    long long *words;
    const long long *list;
};

/* Steps over rows that wrap around, with an update after every `batch` steps. */
struct course {
    const long long *members; /* row -> its member */
    const long long *places;  /* row -> its number among the rows of that member */
    long long first_row;
    long long rows;
    long long steps;
    long long batch;
    long long taken;        /* steps since the last update */
    long long first_update; /* the index of the first update to come, from 0 */
    const double *rates;    /* one for each update to come */
    double *losses;         /* output: one for each step */
    long long learns;
};

static void set_factors(double *numbers, double update);
static void update_one(const struct shared *shared, const double *numbers, long long i);

enum { BATCH = FACTORS + 1, NUMBERS = FACTORS + 2, COPIES = 8 };
enum { WHOLE, LIST }; /* the first words, as in `lanes_in_machine_code` */

/* Update whole vectors. numbers: in the order of `lanes.numbers`. Returns how many parameters that were. */
static long long update_lanes(const struct shared *shared, const double *numbers)
{
    double copies[NUMBERS * COPIES];
    for (int i = 0; i < NUMBERS; i++)
        copies[i * COPIES] = numbers[i];
    shared->words[LIST] = (long long)shared->list;
    shared->lanes(copies, shared->words);
    for (const long long *entry = shared->list; entry < (const long long *)shared->words[LIST]; entry += 2)
        for (int lane = 0; lane < COPIES; lane++)
            if (entry[1] >> lane & 1)
                update_one(shared, numbers, entry[0] + lane);
    return shared->words[WHOLE];
}

/* Update every parameter by a batch, and set the gradients to 0. index: of the update, from 0. */
void update_shared(const struct shared *shared, long long index, double rate, double batch)
{
    double numbers[NUMBERS] = {rate};
    numbers[BATCH] = batch;
    set_factors(numbers, (double)(index + 1));
    for (long long i = shared->lanes ? update_lanes(shared, numbers) : 0; i < shared->parameters; i++)
        update_one(shared, numbers, i);
}

/* Returns the number of finite losses. The first other loss ends the course, before its backward pass. */
long long take(const struct shared *shared, const struct course *course)
{
    long long row = course->first_row, taken = course->taken;
    long long update = 0;
    for (long long step = 0; step < course->steps; step++) {
        const struct member *m = shared->members + course->members[row];
        m->set_input(m->x, m->columns, m->column_count, course->places[row]);
        double loss = m->forward(m->x, shared->p, m->w, m->y);
        course->losses[step] = loss;
        if (loss - loss != 0.0)
            return step;
        if (course->learns) {
            m->backward(m->x, shared->p, m->w, shared->q);
            if (++taken == course->batch) {
                update_shared(shared, course->first_update + update, course->rates[update], (double)course->batch);
                update++;
                taken = 0;
            }
        }
        if (++row == course->rows)
            row = 0;
    }
    return course->steps;
}
