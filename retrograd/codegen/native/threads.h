/* Parts of a kernel on several threads. What is in a part, and how parts are put together, does not depend on the number
   of threads, so results do not either. */
typedef int (*Part)(const void *, int64_t);

/* Compute the parts 0, 1, ... n - 1; true if one of them gives up. */
RG_SHARED int in_parts(Part part, const void *given, int64_t n, int64_t threads, int in_turn);

/* How many threads a call may use now; -1 for an error. */
RG_SHARED int64_t allowed(void);

/* Take the function that says so, and the address of what the first module of the process has; the address to go on with. */
RG_SHARED PyObject *share(PyObject *self, PyObject *const *a, int64_t n);

/* Parts with turns, each of which waits for the one before, and then lets the next one go on. */
RG_SHARED void await_turn(const int64_t *turn, int64_t part);
RG_SHARED void end_turn(int64_t *turn, int64_t part);
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
