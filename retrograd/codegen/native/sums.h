/* Sums in NumPy's order: up to 16 · U terms are a leaf, in which U sums (8; 4 of complex numbers) run beside each other;
   what is longer has two halves (N. J. Higham, The accuracy of floating point summation, 1993). A stream takes its terms
   one after the other, and adds them up block by block: a half of at most so many terms. One of a part of the terms keeps
   its blocks, and the terms of blocks that others have a part of. What takes long to compile is in sums.c. */
#define RG_SUMS static inline __attribute__((unused))
struct rg_blocks {
  int64_t most, fill, size, waiting[48]; /* terms: of a block at most; of this one, there and in all; of what comes later */
  int waits, level, levels[48];          /* in how many halves they are */
};
RG_SHARED int64_t rg_block_start(int64_t n, int64_t p, int64_t unit, int64_t most);
/* The end of a loop from an element on, whose elements have so many terms each: it fills the block at most. */
RG_SUMS int64_t rg_until(const struct rg_blocks *x, int64_t from, int64_t to, int64_t each) {
  const int64_t rest = (x->size - x->fill + each - 1) / each;
  return rest < to - from ? from + rest : to;
}
#define RG_LEAF(T, s) \
typedef T rg_eight##s __attribute__((vector_size(8 * sizeof(T)))); \
RG_SUMS rg_eight##s rg_eight_terms##s(const T *terms) { rg_eight##s a; memcpy(&a, terms, sizeof a); return a; } \
/* A leaf, of which the first k terms are in eight sums. */ \
RG_SUMS T rg_rest##s(rg_eight##s a, const T *terms, int64_t k, int64_t n) { \
  for (; k + 8 <= n; k += 8) a += rg_eight_terms##s(terms + k); \
  T total = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7])); \
  for (; k < n; k++) total += terms[k]; \
  return total; \
} \
RG_SUMS T rg_leaf##s(const T *terms, int64_t n) { \
  if (n >= 8) return rg_rest##s(rg_eight_terms##s(terms), terms, 8, n); \
  T total = terms[0]; \
  for (int64_t k = 1; k < n; k++) total += terms[k]; \
  return total; \
}
#define RG_COMPLEX_LEAF(T, s) \
RG_SUMS T rg_leaf##s(const T *terms, int64_t n) { \
  T total = terms[0], four[4]; \
  int64_t k = 1; \
  if (n >= 4) { \
    memcpy(four, terms, sizeof four); \
    for (k = 4; k + 4 <= n; k += 4) \
      for (int z = 0; z < 4; z++) four[z] += terms[k + z]; \
    total = (four[0] + four[1]) + (four[2] + four[3]); \
  } \
  for (; k < n; k++) total += terms[k]; \
  return total; \
}
#define RG_SUM(T, s, U) \
RG_SHARED T rg_halves##s(const T *terms, int64_t n); \
RG_SUMS T rg_total##s(const T *terms, int64_t n) { \
  return (n <= 16 * U ? rg_leaf##s(terms, n) : rg_halves##s(terms, n)) + (T)0; \
} \
struct rg_sum##s { \
  struct rg_blocks at; \
  int top, levels[48], began; \
  T *piece, sums[48]; \
  _Alignas(64) T terms[128 * U + 8]; \
}; \
RG_SHARED void rg_begin##s(struct rg_sum##s *x, int64_t n, int64_t most); \
/* ... from the term p of n on */ \
RG_SHARED void rg_begin_part##s(struct rg_sum##s *x, int64_t n, int64_t most, int64_t p, T *piece); \
/* Take terms that stand there. */ \
RG_SHARED void rg_took##s(struct rg_sum##s *x, int64_t n); \
RG_SUMS void rg_take##s(struct rg_sum##s *x, T term) { \
  x->terms[x->at.fill++] = term; \
  if (x->at.fill == x->at.size) rg_took##s(x, 0); \
} \
/* Take what a part kept of the terms from one to another. */ \
RG_SHARED void rg_take_part##s(struct rg_sum##s *x, const T *piece, int64_t from, int64_t to); \
RG_SUMS void rg_end_part##s(struct rg_sum##s *x) { memcpy(x->piece, x->terms, x->at.fill * sizeof(T)); } \
/* Add so many rows of m terms each to m sums, one row after the other. */ \
RG_SHARED void rg_add_rows##s(T *restrict sums, const T *restrict terms, int64_t rows, int64_t m);
RG_LEAF(double, ) RG_LEAF(float, f) RG_COMPLEX_LEAF(double _Complex, c) RG_COMPLEX_LEAF(float _Complex, cf)
RG_SUM(double, , 8) RG_SUM(float, f, 8) RG_SUM(double _Complex, c, 4) RG_SUM(float _Complex, cf, 4)
