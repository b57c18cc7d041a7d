/* Steps over the kernels over several lengths. `optimise` comes before this file. */

void update_shared(const struct shared *shared, long long index, double rate, double batch)
{
    libm_is_known = shared->libm_is_known;
    optimise(shared->p, shared->q, shared->states, (double)(index + 1), rate, batch, shared->parameters);
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

long long powers(const double *x, double *y, long long count, long long is_root, long long is_known)
{
    const double exponent = is_root ? 0.5 : 2.0;
    long long i = 0, left_to_libm = 0;
#ifdef IN_LANES
    for (; is_known && i + LANES <= count; i += LANES) {
        lanes other;
        const lanes r = is_root ? root(AT(x + i), &other) : square(AT(x + i), &other);
        const bits unsure = ((bits)r ^ (bits)other) | outside(AT(x + i), is_root ? 256 : 128);
        AT(y + i) = r;
        for (unsigned left = KEEPS_BITS ? marked(unsure) : 0; left; left &= left - 1, left_to_libm++)
            y[i + __builtin_ctz(left)] = pow(x[i + __builtin_ctz(left)], exponent);
    }
#endif
    (void)is_known;
    for (; i < count; i++, left_to_libm++)
        y[i] = pow(x[i], exponent);
    return left_to_libm;
}

long long quotients(const double *x, double *y, long long count, double number)
{
    long long i = 0, divided = 0;
#ifdef IN_LANES
    const struct divisor by = divisor(number);
    for (; i + LANES <= count; i += LANES) {
        bits unsure = {0};
        AT(y + i) = over(AT(x + i), &by, &unsure);
        for (unsigned left = KEEPS_BITS ? marked(unsure) : 0; left; left &= left - 1, divided++)
            y[i + __builtin_ctz(left)] = x[i + __builtin_ctz(left)] / number;
    }
#endif
    for (; i < count; i++, divided++)
        y[i] = x[i] / number;
    return divided;
}
