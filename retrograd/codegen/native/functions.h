/* Functions of the kernels. They have no branches and no calls, so a loop over them is vectorised, and an element has
   the same bits at every position and at every width of a vector. Each is within 2 units in the last place. */
#define NAN __builtin_nan("")
#define INFINITY __builtin_inf()
#define RG_INLINE static inline __attribute__((always_inline, unused))

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define RG_FUSED
#define RG_FMA(a, b, c) __builtin_fma(a, b, c)
#define RG_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#else
#define RG_FMA(a, b, c) ((a) * (b) + (c))
#define RG_FMAF(a, b, c) ((a) * (b) + (c))
#endif

RG_INLINE double rg_bits(int64_t i) { double d; __builtin_memcpy(&d, &i, 8); return d; }
RG_INLINE int64_t rg_int(double d) { int64_t i; __builtin_memcpy(&i, &d, 8); return i; }

/* x = k * log 2 + r with |r| <= log(2) / 2, and what r has lost. Adding 1.5 * 2^52 rounds, and leaves k in the low bits;
   adding more leaves k + more, which is the exponent of a power of two. An even number keeps the rounding. */
#define RG_ROUND 6755399441055744.0
#define RG_LN2_HIGH 0x1.62e42feep-1
#define RG_LN2_LOW 0x1.a39ef35793c76p-33
#define RG_REDUCED(x, more) \
  const double shifted = RG_FMA(x, 0x1.71547652b82fep0, RG_ROUND + (more)), k = shifted - (RG_ROUND + (more)); \
  const uint64_t bits = rg_int(shifted); \
  const double high = RG_FMA(-k, RG_LN2_HIGH, x), r = RG_FMA(-k, RG_LN2_LOW, high), lost = RG_FMA(-k, RG_LN2_LOW, high - r)

/* 2^k = s * t: two numbers that are always normal. The low bits are k + 2046. */
#define RG_TWO_FACTORS(bits) const double s = rg_bits((bits) >> 1 << 52), t = rg_bits(((bits) << 52) - ((bits) >> 1 << 52))

/* exp(r) - 1 - r for |r| <= 0.35, divided by r * r. */
RG_INLINE double rg_tail(double r) {
  double p = 1.6059043836821613e-10;
  p = RG_FMA(p, r, 2.08767569878681e-09); p = RG_FMA(p, r, 2.505210838544172e-08); p = RG_FMA(p, r, 2.755731922398589e-07);
  p = RG_FMA(p, r, 2.7557319223985893e-06); p = RG_FMA(p, r, 2.48015873015873e-05); p = RG_FMA(p, r, 1.984126984126984e-04);
  p = RG_FMA(p, r, 1.388888888888889e-03); p = RG_FMA(p, r, 8.333333333333333e-03); p = RG_FMA(p, r, 4.1666666666666664e-02);
  p = RG_FMA(p, r, 1.6666666666666666e-01);
  return RG_FMA(p, r, 0.5);
}

/* The same by polynomials of even and odd powers side by side: in one, each product waits for the one before. They take
   more registers, which exp(x) - 1 does not have left. */
RG_INLINE double rg_tail_in_two(double r) {
  const double z = r * r;
  double p = 2.08767569878681e-09, q = 1.6059043836821613e-10;
  p = RG_FMA(p, z, 2.755731922398589e-07); q = RG_FMA(q, z, 2.505210838544172e-08);
  p = RG_FMA(p, z, 2.48015873015873e-05); q = RG_FMA(q, z, 2.7557319223985893e-06);
  p = RG_FMA(p, z, 1.388888888888889e-03); q = RG_FMA(q, z, 1.984126984126984e-04);
  p = RG_FMA(p, z, 4.1666666666666664e-02); q = RG_FMA(q, z, 8.333333333333333e-03);
  p = RG_FMA(p, z, 0.5); q = RG_FMA(q, z, 1.6666666666666666e-01);
  return RG_FMA(q, r, p);
}

