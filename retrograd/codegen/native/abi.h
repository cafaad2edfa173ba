/* What kernels use of Python and NumPy, declared here: Python.h is often not installed, and takes long to read. */
#include <stdint.h>
#include <stddef.h>
#ifndef RG_SHARED /* what object files define that all modules are linked with; else it is in this file */
#define RG_SHARED static __attribute__((unused, noinline)) /* inlined, it takes long to compile */
#endif
typedef struct PyObject { int64_t refcnt; struct PyObject *type; } PyObject;
typedef struct { PyObject base; char *data; int nd; int64_t *dims, *strides; PyObject *owner, *descr; int flags; } Array;
typedef struct { PyObject base; void *type; char kind, letter, order, unused; int number; } Descr;
typedef struct { const char *name; void *function; int flags; const char *doc; } Method;
typedef struct {
  PyObject base; void *init; int64_t index; PyObject *copy;
  const char *name, *doc; int64_t size; Method *methods; void *slots, *traverse, *clear, *free;
} Definition;
typedef struct { int slot; void *function; } Slot;
typedef struct { const char *name; int size, item; unsigned flags; Slot *slots; } Spec;
PyObject *PyType_FromSpecWithBases(Spec *, PyObject *);
PyObject *PyModule_Create2(Definition *, int), *PyTuple_New(int64_t), *PyFloat_FromDouble(double);
PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *), *PyBool_FromLong(long);
PyObject *PyTuple_GetItem(PyObject *, int64_t), *PyList_GetItem(PyObject *, int64_t);
PyObject *PyObject_GetAttr(PyObject *, PyObject *), *PyCFunction_NewEx(Method *, PyObject *, PyObject *);
int PyTuple_SetItem(PyObject *, int64_t, PyObject *), PyErr_ExceptionMatches(PyObject *);
int PyContextVar_Get(PyObject *, PyObject *, PyObject **);
PyObject *PyDict_GetItem(PyObject *, PyObject *), *PyFunction_GetCode(PyObject *), *PyFunction_GetGlobals(PyObject *);
PyObject *PyObject_CallNoArgs(PyObject *), *PyList_New(int64_t), *PyDict_New(void);
int PyList_SetItem(PyObject *, int64_t, PyObject *), PyDict_SetItem(PyObject *, PyObject *, PyObject *);
int PyDict_Next(PyObject *, int64_t *, PyObject **, PyObject **), PyObject_RichCompareBool(PyObject *, PyObject *, int);
int64_t PyTuple_Size(PyObject *), PyList_Size(PyObject *), PyDict_Size(PyObject *);
long long PyLong_AsLongLong(PyObject *);
PyObject *PyErr_Occurred(void);
void PyErr_Clear(void), PyErr_SetString(PyObject *, const char *), *PyLong_AsVoidPtr(PyObject *), Py_IncRef(PyObject *), Py_DecRef(PyObject *);
void *PyEval_SaveThread(void), PyEval_RestoreThread(void *);
extern PyObject PyFunction_Type, PyDict_Type, PyList_Type, PyUnicode_Type, PyBytes_Type, PyFloat_Type, PyComplex_Type, PyLong_Type, _Py_TrueStruct, _Py_FalseStruct, _Py_NoneStruct, *PyExc_Exception, *PyExc_TypeError;
PyObject *PyLong_FromLongLong(long long);
void *malloc(size_t), *realloc(void *, size_t), free(void *), *memcpy(void *, const void *, size_t);
int posix_memalign(void **, size_t, size_t), madvise(void *, size_t, int);

/* Storage, which tracemalloc counts, as that of NumPy's arrays; much of it in large pages, which take less time to be
   there. */
int PyTraceMalloc_Track(unsigned, uintptr_t, size_t), PyTraceMalloc_Untrack(unsigned, uintptr_t);
#define DOMAIN 389047
static void *storage(size_t bytes) {
  void *found = 0;
  if (bytes < 1 << 25) found = malloc(bytes);
  else if (posix_memalign(&found, 1 << 21, bytes)) return NULL;
#ifdef __linux__
  else madvise(found, bytes, 14);
#endif
  if (found) PyTraceMalloc_Track(DOMAIN, (uintptr_t)found, bytes);
  return found;
}
static int keeps = 1; /* whether kernels keep what they have for the next call */
static void given_back(void *block) {
  if (block) PyTraceMalloc_Untrack(DOMAIN, (uintptr_t)block);
  free(block);
}

