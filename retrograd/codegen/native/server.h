
/* A whole call, served by the only kernel. The state is what the call relies on: the variable of the trace that is
   recording, that of the settings in force and where the others are, the settings that are right, the versions of its
   signature, a token that the first of them has with the objects that it has read, the order of the results, what puts other results together, the answer
   for calls that are not served, an empty tuple, and names of attributes. */
enum { CURRENT, OVERRIDES, BASE, NAME, SETTINGS, VERSIONS, TOKEN, ORDER, ASSEMBLE, UNSERVED, NOTHING, HAS, CHECK, USER, STATE };

/* Results in the order of a tuple of positions and tuples. */
static PyObject *in_order(PyObject *order, PyObject *results) {
  PyObject *found, *part;
  if (order->type == &PyLong_Type) {
    if ((found = PyTuple_GetItem(results, PyLong_AsLongLong(order)))) Py_IncRef(found);
    return found;
  }
  if (!(found = PyTuple_New(PyTuple_Size(order)))) return 0;
  for (int64_t k = 0; k < PyTuple_Size(order); k++) {
    if (!(part = in_order(PyTuple_GetItem(order, k), results))) { Py_DecRef(found); return 0; }
    PyTuple_SetItem(found, k, part);
  }
  return found;
}

/* Whether what a function has read are the same objects: pairs of a function, or nothing for this one, and a weak
   reference to its code, or of the name of a global and its value. */
static int same_reads(PyObject *user, PyObject *reads) {
  if (reads == &_Py_NoneStruct || user->type != &PyFunction_Type) return 0;
  for (int64_t k = 0; k < PyTuple_Size(reads); k++) {
    PyObject *pair = PyTuple_GetItem(reads, k), *of = PyTuple_GetItem(pair, 0), *was = PyTuple_GetItem(pair, 1);
    if (of == &_Py_NoneStruct || of->type == &PyFunction_Type) {
      PyObject *code = PyObject_CallNoArgs(was);
      if (code) Py_DecRef(code); else PyErr_Clear();
      if (!code || PyFunction_GetCode(of == &_Py_NoneStruct ? user : of) != code) return 0;
    } else if (PyDict_GetItem(PyFunction_GetGlobals(user), of) != was) return 0;
  }
  return 1;
}

/* Whether the check of the version that has the token passes; its captures are in *captures. -1 for an error. */
static int holds(PyObject *state, PyObject *compiled, PyObject **captures) {
  PyObject *versions = PyTuple_GetItem(state, VERSIONS), *paths, *has, *check = 0, *user = 0;
  if (PyList_Size(versions) < 1) return 0;
  Py_IncRef(paths = PyList_GetItem(versions, 0));
  int found = -1;
  if (!(has = PyObject_GetAttr(paths, PyTuple_GetItem(state, HAS)))) goto end;
  found = 0;
  if (PyTuple_GetItem(has, 0) != PyTuple_GetItem(state, TOKEN)) goto end;
  found = -1;
  if (!(user = PyObject_GetAttr(compiled, PyTuple_GetItem(state, USER)))) goto end;
  if (same_reads(user, PyTuple_GetItem(has, 1))) {
    Py_IncRef(*captures = PyTuple_GetItem(state, NOTHING));
    found = 1;
    goto end;
  }
  if (!(check = PyObject_GetAttr(paths, PyTuple_GetItem(state, CHECK)))) goto end;
  PyObject *arguments[] = {user, PyTuple_GetItem(state, NOTHING)};
  if (!(*captures = PyObject_Vectorcall(check, arguments, 2, 0))) goto end;
  found = *captures != &_Py_NoneStruct;
end:
  if (has) Py_DecRef(has);
  if (check) Py_DecRef(check);
  if (user) Py_DecRef(user);
  Py_DecRef(paths);
  return found;
}

/* Whether nothing is traced, and the settings are those of the state. */
static int in_force(PyObject *state) {
  PyObject *trace = 0, *now = 0;
  int found = -1;
  if (PyContextVar_Get(PyTuple_GetItem(state, CURRENT), 0, &trace) < 0) goto end;
  if (PyContextVar_Get(PyTuple_GetItem(state, OVERRIDES), 0, &now) < 0) goto end;
  const int base = !now || now == &_Py_NoneStruct;
  const PyObject *settings = base ? PyDict_GetItem(PyTuple_GetItem(state, BASE), PyTuple_GetItem(state, NAME)) : now;
  found = (!trace || trace == &_Py_NoneStruct) && settings == PyTuple_GetItem(state, SETTINGS);
end:
  if (trace) Py_DecRef(trace);
  if (now) Py_DecRef(now);
  return found;
}

/* It takes the compiled function, and the arguments of the call by position and by name. */
static PyObject *serve(PyObject *state, PyObject *const *a, int64_t n) {
  PyObject *x[OPERANDS], *captures = 0, *results = 0, *order = PyTuple_GetItem(state, ORDER);
  if (n != 3 || PyDict_Size(a[2])) goto other;
  const int64_t given = PyTuple_Size(a[1]);
  if (given > OPERANDS) goto other;
  for (int64_t k = 0; k < given; k++) x[k] = PyTuple_GetItem(a[1], k);
  if (!fits0(x, given)) goto other;
  const int now = in_force(state);
  if (now < 0) goto failed;
  if (!now) goto other;
  const int held = holds(state, a[0], &captures);
  if (held < 0) goto failed;
  if (!held || given + PyTuple_Size(captures) != OPERANDS) goto other;
  for (int64_t k = given; k < OPERANDS; k++) x[k] = PyTuple_GetItem(captures, k - given);
  if (!(results = call0(0, x, OPERANDS))) goto failed;
  if (order == &_Py_NoneStruct) {
    PyObject *assemble = PyTuple_GetItem(state, ASSEMBLE), *whole = results;
    if (assemble == &_Py_NoneStruct) goto end;
    results = PyObject_Vectorcall(assemble, &whole, 1, 0);
    Py_DecRef(whole);
  } else {
    PyObject *whole = results;
    results = in_order(order, whole);
    Py_DecRef(whole);
  }
  goto end;
failed: /* the general way meets the same fault, and says where it is */
  if (!PyErr_ExceptionMatches(PyExc_Exception)) goto end;
  PyErr_Clear();
other:
  Py_IncRef(results = PyTuple_GetItem(state, UNSERVED));
end:
  if (captures) Py_DecRef(captures);
  return results;
}

static Method serving = {"serve", serve, 0x80, ""};
static PyObject *server(PyObject *self, PyObject *state) {
  (void)self;
  return PyTuple_Size(state) == STATE ? PyCFunction_NewEx(&serving, state, 0) : 0;
}