/* The last product gives infinity and zero. No choice of these follows it: GCC would compute what reads them in branches. */
RG_INLINE double rg_exp(double x) {
  double y = x > 709.79 ? 709.79 : x;
  y = y < -745.2 ? -745.2 : y;
  RG_REDUCED(y, 2046);
  RG_TWO_FACTORS(bits);
  return (1.0 + RG_FMA(r * r, rg_tail_in_two(r), r)) * s * t;
}

/* The same number for x <= 0: it has no upper bound, and 2^55 makes all powers of two normal. */
RG_INLINE double rg_exp_below(double x) {
  const double y = x < -745.2 ? -745.2 : x;
  RG_REDUCED(y, 1023 + 55);
  return (1.0 + RG_FMA(r * r, rg_tail_in_two(r), r)) * rg_bits(bits << 52) * 0x1p-55;
}

/* exp(x) if it is a normal number. */
RG_INLINE double rg_exp_normal(double x) {
  RG_REDUCED(x, 1023);
  return (1.0 + RG_FMA(r * r, rg_tail_in_two(r), r)) * rg_bits(bits << 52);
}

RG_INLINE double rg_expm1(double x) {
  double y = x > 709.79 ? 709.79 : x;
  y = y < -60.0 ? -60.0 : y;
  RG_REDUCED(y, 2046);
  RG_TWO_FACTORS(bits);
  const double p = r + (r * r * rg_tail(r) + lost);
  const double v = k == 0 ? p : k > 55 ? (1.0 + p) * s * t : s * t * p + (s * t - 1.0);
  return x == 0 ? x : v;
}

/* x = (1 + f) * 2^whole with 1 + f in [sqrt(1/2), sqrt(2)), for a normal number x. */
#define RG_SPLIT(x) \
  const uint64_t top = rg_int(x) + (UINT64_C(1024) << 52) - 0x3fe6a09e667f3bcd; \
  const double whole = rg_bits((int64_t)(top >> 52) + (rg_int(RG_ROUND) - 1024)) - RG_ROUND; \
  const double f = rg_bits((top & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1.0

/* log of m * 2^k with m in [sqrt(1/2), sqrt(2)), plus a small correction c; of a normal number x, which was scaled by 2^less. */
RG_INLINE double rg_log_of(double x, double less, double c) {
  RG_SPLIT(x);
  const double k = whole - less;
  const double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
  const double w = z * z;
  double p = 1.479819860511658591e-01, q = 1.531383769920937332e-01;
  p = RG_FMA(p, w, 1.818357216161805012e-01); q = RG_FMA(q, w, 2.222219843214978396e-01);
  p = RG_FMA(p, w, 2.857142874366239149e-01); q = RG_FMA(q, w, 3.999999999940941908e-01);
  p = RG_FMA(p, w, 6.666666666666735130e-01); p = RG_FMA(q, z, p);
  return k * 6.93147180369123816490e-01 - ((h - (s * (h + p * z) + (k * 1.90821492927058770002e-10 + c))) - f);
}

RG_INLINE double rg_log_with(double x, double c) {
  const int small = x < 0x1p-1022;
  double v = rg_log_of(small ? x * 0x1p54 : x, small ? 54.0 : 0.0, c);
  v = x == INFINITY ? INFINITY : v;
  v = x == 0 ? -INFINITY : v;
  return ((x < 0) | (x != x)) ? NAN : v;
}

RG_INLINE double rg_log(double x) { return rg_log_with(x, 0.0); }

RG_INLINE double rg_log1p(double x) {
  const double u = 1.0 + x, away = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  const double c = ((u == 0) | (u == INFINITY)) ? 0.0 : away / u;
  const double v = rg_log_with(u, c);
  return x == 0 ? x : v;
}

/* n / d for n = a + al and d = b + bl, where al and bl are what a and b have lost. */
#ifdef RG_FUSED
#define RG_QUOTIENT(T, s, fma) \
  RG_INLINE T rg_quotient##s(T a, T al, T b, T bl) { \
    const T over = 1 / b, v = a * over; \
    return v + (fma(-v, b, a) + (al - v * bl)) * over; \
  }
#else
#define RG_QUOTIENT(T, s, fma) \
  RG_INLINE T rg_quotient##s(T a, T al, T b, T bl) { \
    const T v = a / b; \
    return v + (al - v * bl) / b; \
  }
