/* The interface between a kernel and the pool of threads. */

/* Compute one part of the work. Parts run at the same time, in any order. */
typedef void part_function(void *work, long long part, long long parts);

/* Compute all parts, on the calling thread and up to threads - 1 others, and return when all are done. */
typedef void divide_function(part_function *f, void *work, long long threads);
