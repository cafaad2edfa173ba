/* Sums in NumPy's order: up to 16 · U terms are a leaf, in which U sums (8; 4 of complex numbers) run beside each other;
   what is longer has two halves (N. J. Higham, The accuracy of floating point summation, 1993). A stream takes its terms
   one after the other, and adds them up block by block: a half of at most so many terms. One of a part of the terms keeps
   its blocks, and the terms of blocks that others have a part of. */
#define RG_SUMS static inline __attribute__((unused))
#define RG_APART static __attribute__((unused, noinline)) /* inlined, they take long to compile */
struct rg_blocks {
  int64_t most, fill, size, waiting[48]; /* terms: of a block at most; of this one, there and in all; of what comes later */
  int waits, level, levels[48];          /* in how many halves they are */
};
RG_SUMS int64_t rg_half(int64_t n, int64_t unit) { return n / 2 - n / 2 % unit; }
RG_APART void rg_next_block(struct rg_blocks *x, int64_t unit) {
  if (!x->waits) return;
  int64_t n = x->waiting[--x->waits];
  int level = x->levels[x->waits];
  while (n > x->most) {
    const int64_t half = rg_half(n, unit);
    x->waiting[x->waits] = n - half; x->levels[x->waits++] = ++level;
    n = half;
  }
  x->fill = 0; x->size = n; x->level = level;
}
/* The first term of the block that has the term p of n; n if there is none. */
RG_APART int64_t rg_block_start(int64_t n, int64_t p, int64_t unit, int64_t most) {
  int64_t start = 0;
  if (p >= n) return n;
  while (n > most) {
    const int64_t half = rg_half(n, unit);
    if (p >= start + half) { start += half; n -= half; } else n = half;
  }
  return start;
}
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
} \
/* Two halves of two leaves each, at n1, n2 and n3: beside each other, as each addition waits for the one before. */ \
RG_SUMS T rg_four##s(const T *terms, int64_t n1, int64_t n2, int64_t n3, int64_t n) { \
  const T *t1 = terms + n1, *t2 = terms + n2, *t3 = terms + n3; \
  rg_eight##s a = rg_eight_terms##s(terms), b = rg_eight_terms##s(t1), c = rg_eight_terms##s(t2), d = rg_eight_terms##s(t3); \
  int64_t k = 8; \
  for (; k < n1; k += 8) { \
    a += rg_eight_terms##s(terms + k); b += rg_eight_terms##s(t1 + k); \
    c += rg_eight_terms##s(t2 + k); d += rg_eight_terms##s(t3 + k); \
  } \
  return (rg_rest##s(a, terms, k, n1) + rg_rest##s(b, t1, k, n2 - n1)) + (rg_rest##s(c, t2, k, n3 - n2) + rg_rest##s(d, t3, k, n - n3)); \
} \
RG_APART T rg_halves##s(const T *terms, int64_t n) { \
  if (n <= 128) return rg_leaf##s(terms, n); \
  const int64_t half = rg_half(n, 8), n1 = rg_half(half, 8), n3 = half + rg_half(n - half, 8); \
  if (half > 128 && n - n3 <= 128) return rg_four##s(terms, n1, half, n3, n); \
  return rg_halves##s(terms, half) + rg_halves##s(terms + half, n - half); \
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
} \
RG_APART T rg_halves##s(const T *terms, int64_t n) { \
  if (n <= 64) return rg_leaf##s(terms, n); \
  const int64_t half = rg_half(n, 4); \
  return rg_halves##s(terms, half) + rg_halves##s(terms + half, n - half); \
}
#define RG_SUM(T, s, U) \
RG_SUMS T rg_total##s(const T *terms, int64_t n) { \
  return (n <= 16 * U ? rg_leaf##s(terms, n) : rg_halves##s(terms, n)) + (T)0; \
} \
struct rg_sum##s { \
  struct rg_blocks at; \
  int top, levels[48], began; \
  T *piece, sums[48]; \
  T terms[128 * U + 8]; \
}; \
RG_APART void rg_begin##s(struct rg_sum##s *x, int64_t n, int64_t most) { \
  x->at.waiting[0] = n; x->at.levels[0] = 0; x->at.waits = 1; x->at.most = most; \
  x->top = 0; x->piece = 0; \
  rg_next_block(&x->at, U); \
} \
/* ... from the term p of n on */ \
RG_APART void rg_begin_part##s(struct rg_sum##s *x, int64_t n, int64_t most, int64_t p, T *piece) { \
  x->at.fill = 0; x->at.waits = 0; x->at.most = most; x->piece = piece; \
  while (n > most) { \
    const int64_t half = rg_half(n, U); \
    if (p >= half) { p -= half; n -= half; } \
    else { x->at.levels[x->at.waits] = 0; x->at.waiting[x->at.waits++] = n - half; n = half; } \
  } \
  x->at.size = n - p; x->began = p > 0; \
} \
RG_APART void rg_join##s(struct rg_sum##s *x, T block) { \
  int level = x->at.level; \
  for (; x->top && x->levels[x->top - 1] == level; level--) block = x->sums[--x->top] + block; \
  x->sums[x->top] = block; x->levels[x->top++] = level; \
  rg_next_block(&x->at, U); \
} \
/* Take terms that stand there. */ \
RG_APART void rg_took##s(struct rg_sum##s *x, int64_t n) { \
  const int64_t size = x->at.size, over = (x->at.fill += n) - size; \
  if (over < 0) return; \
  x->at.fill = 0; \
  if (!x->piece) rg_join##s(x, rg_halves##s(x->terms, size)); \
  else { \
    if (x->began) { memcpy(x->piece, x->terms, size * sizeof(T)); x->piece += size; x->began = 0; } \
    else *x->piece++ = rg_halves##s(x->terms, size); \
    rg_next_block(&x->at, U); \
  } \
  for (int64_t k = 0; k < over; k++) x->terms[k] = x->terms[size + k]; \
  x->at.fill = over; \
} \
RG_SUMS void rg_take##s(struct rg_sum##s *x, T term) { \
  x->terms[x->at.fill++] = term; \
  if (x->at.fill == x->at.size) rg_took##s(x, 0); \
} \
/* Take what a part kept of the terms from one to another. */ \
RG_APART void rg_take_part##s(struct rg_sum##s *x, const T *piece, int64_t from, int64_t to) { \
  while (from < to) { \
    const int64_t rest = x->at.size - x->at.fill, n = rest < to - from ? rest : to - from; \
    if (n == x->at.size) rg_join##s(x, *piece++); \
    else { memcpy(x->terms + x->at.fill, piece, n * sizeof(T)); piece += n; rg_took##s(x, n); } \
    from += n; \
  } \
} \
/* Add so many rows of m terms each to m sums, one row after the other. */ \
RG_APART void rg_add_rows##s(T *restrict sums, const T *restrict terms, int64_t rows, int64_t m) { \
  int64_t k = 0; \
  for (; k + 4 <= rows; k += 4, terms += 4 * m) \
    for (int64_t z = 0; z < m; z++) \
      sums[z] = (((sums[z] + terms[z]) + terms[m + z]) + terms[2 * m + z]) + terms[3 * m + z]; \
  for (; k < rows; k++, terms += m) \
    for (int64_t z = 0; z < m; z++) sums[z] += terms[z]; \
} \
RG_SUMS void rg_end_part##s(struct rg_sum##s *x) { memcpy(x->piece, x->terms, x->at.fill * sizeof(T)); }
RG_LEAF(double, ) RG_LEAF(float, f) RG_COMPLEX_LEAF(double _Complex, c) RG_COMPLEX_LEAF(float _Complex, cf)
RG_SUM(double, , 8) RG_SUM(float, f, 8) RG_SUM(double _Complex, c, 4) RG_SUM(float _Complex, cf, 4)