#endif
RG_QUOTIENT(double, , RG_FMA) RG_QUOTIENT(float, f, RG_FMAF)

/* Up to 0.625 |x| (1 + z p / q) with z = x * x, beyond it 1 - 2 / (exp(2 |x|) + 1): one division serves both. */
RG_INLINE double rg_tanh(double x) {
  const double y = __builtin_fabs(x), capped = y > 22.0 ? 22.0 : y, z = x * x;
  const double e = rg_exp_normal(2.0 * capped);
  const double p = RG_FMA(RG_FMA(-0x1.a186f50cf9349p-13, z, -0x1.4fd216ee8c936p-6), z, -0x1.5555555555554p-2);
  const double q = RG_FMA(RG_FMA(RG_FMA(0x1.b0f0c1d89261ep-13, z, 0x1.7d901ebd6c496p-6), z, 0x1.d890fde653e4fp-2), z, 1.0);
  const double v = (y < 0.625 ? y * z * p : -2.0) / (y < 0.625 ? q : e + 1.0) + (y < 0.625 ? y : 1.0);
  return __builtin_copysign(v, x);
}

RG_INLINE double rg_expit(double x) {
  const double e = rg_exp_below(x < 0 ? x : -x), d = 1.0 + e;
  return rg_quotient(x < 0 ? e : 1.0, 0.0, d, e - (d - 1.0));
}

/* Up to 1 x (1 + p), a polynomial in x * x; beyond it 1 - exp(-x * x) * q, q a polynomial in (x - 3) / (x + 3), both by even and odd
   powers side by side. The derivative of erf has the same exponential, which a compiler then computes once. */
RG_INLINE double rg_erf(double x) {
  const double y = __builtin_fabs(x), capped = y > 6.0 ? 6.0 : y, z = x * x, t = (capped - 3.0) / (capped + 3.0);
  const double zz = z * z, tt = t * t;
  double p = 0x1.7f072188e194dp-34, p1 = -0x1.29b9f1b3df556p-38;
  p = RG_FMA(p, zz, 0x1.fc4356498c2d9p-27); p1 = RG_FMA(p1, zz, -0x1.4e607b41a6416p-30);
  p = RG_FMA(p, zz, 0x1.b9e6509b9867dp-20); p1 = RG_FMA(p1, zz, -0x1.5f6d925a0bc7ap-23);
  p = RG_FMA(p, zz, 0x1.f9a326c233146p-14); p1 = RG_FMA(p1, zz, -0x1.f4d2561aeafd4p-17);
  p = RG_FMA(p, zz, 0x1.565bcd0e6502dp-8); p1 = RG_FMA(p1, zz, -0x1.c02db3feeb579p-11);
  p = RG_FMA(p, zz, 0x1.ce2f21a042bdep-4); p1 = RG_FMA(p1, zz, -0x1.b82ce312889bap-6);
  p1 = RG_FMA(p1, zz, -0x1.812746b0379e7p-2); p = RG_FMA(RG_FMA(p, z, p1), z, 0x1.06eba8214db69p-3);
  double q = 0x1.56695202d55bcp-20, q1 = 0x1.d0badb83f2cadp-29;
  q = RG_FMA(q, tt, -0x1.0cc37e8e915adp-17); q1 = RG_FMA(q1, tt, 0x1.0e3fb74fdc507p-19);
  q = RG_FMA(q, tt, 0x1.0cb2e63fe2177p-14); q1 = RG_FMA(q1, tt, -0x1.af086905fc57fp-17);
  q = RG_FMA(q, tt, -0x1.39085f2b38287p-11); q1 = RG_FMA(q1, tt, 0x1.7b9ef7977ceafp-15);
  q = RG_FMA(q, tt, 0x1.17c839090a469p-8); q1 = RG_FMA(q1, tt, 0x1.73101f6d2e434p-11);
  q = RG_FMA(q, tt, 0x1.258b13b00ec66p-4); q1 = RG_FMA(q1, tt, -0x1.8fa58eb5ea92cp-6);
  q = RG_FMA(q, tt, 0x1.f6ff204105a04p-3); q1 = RG_FMA(q1, tt, -0x1.336ffbef08b8ap-3);
  q = RG_FMA(q, tt, 0x1.6e9827d229d2dp-3); q1 = RG_FMA(q1, tt, -0x1.4e102b9cf8513p-2);
  q = RG_FMA(q1, t, q);
  const double far = 1.0 - rg_exp_below(-z) * q;
  return y < 1.0 ? RG_FMA(x, p, x) : __builtin_copysign(far, x);
}

