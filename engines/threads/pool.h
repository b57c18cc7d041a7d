/* The interface between a kernel and the pool of threads. */

/* Compute one part of the work. Parts run at the same time, in any order. */
typedef void part_function(void *work, long long part, long long parts);

/* What the pool knows about one division of a kernel. All zero at first. */
struct gauge {
    long long trials;      /* how often it was timed on one thread */
    long long picoseconds; /* shortest time for a unit of work */
    long long losses;      /* how often in a row the divided work took longer than that */
    long long pause_ends;  /* until then, it is not divided: nanoseconds */
};

/* Compute all parts, on the calling thread and up to threads - 1 others, and return when all are done.

   units: the size of the work, as a multiple of what `gauge` measures. */
typedef void divide_function(struct gauge *gauge, part_function *f, void *work, long long units, long long threads);
