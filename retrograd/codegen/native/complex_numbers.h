/* Complex numbers as NumPy computes them, without the recovery of infinities that C's operators have. */
#define RG_LARGE 700 /* exponents whose powers of e are normal numbers */
#define RG_LARGEf 80
#define RG_COMPLEX(T, s) \
static inline T _Complex rg_cmul##s(T _Complex x, T _Complex y) { \
  const T a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y; \
  return __builtin_complex((T)(rg_rounded(a * c) - rg_rounded(b * d)), (T)(a * d + b * c)); \
} \
static inline T _Complex rg_cdiv##s(T _Complex x, T _Complex y) { \
  const T a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y; \
  const int wide = fabs##s(c) >= fabs##s(d), zero = (c == 0) & (d == 0); \
  const T p = wide ? c : d, q = wide ? d : c, r = q / p, scale = 1 / (p + q * r); \
  const T re = (wide ? a + b * r : a * r + b) * scale; \
  const T im = (wide ? b - rg_rounded(a * r) : rg_rounded(b * r) - a) * scale; \
  return __builtin_complex((T)(zero ? a / fabs##s(c) : re), (T)(zero ? b / fabs##s(c) : im)); \
} \
static inline T _Complex rg_creciprocal##s(T _Complex x) { \
  const T c = __real__ x, d = __imag__ x; \
  const int wide = fabs##s(d) <= fabs##s(c); \
  const T p = wide ? c : d, q = wide ? d : c, r = q / p, whole = p + q * r; \
  return __builtin_complex((T)((wide ? 1 : r) / whole), (T)((wide ? -r : -1) / whole)); \
} \
static inline T rg_cabs##s(T _Complex x) { return rg_hypot##s(__real__ x, __imag__ x); } \
static inline T _Complex rg_csign##s(T _Complex x) { \
  const T a = __real__ x, b = __imag__ x, size = rg_hypot##s(a, b); \
  const int far = fabs##s(a) == INFINITY, high = fabs##s(b) == INFINITY; \
  const T p = far ? copysign##s(1, a) : 0, q = far ? 0 : copysign##s(1, b); \
  const T re = size == 0 ? 0 : size == INFINITY ? (far & high ? NAN : p) : a / size; \
  const T im = size == 0 ? 0 : size == INFINITY ? (far & high ? NAN : q) : b / size; \
  return __builtin_complex((T)(size != size ? NAN : re), (T)(size != size ? NAN : im)); \
} \
static inline T _Complex rg_cexp##s(T _Complex x) { \
  const T size = rg_exp##s(__real__ x), angle = __imag__ x; \
  return __builtin_complex((T)(size * rg_cos##s(angle)), (T)(size * rg_sin##s(angle))); \
}
RG_COMPLEX(double, )
RG_COMPLEX(float, f)