/* x = n * pi / 2 + r with |r| <= pi / 4. The three parts of pi / 2 have 159 bits: with fused multiplications r is right
   for |x| < 2^45. Beyond it a kernel gives up, and NumPy computes. */
#define RG_FAR 0x1p45
#define RG_IS_FAR(size) (((size) > RG_FAR) & ((size) < INFINITY)) /* the sine of infinity is nan here as well */
#ifdef RG_FUSED
#define RG_TURNS(x) \
  const double shifted = (x) * 0x1.45f306dc9c883p-1 + RG_ROUND, k = shifted - RG_ROUND; \
  const int64_t n = rg_int(shifted); \
  const double a = __builtin_fma(-k, 0x1.921fb54442d18p+0, x), b = __builtin_fma(-k, 0x1.1a62633145c07p-54, a); \
  const double r = __builtin_fma(k, 0x1.f1976b7ed8fbcp-110, b), z = r * r

RG_INLINE double rg_near_zero(double r, double z) {
  const double w = z * z;
  double p = -0x1.ab159dc3b3bc0p-41, q = 0x1.61217b49ad799p-33;
  p = RG_FMA(p, w, -0x1.ae64540e0633bp-26); q = RG_FMA(q, w, 0x1.71de3a545dd92p-19);
  p = RG_FMA(p, w, -0x1.a01a01a019921p-13); q = RG_FMA(q, w, 0x1.1111111111110p-7);
  p = RG_FMA(p, w, -0x1.5555555555555p-3);
  return RG_FMA(r * z, RG_FMA(q, z, p), r);
}

RG_INLINE double rg_near_one(double z) {
  const double w = z * z;
  double p = 0x1.ab7663475731fp-45, q = -0x1.9394b6b53b9c7p-37;
  p = RG_FMA(p, w, 0x1.1eed8de97b2c8p-29); q = RG_FMA(q, w, -0x1.27e4fb77119ecp-22);
  p = RG_FMA(p, w, 0x1.a01a01a019d00p-16); q = RG_FMA(q, w, -0x1.6c16c16c16c16p-10);
  p = RG_FMA(p, w, 0x1.5555555555555p-5);
  return 1.0 - (0.5 * z - w * RG_FMA(q, z, p));
}

RG_INLINE double rg_sin(double x) {
  RG_TURNS(x);
  const double s = rg_near_zero(r, z), c = rg_near_one(z), v = (n & 1) ? c : s;
  return x == 0 ? x : (n & 2) ? -v : v;
}

RG_INLINE double rg_cos(double x) {
  RG_TURNS(x);
  const double s = rg_near_zero(r, z), c = rg_near_one(z), v = (n & 1) ? s : c;
  return ((n + 1) & 2) ? -v : v;
}

#else
#define rg_sin sin
#define rg_cos cos
#endif

/* In single precision twice as many elements fit into a vector. */
RG_INLINE float rg_bitsf(int32_t i) { float f; __builtin_memcpy(&f, &i, 4); return f; }
RG_INLINE int32_t rg_intf(float f) { int32_t i; __builtin_memcpy(&i, &f, 4); return i; }
/* x = k * log 2 + r; the first part of log 2 has nine bits, so k times it is exact. */
#define RG_ROUNDF 12582912.0f
#define RG_REDUCEDF(x, more) \
  const float shifted = RG_FMAF(x, 0x1.715476p0f, RG_ROUNDF + (more)), k = shifted - (RG_ROUNDF + (more)); \
  const uint32_t bits = rg_intf(shifted); \
  const float high = RG_FMAF(-k, 0x1.63p-1f, x), r = RG_FMAF(k, 0x1.bd0106p-13f, high), lost = RG_FMAF(k, 0x1.bd0106p-13f, high - r)
