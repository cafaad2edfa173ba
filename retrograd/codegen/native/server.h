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
