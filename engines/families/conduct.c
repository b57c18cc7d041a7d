/* Steps over the kernels of a family. `optimise` and NUMBERS, the numbers of an update, come before this file. */

void update_shared(const struct shared *shared, const double *numbers, double batch)
{
    libm_is_known = shared->libm_is_known;
    optimise(shared->p, shared->q, shared->states, numbers, batch, shared->parameters);
    for (long long i = 0; i < shared->parameters; i++)
        shared->q[i] = 0.0;
}

long long take(const struct shared *shared, const struct course *course)
{
    long long row = course->first_row, taken = course->taken;
    const double *numbers = course->numbers;
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
                update_shared(shared, numbers, (double)course->batch);
                numbers += NUMBERS;
                taken = 0;
            }
        }
        if (++row == course->rows)
            row = 0;
    }
    return course->steps;
}

long long powers(const double *x, double *y, long long count, long long is_root, long long is_known)
{
    libm_is_known = is_known;
    left_to_libm = 0;
    for (long long start = 0; start < count; start += BLOCK)
        (is_root ? roots : squares)(x + start, y + start, count - start < BLOCK ? count - start : BLOCK);
    return left_to_libm;
}