#define RG_TWO_FACTORSF(bits) const float s = rg_bitsf((bits) >> 1 << 23), t = rg_bitsf(((bits) << 23) - ((bits) >> 1 << 23))

/* exp(r) - 1 - r for |r| <= 0.35, divided by r * r. */
RG_INLINE float rg_tailf(float r) {
  float p = 0x1.6da86ap-10f;
  p = RG_FMAF(p, r, 0x1.1249a2p-7f); p = RG_FMAF(p, r, 0x1.55546cp-5f); p = RG_FMAF(p, r, 0x1.55547ap-3f);
  return RG_FMAF(p, r, 0.5f);
}
RG_INLINE float rg_expf(float x) {
  float y = x > 88.8f ? 88.8f : x;
  y = y < -104.0f ? -104.0f : y;
  RG_REDUCEDF(y, 254);
  RG_TWO_FACTORSF(bits);
  return RG_FMAF(RG_FMAF(rg_tailf(r), r, 1.0f), r, 1.0f) * s * t;
}
RG_INLINE float rg_exp_belowf(float x) {
  const float y = x < -104.0f ? -104.0f : x;
  RG_REDUCEDF(y, 127 + 25);
  return RG_FMAF(RG_FMAF(rg_tailf(r), r, 1.0f), r, 1.0f) * rg_bitsf(bits << 23) * 0x1p-25f;
}
RG_INLINE float rg_exp_normalf(float x) {
  RG_REDUCEDF(x, 127);
  return RG_FMAF(RG_FMAF(rg_tailf(r), r, 1.0f), r, 1.0f) * rg_bitsf(bits << 23);
}
RG_INLINE float rg_expm1f(float x) {
  float y = x > 88.8f ? 88.8f : x;
  y = y < -30.0f ? -30.0f : y;
  RG_REDUCEDF(y, 254);
  RG_TWO_FACTORSF(bits);
  const float p = r + RG_FMAF(r * r, rg_tailf(r), lost);
  const float v = k == 0 ? p : k > 26 ? (1.0f + p) * s * t : s * t * p + (s * t - 1.0f);
  return x == 0 ? x : v;
}
RG_INLINE float rg_log_withf(float x, float c) {
  const int small = x < 0x1p-126f;
  const int32_t bits = rg_intf(small ? x * 0x1p25f : x), top = bits - 0x3f3504f3;
  const float k = (float)(top >> 23) - (small ? 25.0f : 0.0f), f = rg_bitsf(bits - (top & -0x800000)) - 1.0f;
  const float s = f / (2.0f + f), z = s * s, h = 0.5f * f * f;
  float p = 0x1.ddd172p-3f;
  p = RG_FMAF(p, z, 0x1.245c38p-2f); p = RG_FMAF(p, z, 0x1.9999ecp-2f); p = RG_FMAF(p, z, 0x1.555556p-1f);
  float v = k * 0x1.62e3p-1f - ((h - RG_FMAF(s, h + z * p, RG_FMAF(k, 0x1.2fefa2p-17f, c))) - f);
  v = x == INFINITY ? INFINITY : v;
  v = x == 0 ? -INFINITY : v;
  return ((x < 0) | (x != x)) ? NAN : v;
}
RG_INLINE float rg_logf(float x) { return rg_log_withf(x, 0.0f); }
RG_INLINE float rg_log1pf(float x) {
  const float u = 1.0f + x, away = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const float c = ((u == 0) | (u == INFINITY)) ? 0.0f : away / u, v = rg_log_withf(u, c);
  return x == 0 ? x : v;
}
/* Up to 0.625 a polynomial in x * x, beyond it 1 - 2 / (exp(2 |x|) + 1). */
RG_INLINE float rg_tanhf(float x) {
  const float y = __builtin_fabsf(x), capped = y > 10.0f ? 10.0f : y, z = x * x;
  const float e = rg_exp_normalf(2.0f * capped);
  float p = -0x1.73641ap-8f;
  p = RG_FMAF(p, z, 0x1.519c92p-6f); p = RG_FMAF(p, z, -0x1.b827fep-5f); p = RG_FMAF(p, z, 0x1.110692p-3f);
  p = RG_FMAF(p, z, -0x1.555530p-2f);
  const float near = RG_FMAF(y * z, p, y), far = 1.0f - 2.0f / (e + 1.0f);
  return __builtin_copysignf(y < 0.625f ? near : far, x);
}
RG_INLINE float rg_sinf(float x) { return (float)rg_sin(x); }
RG_INLINE float rg_cosf(float x) { return (float)rg_cos(x); }
/* Up to 1 x (1 + p) with a polynomial in x * x, beyond it 1 - exp(-q) with one in |x|. */
RG_INLINE float rg_erff(float x) {
  const float y = __builtin_fabsf(x), capped = y > 4.0f ? 4.0f : y, z = x * x;
  float p = 0x1.4969fep-14f, q = -0x1.852594p-13f;
  p = RG_FMAF(p, z, -0x1.a3f6ecp-11f); p = RG_FMAF(p, z, 0x1.5405aep-8f); p = RG_FMAF(p, z, -0x1.b7f90cp-6f);
  p = RG_FMAF(p, z, 0x1.ce2cf8p-4f); p = RG_FMAF(p, z, -0x1.81273ep-2f); p = RG_FMAF(p, z, 0x1.06eba8p-3f);
  q = RG_FMAF(q, capped, 0x1.8148p-9f); q = RG_FMAF(q, capped, -0x1.653fa4p-6f); q = RG_FMAF(q, capped, 0x1.a6092ep-4f);
  q = RG_FMAF(q, capped, 0x1.46c5b6p-1f); q = RG_FMAF(q, capped, 0x1.2085a2p+0f); q = RG_FMAF(q, capped, 0x1.73245cp-12f);
  return y < 1.0f ? RG_FMAF(x, p, x) : __builtin_copysignf(1.0f - rg_exp_normalf(-q), x);
}
RG_INLINE float rg_expitf(float x) {
  const float e = rg_exp_belowf(x < 0 ? x : -x), d = 1.0f + e;
  return rg_quotientf(x < 0 ? e : 1.0f, 0.0f, d, e - (d - 1.0f));
}

