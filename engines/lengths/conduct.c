/* Steps over the kernels over several lengths.

   FACTORS, the number of factors of an update, `set_factors` and `update_one` come before this file. */

enum { BATCH = FACTORS + 1, NUMBERS = FACTORS + 2, COPIES = 8 };

/* Update whole vectors. numbers: those of `lanes.py`. Returns how many parameters that were. */
static long long update_lanes(const struct shared *shared, const double *numbers)
{
    double copies[NUMBERS * COPIES];
    for (int i = 0; i < NUMBERS * COPIES; i++)
        copies[i] = numbers[i / COPIES];
    shared->words[1] = (long long)shared->list;
    shared->lanes(copies, shared->words);
    for (const long long *entry = shared->list; entry < (const long long *)shared->words[1]; entry += 2)
        for (int lane = 0; lane < COPIES; lane++)
            if (entry[1] >> lane & 1)
                update_one(shared, numbers, entry[0] + lane);
    return shared->words[0];
}

void update_shared(const struct shared *shared, long long index, double rate, double batch)
{
    double numbers[NUMBERS] = {rate};
    numbers[BATCH] = batch;
    set_factors(numbers, (double)(index + 1));
    for (long long i = shared->lanes ? update_lanes(shared, numbers) : 0; i < shared->parameters; i++)
        update_one(shared, numbers, i);
}

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