double exp2(double), log2(double), log10(double), sin(double), cos(double), tan(double), asin(double), acos(double);
double atan(double), atan2(double, double), hypot(double, double), sinh(double), cosh(double), asinh(double);
double acosh(double), atanh(double), cbrt(double), erf(double), erfc(double), pow(double, double), sqrt(double);
double fabs(double), floor(double), ceil(double), trunc(double), rint(double), copysign(double, double);
double fmod(double, double), nextafter(double, double);
float exp2f(float), log2f(float), log10f(float), sinf(float), cosf(float), tanf(float), asinf(float), acosf(float);
float atanf(float), atan2f(float, float), hypotf(float, float), sinhf(float), coshf(float), asinhf(float);
float acoshf(float), atanhf(float), cbrtf(float), erff(float), erfcf(float), powf(float, float), sqrtf(float);
float fabsf(float), floorf(float), ceilf(float), truncf(float), rintf(float), copysignf(float, float);
float fmodf(float, float), nextafterf(float, float);

/* A product: GCC makes one operation of products with sums and differences in turn, unasked. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define rg_rounded(x) __builtin_assoc_barrier(x)
#endif
#endif
#ifndef rg_rounded
#define rg_rounded(x) (x)
#endif

#define F8 0
#define F4 1
#define I8 2
#define B1 3
#define C16 4
#define C8 5
#define TYPES 6
static PyObject *array_type, *descrs[TYPES], *scalars[TYPES];
static void **api; /* NumPy's table of functions */
#define SCALAR(data, kind) (((PyObject *(*)(void *, PyObject *, PyObject *))api[60])(data, descrs[kind], 0))
#define IN_C_ORDER(x) (((PyObject *(*)(PyObject *, int))api[85])(x, 0))

/* A new array. */
static PyObject *empty(int nd, int64_t *dims, int kind) {
  Py_IncRef(descrs[kind]);
  return ((PyObject *(*)(int, int64_t *, PyObject *, int))api[184])(nd, dims, descrs[kind], 0);
}

/* Whether a dtype is the one of a kind; unpickled arrays have an equal one, which is another object. */
static int same(PyObject *x, int kind) {
  const Descr *a = (Descr *)x, *b = (Descr *)descrs[kind];
  return a == b || (a->number == b->number && a->order == b->order);
}

/* The elements of an array, or NULL. A copy in C order, where one is needed, goes into *copy. */
static void *elements(PyObject *x, int nd, const int64_t *dims, int kind, PyObject **copy) {
  Array *a = (Array *)x;
  if (x->type != array_type || a->nd != nd || !same(a->descr, kind)) return NULL;
  for (int k = 0; k < nd; k++) if (a->dims[k] != dims[k]) return NULL;
  if ((a->flags & 0x101) != 0x101) { /* in C order, aligned */
    if (!(a = (Array *)IN_C_ORDER(x))) { PyErr_Clear(); return NULL; }
    *copy = (PyObject *)a;
  }
  return a->data;
}

/* An operand, or its copy, as a result. */
static PyObject *over(PyObject *x, PyObject *copy) {
  PyObject *found = copy ? copy : x;
  Py_IncRef(found);
  return found;
}

/* The value of a number, or NULL: a scalar of NumPy's, an array without axes, or Python's own. */
static void *value(PyObject *x, int kind, void *block) {
  if (x->type == scalars[kind]) return (char *)x + sizeof(PyObject);
  if (x->type == array_type) {
    Array *a = (Array *)x;
    return a->nd == 0 && same(a->descr, kind) && (a->flags & 0x100) ? a->data : NULL;
  }
  if (kind == F8 && x->type == &PyFloat_Type) return (char *)x + sizeof(PyObject);
  if (kind == C16 && x->type == &PyComplex_Type) return (char *)x + sizeof(PyObject);
  if (kind == I8 && x->type == &PyLong_Type) {
    *(int64_t *)block = PyLong_AsLongLong(x);
    if (*(int64_t *)block == -1 && PyErr_Occurred()) { PyErr_Clear(); return NULL; }
    return block;
  }
  if (kind == B1 && (x == &_Py_TrueStruct || x == &_Py_FalseStruct)) { *(_Bool *)block = x == &_Py_TrueStruct; return block; }
  return NULL;
}

/* Whether an operand is of the very type and shape that a kernel takes, and need not be copied. */
static int is_array(PyObject *x, int nd, const int64_t *dims, int kind) {
  PyObject *copy;
  return x->type == array_type && (((Array *)x)->flags & 0x101) == 0x101 && elements(x, nd, dims, kind, &copy);
}
static int is_scalar(PyObject *x, int kind) { return x->type == scalars[kind]; }
static int is_float(PyObject *x) { return x->type == &PyFloat_Type; }
static int is_complex(PyObject *x) { return x->type == &PyComplex_Type; }
static int is_int(PyObject *x) { /* one that a float holds: others are constants of a program */
  if (x->type != &PyLong_Type) return 0;
  const int64_t found = PyLong_AsLongLong(x), most = (int64_t)1 << 53;
  if (found == -1 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
  return -most <= found && found <= most;
}
