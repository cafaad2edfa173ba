/* The C library of Linux gives freed memory back to the system at once, and page faults then take longer than kernels. Once
   a large block was freed, it keeps blocks up to that size, and twice as much in all. Nothing touches the block. */
static void keep_freed_memory(void) {
  void *volatile block = malloc(1 << 24);
  free(block);
}

static PyObject *setup(PyObject *self, PyObject *const *a, int64_t n) {
  if (n != 2 + 2 * TYPES + KERNELS) {
    PyErr_SetString(PyExc_TypeError, "setup takes NumPy, the dtypes, their types and a function for each kernel");
    return 0;
  }
  keep_freed_memory();
  array_type = a[0]; api = PyLong_AsVoidPtr(a[1]);
  for (int k = 0; k < TYPES; k++) { descrs[k] = a[2 + k]; scalars[k] = a[2 + TYPES + k]; }
  for (int k = 0; k < n; k++) Py_IncRef(a[k]);
  for (int k = 0; k < n - 2 - 2 * TYPES; k++) *fallbacks[k] = a[2 + 2 * TYPES + k];
  Py_IncRef(array_type); return array_type;
}
