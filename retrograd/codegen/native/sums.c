/* What sums.h declares. */
static int64_t rg_half(int64_t n, int64_t unit) { return n / 2 - n / 2 % unit; }
static void rg_next_block(struct rg_blocks *x, int64_t unit) {
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
RG_SHARED int64_t rg_block_start(int64_t n, int64_t p, int64_t unit, int64_t most) {
  int64_t start = 0;
  if (p >= n) return n;
  while (n > most) {
    const int64_t half = rg_half(n, unit);
    if (p >= start + half) { start += half; n -= half; } else n = half;
  }
  return start;
}
#define RG_HALVES(T, s) \
/* Two halves of two leaves each, at n1, n2 and n3: beside each other, as each addition waits for the one before. */ \
static T rg_four##s(const T *terms, int64_t n1, int64_t n2, int64_t n3, int64_t n) { \
  const T *t1 = terms + n1, *t2 = terms + n2, *t3 = terms + n3; \
  rg_eight##s a = rg_eight_terms##s(terms), b = rg_eight_terms##s(t1), c = rg_eight_terms##s(t2), d = rg_eight_terms##s(t3); \
  int64_t k = 8; \
  for (; k < n1; k += 8) { \
    a += rg_eight_terms##s(terms + k); b += rg_eight_terms##s(t1 + k); \
    c += rg_eight_terms##s(t2 + k); d += rg_eight_terms##s(t3 + k); \
  } \
  return (rg_rest##s(a, terms, k, n1) + rg_rest##s(b, t1, k, n2 - n1)) + (rg_rest##s(c, t2, k, n3 - n2) + rg_rest##s(d, t3, k, n - n3)); \
} \
RG_SHARED T rg_halves##s(const T *terms, int64_t n) { \
  if (n <= 128) return rg_leaf##s(terms, n); \
  const int64_t half = rg_half(n, 8), n1 = rg_half(half, 8), n3 = half + rg_half(n - half, 8); \
  if (half > 128 && n - n3 <= 128) return rg_four##s(terms, n1, half, n3, n); \
  return rg_halves##s(terms, half) + rg_halves##s(terms + half, n - half); \
}
#define RG_COMPLEX_HALVES(T, s) \
RG_SHARED T rg_halves##s(const T *terms, int64_t n) { \
  if (n <= 64) return rg_leaf##s(terms, n); \
  const int64_t half = rg_half(n, 4); \
  return rg_halves##s(terms, half) + rg_halves##s(terms + half, n - half); \
}
#define RG_STREAM(T, s, U) \
RG_SHARED void rg_begin##s(struct rg_sum##s *x, int64_t n, int64_t most) { \
  x->at.waiting[0] = n; x->at.levels[0] = 0; x->at.waits = 1; x->at.most = most; \
  x->top = 0; x->piece = 0; \
  rg_next_block(&x->at, U); \
} \
RG_SHARED void rg_begin_part##s(struct rg_sum##s *x, int64_t n, int64_t most, int64_t p, T *piece) { \
  x->at.fill = 0; x->at.waits = 0; x->at.most = most; x->piece = piece; \
  while (n > most) { \
    const int64_t half = rg_half(n, U); \
    if (p >= half) { p -= half; n -= half; } \
    else { x->at.levels[x->at.waits] = 0; x->at.waiting[x->at.waits++] = n - half; n = half; } \
  } \
  x->at.size = n - p; x->began = p > 0; \
} \
static void rg_join##s(struct rg_sum##s *x, T block) { \
  int level = x->at.level; \
  for (; x->top && x->levels[x->top - 1] == level; level--) block = x->sums[--x->top] + block; \
  x->sums[x->top] = block; x->levels[x->top++] = level; \
  rg_next_block(&x->at, U); \
} \
RG_SHARED void rg_took##s(struct rg_sum##s *x, int64_t n) { \
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
RG_SHARED void rg_take_part##s(struct rg_sum##s *x, const T *piece, int64_t from, int64_t to) { \
  while (from < to) { \
    const int64_t rest = x->at.size - x->at.fill, n = rest < to - from ? rest : to - from; \
    if (n == x->at.size) rg_join##s(x, *piece++); \
    else { memcpy(x->terms + x->at.fill, piece, n * sizeof(T)); piece += n; rg_took##s(x, n); } \
    from += n; \
  } \
} \
RG_SHARED void rg_add_rows##s(T *restrict sums, const T *restrict terms, int64_t rows, int64_t m) { \
  int64_t k = 0; \
  for (; k + 4 <= rows; k += 4, terms += 4 * m) \
    _Pragma("omp simd") for (int64_t z = 0; z < m; z++) \
      sums[z] = (((sums[z] + terms[z]) + terms[m + z]) + terms[2 * m + z]) + terms[3 * m + z]; \
  for (; k < rows; k++, terms += m) \
    _Pragma("omp simd") for (int64_t z = 0; z < m; z++) sums[z] += terms[z]; \
}
RG_HALVES(double, ) RG_HALVES(float, f) RG_COMPLEX_HALVES(double _Complex, c) RG_COMPLEX_HALVES(float _Complex, cf)
RG_STREAM(double, , 8) RG_STREAM(float, f, 8) RG_STREAM(double _Complex, c, 4) RG_STREAM(float _Complex, cf, 4)
