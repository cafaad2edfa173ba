/* Powers, further logarithms, angles and roots. Where a sum of two numbers is needed, a second one holds what the first
   has lost; that takes fused multiplications. Without them the functions of the C library are there. */
#ifdef RG_FUSED

RG_INLINE double rg_sized(double x) { return __builtin_fabs(x); }
RG_INLINE double rg_signed_as(double v, double x) { return __builtin_copysign(v, x); }
RG_INLINE double rg_two_to(int64_t n) { return rg_bits((int64_t)((uint64_t)(n + 1023) << 52)); }

/* log m, and what it has lost, for x = m * 2^k with m in [sqrt(1/2), sqrt(2)): 2 s (1 + z / 3 + z * z * q), where
   s = (m - 1) / (m + 1) and z = s * s. For positive numbers. */
RG_INLINE double rg_long_log(double x, double *lost, double *k) {
  const double scaled = x < 0x1p-1022 ? x * 0x1p54 : x;
  RG_SPLIT(scaled);
  *k = whole - (x < 0x1p-1022 ? 54.0 : 0.0);
  const double d = 2.0 + f, over = 1.0 / d, s = f * over;
  const double sl = RG_FMA(-s, f - (d - 2.0), RG_FMA(-s, d, f)) * over;
  const double z = s * s, zl = RG_FMA(s, s, -z) + 2.0 * s * sl;
  double q = 0x1.e03a7acf07f85p-5;
  q = RG_FMA(q, z, 0x1.df7ba1f4809c3p-5); q = RG_FMA(q, z, 0x1.1118cd67251c5p-4); q = RG_FMA(q, z, 0x1.3b1395b82701ep-4);
  q = RG_FMA(q, z, 0x1.745d177ad436ap-4); q = RG_FMA(q, z, 0x1.c71c71c6ea5acp-4); q = RG_FMA(q, z, 0x1.2492492492522p-3);
  q = RG_FMA(q, z, 0x1.999999999999ap-3);
  const double u = z * 0x1.5555555555555p-2, w = z * z * q, v = u + w;
  const double vl = (u - v) + w + (RG_FMA(z, 0x1.5555555555555p-2, -u) + (z * 0x1.5555555555555p-56 + zl * 0x1.5555555555555p-2));
  const double b = 2.0 * s, t = b * v, tl = RG_FMA(b, v, -t) + (b * vl + 2.0 * sl * v), sum = b + t;
  *lost = (b - sum) + t + (tl + 2.0 * sl);
  return sum;
}

/* exp(p + c) * 2^-m for a small c. */
RG_INLINE double rg_exp_with(double p, double c, int64_t m) {
  double y = p > 711.0 ? 711.0 : p;
  y = y < -746.0 ? -746.0 : y;
  RG_REDUCED(y, 2046);
  RG_TWO_FACTORS(bits - m);
  const double more = lost + (rg_sized(p) < 800.0 ? c : 0.0), u = r + more, rest = (r - u) + more;
  return (1.0 + (u + (u * u * rg_tail(u) + rest))) * s * t;
}

RG_INLINE double rg_pow(double x, double y) {
  const double a = rg_sized(x);
  double l, k, h = rg_long_log(a, &l, &k);
  const double whole = k * RG_LN2_HIGH, sum = whole + h, rest = (whole - sum) + h + (l + k * RG_LN2_LOW), both = sum + rest;
  l = k == 0 ? l : (sum - both) + rest;
  h = a == 0 ? -INFINITY : a == INFINITY ? INFINITY : k == 0 ? h : both;
  const double p = a == 1 && y == y ? 0.0 : y * h;
  const double c = a == 1 ? 0.0 : RG_FMA(y, h, -p) + y * l;
  double v = rg_exp_with(p, c, 0);
  const double sign = __builtin_copysign(1.0, x), odd = __builtin_rint(0.5 * y) != 0.5 * y ? sign : 1.0;
  v = __builtin_rint(y) == y ? v * odd : ((x < 0) & (a != INFINITY)) ? NAN : v;
  v = ((x != x) | (y != y)) ? NAN : v;
  return ((y == 0) | (x == 1)) ? 1.0 : v;
}

RG_INLINE double rg_exp2(double x) {
  double y = x > 1025.0 ? 1025.0 : x;
  y = y < -1080.0 ? -1080.0 : y;
  const double shifted = y + (RG_ROUND + 2046), r = (y - (shifted - (RG_ROUND + 2046))) * 0x1.62e42fefa39efp-1;
  const uint64_t bits = rg_int(shifted);
  RG_TWO_FACTORS(bits);
  return (1.0 + (r + r * r * rg_tail(r))) * s * t;
}

