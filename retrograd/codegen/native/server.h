/* Whole calls of a module with one kernel. */
typedef int (*Fits)(PyObject *const *, int64_t);
typedef PyObject *(*Call)(PyObject *, PyObject *const *, int64_t);

/* Serve a call from the state, of the compiled function and its arguments by position and by name; there is space for the
   operands at x. */
RG_SHARED PyObject *serve(
  PyObject *state, PyObject *const *a, int64_t n, PyObject **x, int64_t operands, int64_t results, Fits fits, Call call
);

/* The function that serves calls from a state, or NULL for what is none. */
RG_SHARED PyObject *server_of(Method *serving, PyObject *state);

/* A type of objects whose calls C serves, made of what server.c names. */
RG_SHARED PyObject *served_type(PyObject *state);

/* Calls whose arguments and results stay in the same arrays. The state is the variable of the trace that is recording, the
   user's function and what it has read, what to call where the kernel does not serve, the results as the user has them,
   and the arrays of operands and results. */
enum { TRACE, READER, READS, OTHERWISE, RESULTS, ARRAYS };
#define ITEM(node, k) PyTuple_GetItem(node, k)

/* Whether nothing is traced, and what the function reads is as it was. */
RG_SHARED int stands(PyObject *state);

/* The elements of an array of the state, or NULL if it is no longer what the kernel takes. */
static inline __attribute__((unused)) void *there(PyObject *x, int nd, const int64_t *dims, int kind) {
  return is_array(x, nd, dims, kind) && (((Array *)x)->flags & 0x400) ? ((Array *)x)->data : 0; /* it may be written */
}

/* The function that runs a kernel on the arrays of a state, or NULL for what is none. */
RG_SHARED PyObject *bound_to(Method *binding, PyObject *state, int64_t arrays);
