/* Value and gradient of the Lorenz row, as a person writes it: states are kept, each step is run again on the way back. */
#include <stdlib.h>

typedef struct { double x, y, z; } vec;
static vec flow(vec s, vec p) { return (vec){p.x * (s.y - s.x), s.x * (p.y - s.z) - s.y, s.x * s.y - p.z * s.z}; }
static vec moved(vec s, vec k, double h) { return (vec){s.x + h * k.x, s.y + h * k.y, s.z + h * k.z}; }
static vec pulled(vec s, vec p, vec ct, vec *dp) {
  dp->x += ct.x * (s.y - s.x); dp->y += ct.y * s.x; dp->z -= ct.z * s.z;
  return (vec){ct.y * (p.y - s.z) + ct.z * s.y - ct.x * p.x, ct.x * p.x - ct.y + ct.z * s.x, -ct.y * s.x - ct.z * p.z};
}

double lorenz(const double *in, double *out, long steps) {
  const double h = 0.001;
  const vec p = {in[3], in[4], in[5]};
  vec s = {in[0], in[1], in[2]}, dp = {0, 0, 0}, *states = malloc(steps * sizeof(vec));
  for (long t = 0; t < steps; t++) {
    states[t] = s;
    const vec a = flow(s, p), b = flow(moved(s, a, h / 2), p), c = flow(moved(s, b, h / 2), p), d = flow(moved(s, c, h), p);
    s = moved(s, moved(moved(a, moved(b, c, 1), 2), d, 1), h / 6);
  }
  const double value = s.x * s.x + s.y * s.y + s.z * s.z;
  vec ct = {2 * s.x, 2 * s.y, 2 * s.z};
  for (long t = steps - 1; t >= 0; t--) {
    s = states[t];
    const vec a = flow(s, p), sb = moved(s, a, h / 2), b = flow(sb, p), sc = moved(s, b, h / 2), c = flow(sc, p), sd = moved(s, c, h);
    const vec none = {0, 0, 0}, sixth = moved(none, ct, h / 6), third = moved(none, ct, h / 3);
    const vec kd = pulled(sd, p, sixth, &dp), kc = pulled(sc, p, moved(third, kd, h), &dp);
    const vec kb = pulled(sb, p, moved(third, kc, h / 2), &dp), ka = pulled(s, p, moved(sixth, kb, h / 2), &dp);
    ct = moved(moved(moved(moved(ct, ka, 1), kb, 1), kc, 1), kd, 1);
  }
  out[0] = ct.x; out[1] = ct.y; out[2] = ct.z; out[3] = dp.x; out[4] = dp.y; out[5] = dp.z;
  free(states);
  return value;
}