/* k * a + (h + l) * b, where a and b are sums of two; for logarithms to another base. */
RG_INLINE double rg_log_to(double x, double a, double al, double b, double bl) {
  double l, k, h = rg_long_log(rg_sized(x), &l, &k);
  const double p = h * b, pl = RG_FMA(h, b, -p) + (h * bl + l * b), whole = k * a, v = whole + p;
  const double w = v + (((whole - v) + p) + (pl + k * al));
  const double u = x == INFINITY ? INFINITY : x == 0 ? -INFINITY : w;
  return ((x < 0) | (x != x)) ? NAN : u;
}
RG_INLINE double rg_log2(double x) { return rg_log_to(x, 1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56); }
RG_INLINE double rg_log10(double x) {
  return rg_log_to(x, 0x1.34413508p-2, 0x1.f79fef311f12bp-34, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
}

/* The angle of the point (x, y): with 0 <= b <= a it is that of b / a, or pi / 4 and that of (b - a) / (b + a). */
RG_INLINE double rg_atan2(double y, double x) {
  double u = rg_sized(x), v = rg_sized(y);
  const int steep = v > u;
  double a = steep ? v : u, b = steep ? u : v;
  b = a == INFINITY ? (b == INFINITY ? 1.0 : 0.0) : b;
  a = a == INFINITY ? 1.0 : a;
  a = a == 0 ? 1.0 : a;
  const double scale = a > 0x1p900 ? 0x1p-600 : a < 0x1p-400 ? 0x1p600 : 1.0;
  a *= scale; b *= scale;
  const int wide = b > 0.41421356 * a;
  const double n = wide ? b - a : b, d = wide ? b + a : a, over = 1.0 / d, t = n * over;
  const double dl = wide ? b - (d - a) : 0.0, nl = wide ? b - (n + a) : 0.0;
  const double e = (RG_FMA(-t, d, n) + (nl - t * dl)) * over, z = t * t;
  double p = 0x1.0a5f9b30092c3p-6;
  p = RG_FMA(p, z, -0x1.1aff6be5c2d50p-5); p = RG_FMA(p, z, 0x1.74c978a6dcea9p-5); p = RG_FMA(p, z, -0x1.ac761bf063541p-5);
  p = RG_FMA(p, z, 0x1.e199784c12a9ep-5); p = RG_FMA(p, z, -0x1.110e814671e04p-4); p = RG_FMA(p, z, 0x1.3b1392795fc5ap-4);
  p = RG_FMA(p, z, -0x1.745d165a9c6e5p-4); p = RG_FMA(p, z, 0x1.c71c71c2f380bp-4); p = RG_FMA(p, z, -0x1.249249248d684p-3);
  p = RG_FMA(p, z, 0x1.9999999999952p-3); p = RG_FMA(p, z, -0x1.5555555555555p-2);
  /* m * pi / 4 with the angle, or without it; then the same seen from the other axis, and from the other side */
  double m = wide ? 1.0 : 0.0, side = 1.0;
  m = steep ? 2.0 - m : m; side = steep ? -side : side;
  const int back = __builtin_copysign(1.0, x) < 0;
  m = back ? 4.0 - m : m; side = back ? -side : side;
  const double base = m * 0x1.921fb54442d18p-1, bl = RG_FMA(m, 0x1.921fb54442d18p-1, -base) + m * 0x1.1a62633145c07p-55;
  const double turned = side * t, sum = base + turned, far = sum + (((base - sum) + turned) + (bl + side * (e + t * z * p)));
  const double w = m == 0 ? t + (e + t * z * p) : far;
  return ((x != x) | (y != y)) ? NAN : rg_signed_as(w, y);
}
RG_INLINE double rg_atan(double x) { return rg_atan2(x, 1.0); }
RG_INLINE double rg_asin(double x) { return rg_atan2(x, __builtin_sqrt((1.0 - x) * (1.0 + x))); }
RG_INLINE double rg_acos(double x) { return rg_atan2(__builtin_sqrt((1.0 - x) * (1.0 + x)), x); }

RG_INLINE double rg_cosh(double x) {
  const double e = rg_exp_with(rg_sized(x), 0.0, 1);
  return e + 0.25 / e;
}
RG_INLINE double rg_sinh(double x) {
  const double a = rg_sized(x), e = rg_exp_with(a, 0.0, 1), z = x * x;
  double p = 0x1.b41232cf9950fp-41;
  p = RG_FMA(p, z, 0x1.611cb330c1fe8p-33); p = RG_FMA(p, z, 0x1.ae6460fae3728p-26); p = RG_FMA(p, z, 0x1.71de3a4e14f40p-19);
  p = RG_FMA(p, z, 0x1.a01a01a01ee70p-13); p = RG_FMA(p, z, 0x1.11111111110fdp-7); p = RG_FMA(p, z, 0x1.5555555555555p-3);
  const double v = rg_signed_as(e - 0.25 / e, x);
  return a < 1.0 ? RG_FMA(x * z, p, x) : v;
}

/* x = m * 8^k with m in [1, 8): two steps of Halley's and one of Newton's, from a polynomial. */
RG_INLINE double rg_cbrt(double x) {
  const double a = rg_sized(x), scaled = a < 0x1p-1022 ? a * 0x1p54 : a;
  const int64_t bits = rg_int(scaled);
  const double top = rg_bits((bits >> 52) + rg_int(RG_ROUND)) - RG_ROUND - 1023.0;
  const double third = __builtin_floor((top + 0.25) * 0x1.5555555555555p-2);
  const int64_t e = rg_int(top - 3.0 * third + RG_ROUND) - rg_int(RG_ROUND), k = rg_int(third + RG_ROUND) - rg_int(RG_ROUND);
  const double m = rg_bits((bits & 0xfffffffffffff) | (int64_t)((uint64_t)(e + 1023) << 52));
  double t = 0x1.aaa35d014643bp-10;
  t = RG_FMA(t, m, -0x1.16bdce74d65dbp-5); t = RG_FMA(t, m, 0x1.50ba80e69b747p-2); t = RG_FMA(t, m, 0x1.6ef7d7cd66d8cp-1);
  double c = t * t * t;
  t = t * ((c + 2.0 * m) / (2.0 * c + m));
  c = t * t * t;
  t = t * ((c + 2.0 * m) / (2.0 * c + m));
  const double s = t * t, sl = RG_FMA(t, t, -s), left = RG_FMA(-s, t, m) - sl * t;
  t = t + left / (3.0 * s);
  const double v = t * rg_two_to(k - (a < 0x1p-1022 ? 18 : 0));
  return ((x == 0) | !(a < INFINITY)) ? x : rg_signed_as(v, x);
}

RG_INLINE double rg_hypot(double x, double y) {
  const double u = rg_sized(x), v = rg_sized(y), top = u > v ? u : v;
  const double scale = top > 0x1p500 ? 0x1p-600 : top < 0x1p-400 ? 0x1p600 : 1.0, back = top > 0x1p500 ? 0x1p600 : top < 0x1p-400 ? 0x1p-600 : 1.0;
  const double a = (u > v ? u : v) * scale, b = (u > v ? v : u) * scale;
  const double p = a * a, q = b * b, s = p + q, h = __builtin_sqrt(s);
  const double lost = (p - s) + q + (RG_FMA(a, a, -p) + RG_FMA(b, b, -q)), e = RG_FMA(-h, h, s) + lost;
  const double w = h == 0 ? 0.0 : (h + e / (2.0 * h)) * back;
  return ((u == INFINITY) | (v == INFINITY)) ? INFINITY : ((x != x) | (y != y)) ? NAN : w;
}

#else
#define rg_pow pow
#define rg_exp2 exp2
#define rg_log2 log2
#define rg_log10 log10
#define rg_atan2 atan2
#define rg_atan atan
#define rg_asin asin
#define rg_acos acos
#define rg_cosh cosh
#define rg_sinh sinh
#define rg_cbrt cbrt
#define rg_hypot hypot
#endif

RG_INLINE float rg_exp2f(float x) { return (float)rg_exp2(x); }
RG_INLINE float rg_log2f(float x) { return (float)rg_log2(x); }
RG_INLINE float rg_log10f(float x) { return (float)rg_log10(x); }
RG_INLINE float rg_atanf(float x) { return (float)rg_atan(x); }
RG_INLINE float rg_asinf(float x) { return (float)rg_asin(x); }
RG_INLINE float rg_acosf(float x) { return (float)rg_acos(x); }
RG_INLINE float rg_coshf(float x) { return (float)rg_cosh(x); }
RG_INLINE float rg_sinhf(float x) { return (float)rg_sinh(x); }
RG_INLINE float rg_cbrtf(float x) { return (float)rg_cbrt(x); }
RG_INLINE float rg_powf(float x, float y) { return (float)rg_pow(x, y); }
RG_INLINE float rg_atan2f(float x, float y) { return (float)rg_atan2(x, y); }
RG_INLINE float rg_hypotf(float x, float y) { return (float)rg_hypot(x, y); }

/* log(1 + exp(x)) for x <= 0. */
RG_INLINE double rg_softplus(double x) {
  const double e = rg_exp_below(x), u = 1.0 + e;
  return rg_log_of(u, 0.0, (e - (u - 1.0)) / u);
}
RG_INLINE float rg_softplusf(float x) { return (float)rg_softplus(x); }

/* Sums of exponentials, and the remainder and the quotient that Python has. */
#define RG_MORE(T, s) \
  RG_INLINE T rg_logaddexp##s(T x, T y) { \
    const T d = x - y, more = rg_softplus##s(d > 0 ? -d : d), sum = (d > 0 ? x : y) + more; \
    return x == y ? x + (T)0.6931471805599453 : sum; \
  } \
  RG_INLINE T rg_log_expit##s(T x) { return (x < 0 ? x : -(T)0) - rg_softplus##s(x < 0 ? x : -x); } \
  RG_INLINE T rg_remainder##s(T x, T y) { \
    const T r = fmod##s(x, y); \
    return y == 0 ? NAN : r == 0 ? copysign##s(0, y) : (y < 0) != (r < 0) ? r + y : r; \
  } \
  RG_INLINE T rg_floor_divide##s(T x, T y) { \
    const T r = fmod##s(x, y), q = (x - r) / y, d = ((r != 0) & ((y < 0) != (r < 0))) ? q - 1 : q, n = floor##s(d); \
    return y == 0 ? x / y : d == 0 ? copysign##s(0, x / y) : d - n > (T)0.5 ? n + 1 : n; \
  }
RG_MORE(double, )
RG_MORE(float, f)
