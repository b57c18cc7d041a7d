/* The functions of a kernel of several graphs.

   They take the areas' addresses from a structure. gcc 12.2 then treats some of their vector stores as dead, and removes
   the calls. With `noipa` it assumes nothing about a function that it calls. */

#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)
#define PIECE __attribute__((noipa, visibility("hidden")))
#else
#define PIECE __attribute__((noinline, visibility("hidden")))
#endif
