/* Does this processor have the instructions that the compiler was allowed to use? Most come from -march=native. */

#if defined __x86_64__ && defined __GNUC__
struct instructions {
    const char *name;
    unsigned leaf, word, bit; /* where CPUID reports them: words 0 to 3 are eax, ebx, ecx, edx */
};

static const struct instructions allowed[] = {
#ifdef __SSE4_2__
    {"SSE4.2", 1, 2, 20},
#endif
#ifdef __POPCNT__
    {"POPCNT", 1, 2, 23},
#endif
#ifdef __MOVBE__
    {"MOVBE", 1, 2, 22},
#endif
#ifdef __LZCNT__ /* a processor without it runs another instruction, with another result */
    {"LZCNT", 0x80000001, 2, 5},
#endif
#ifdef __F16C__
    {"F16C", 1, 2, 29},
#endif
#ifdef __AVX__
    {"AVX", 1, 2, 28},
#endif
#ifdef __FMA__
    {"FMA", 1, 2, 12},
#endif
#ifdef __FMA4__
    {"FMA4", 0x80000001, 2, 16},
#endif
#ifdef __BMI__
    {"BMI", 7, 1, 3},
#endif
#ifdef __BMI2__
    {"BMI2", 7, 1, 8},
#endif
#ifdef __AVX2__
    {"AVX2", 7, 1, 5},
#endif
#ifdef __AVX512F__
    {"AVX-512F", 7, 1, 16},
#endif
#ifdef __AVX512DQ__
    {"AVX-512DQ", 7, 1, 17},
#endif
#ifdef __AVX512BW__
    {"AVX-512BW", 7, 1, 30},
#endif
#ifdef __AVX512VL__
    {"AVX-512VL", 7, 1, 31},
#endif
#ifdef __AVX512CD__
    {"AVX-512CD", 7, 1, 28},
#endif
#ifdef __AVX512IFMA__
    {"AVX-512IFMA", 7, 1, 21},
#endif
#ifdef __AVX512VNNI__
    {"AVX-512VNNI", 7, 2, 11},
#endif
#ifdef __AVX512BITALG__
    {"AVX-512BITALG", 7, 2, 12},
#endif
#ifdef __AVX512VPOPCNTDQ__
    {"AVX-512VPOPCNTDQ", 7, 2, 14},
#endif
#ifdef __AVX512VBMI__
    {"AVX-512VBMI", 7, 2, 1},
#endif
#ifdef __AVX512VBMI2__
    {"AVX-512VBMI2", 7, 2, 6},
#endif
    {0, 0, 0, 0},
};

static void cpuid(unsigned leaf, unsigned words[4])
{
    __asm__ volatile("cpuid" : "=a"(words[0]), "=b"(words[1]), "=c"(words[2]), "=d"(words[3]) : "a"(leaf), "c"(0));
}

/* The first that is missing, or NULL. */
static const char *missing_instructions(void)
{
    unsigned words[4];
    for (const struct instructions *i = allowed; i->name; i++) {
        cpuid(i->leaf & 0x80000000, words);
        if (words[0] >= i->leaf)
            cpuid(i->leaf, words);
        else
            words[i->word] = 0;
        if (!(words[i->word] >> i->bit & 1))
            return i->name;
    }
#ifdef __AVX__ /* the system must save the registers: XMM and YMM, with AVX-512 also ZMM and masks */
    unsigned low, high, saved = 6;
#ifdef __AVX512F__
    saved = 0xe6;
#endif
    cpuid(1, words);
    if (!(words[2] >> 27 & 1))
        return "AVX";
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & saved) != saved)
        return saved == 6 ? "AVX" : "AVX-512F";
#endif
    return 0;
}
#else
static const char *missing_instructions(void)
{
    return 0;
}
#endif