/* The larger and the smaller of two numbers; nan if one is nan. */
RG_INLINE double rg_larger(double a, double b) { return ((b > a) | (b != b)) ? b : a; }
RG_INLINE double rg_smaller(double a, double b) { return ((b < a) | (b != b)) ? b : a; }
RG_INLINE float rg_largerf(float a, float b) { return ((b > a) | (b != b)) ? b : a; }
RG_INLINE float rg_smallerf(float a, float b) { return ((b < a) | (b != b)) ? b : a; }
#pragma omp declare reduction(rg_max : double : omp_out = rg_larger(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(rg_min : double : omp_out = rg_smaller(omp_out, omp_in)) initializer(omp_priv = INFINITY)
#pragma omp declare reduction(rg_maxf : float : omp_out = rg_largerf(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(rg_minf : float : omp_out = rg_smallerf(omp_out, omp_in)) initializer(omp_priv = INFINITY)

/* The larger and the smaller of two numbers; nan only if both are nan. */
RG_INLINE double rg_larger_number(double a, double b) { return ((b > a) | (a != a)) ? b : a; }
RG_INLINE double rg_smaller_number(double a, double b) { return ((b < a) | (a != a)) ? b : a; }
RG_INLINE float rg_larger_numberf(float a, float b) { return ((b > a) | (a != a)) ? b : a; }
RG_INLINE float rg_smaller_numberf(float a, float b) { return ((b < a) | (a != a)) ? b : a; }
#pragma omp declare reduction(rg_nanmax : double : omp_out = rg_larger_number(omp_out, omp_in)) initializer(omp_priv = NAN)
#pragma omp declare reduction(rg_nanmin : double : omp_out = rg_smaller_number(omp_out, omp_in)) initializer(omp_priv = NAN)
#pragma omp declare reduction(rg_nanmaxf : float : omp_out = rg_larger_numberf(omp_out, omp_in)) initializer(omp_priv = NAN)
#pragma omp declare reduction(rg_nanminf : float : omp_out = rg_smaller_numberf(omp_out, omp_in)) initializer(omp_priv = NAN)
