
/* What server.h declares. The state is what the call relies on: the variable of the trace that is recording, that of the
   settings in force and where the others are, the settings that are right, the versions of its signature, a token that the
   first of them has with the objects that it has read, the patterns of arguments by position and by name, the number of
   operands and of other leaves among them, the order of the results, what puts other results together, the answer for calls
   that are not served, an empty tuple, names of attributes, and the number of calls so far, as an array. */
enum {
  CURRENT, OVERRIDES, BASE, NAME, SETTINGS, VERSIONS, TOKEN, POSITIONAL, KEYWORDS, TRACED, STATICS, ORDER, ASSEMBLE,
  UNSERVED, NOTHING, HAS, CHECK, USER, COUNT, STATE
};
enum { LEAF, EQUAL, TYPED, SAME, DIGITS, SEQUENCE, DICT, FIELDS }; /* nodes of patterns of arguments */
enum { TUPLE, LIST, ENTRIES }; /* and of results */
#define NUMBER(node, k) PyLong_AsLongLong(ITEM(node, k))

/* Results in the order of a position, or of a kind, keys and parts. */
static PyObject *in_order(PyObject *order, PyObject *results, int64_t count) {
  PyObject *found, *part;
  if (order->type == &PyLong_Type) {
    found = count == 1 ? results : ITEM(results, PyLong_AsLongLong(order));
    if (found) Py_IncRef(found);
    return found;
  }
  PyObject *keys = ITEM(order, 1), *parts = ITEM(order, 2);
  const int64_t kind = NUMBER(order, 0), n = PyTuple_Size(parts);
  if (!(found = kind == TUPLE ? PyTuple_New(n) : kind == LIST ? PyList_New(n) : PyDict_New())) return 0;
  for (int64_t k = 0; k < n; k++) {
    if (!(part = in_order(ITEM(parts, k), results, count))) { Py_DecRef(found); return 0; }
    if (kind == TUPLE) PyTuple_SetItem(found, k, part);
    else if (kind == LIST) PyList_SetItem(found, k, part);
    else {
      const int fault = PyDict_SetItem(found, ITEM(keys, k), part);
      Py_DecRef(part);
      if (fault) { Py_DecRef(found); return 0; }
    }
  }
  return found;
}

/* Whether two objects are one, or equal ints, texts or bytes. */
static int is_equal(PyObject *x, PyObject *other) {
  if (x == other) return 1;
  const PyObject *type = x->type;
  if (type != other->type || (type != &PyUnicode_Type && type != &PyLong_Type && type != &PyBytes_Type)) return 0;
  return PyObject_RichCompareBool(x, other, 2);
}

/* Take an argument apart by its pattern: 1 if it fits, 0 if not, -1 for an error. Operands are held, and the others are
   put into a tuple. What has a part is held meanwhile, since attributes may be code. */
static int take(PyObject *node, PyObject *x, PyObject **operands, PyObject *statics) {
  const int64_t kind = NUMBER(node, 0), place = NUMBER(node, 1);
  PyObject *what = ITEM(node, 2), *parts = ITEM(node, 3), *part, *key;
  const int64_t n = PyTuple_Size(parts);
  int64_t k = 0, at = 0;
  int found = 1;
  switch (kind) {
  case LEAF:
    Py_IncRef(operands[place] = x);
    return 1;
  case SAME:
    return x == what;
  case DIGITS:
    return x->type == &PyFloat_Type && *(int64_t *)(x + 1) == *(int64_t *)(what + 1);
  case EQUAL:
  case TYPED:
    if ((found = kind == EQUAL ? is_equal(x, what) : x->type == what) > 0 && place >= 0) {
      Py_IncRef(x);
      PyTuple_SetItem(statics, place, x);
    }
    return found;
  case SEQUENCE:
    if (x->type != what || (place ? PyList_Size(x) : PyTuple_Size(x)) != n) return 0;
    for (; k < n && found > 0; k++) {
      if (!(part = place ? PyList_GetItem(x, k) : ITEM(x, k))) return -1;
      Py_IncRef(part);
      found = take(ITEM(parts, k), part, operands, statics);
      Py_DecRef(part);
    }
    return found;
  case DICT:
    if (x->type != &PyDict_Type || PyDict_Size(x) != n) return 0;
    for (; k < n && found > 0 && PyDict_Next(x, &at, &key, &part); k++) {
      if ((found = is_equal(key, ITEM(what, k))) <= 0) return found;
      Py_IncRef(part);
      found = take(ITEM(parts, k), part, operands, statics);
      Py_DecRef(part);
    }
    return found > 0 ? k == n : found;
  default:
    if (x->type != ITEM(what, 0)) return 0;
    for (; k < n && found > 0; k++) {
      if (!(part = PyObject_GetAttr(x, ITEM(ITEM(what, 1), k)))) return -1;
      found = take(ITEM(parts, k), part, operands, statics);
      Py_DecRef(part);
    }
    return found;
  }
}

/* Whether what a function has read are the same objects: pairs of a function, or nothing for this one, and its code or a
   weak reference to that, or of the name of a global and its value. */
static int same_reads(PyObject *user, PyObject *reads, int weak) {
  if (reads == &_Py_NoneStruct || user->type != &PyFunction_Type) return 0;
  for (int64_t k = 0; k < PyTuple_Size(reads); k++) {
    PyObject *pair = ITEM(reads, k), *of = ITEM(pair, 0), *was = ITEM(pair, 1);
    if (of == &_Py_NoneStruct || of->type == &PyFunction_Type) {
      PyObject *code = weak ? PyObject_CallNoArgs(was) : was;
      if (weak && code) Py_DecRef(code); else if (!code) PyErr_Clear();
      if (!code || PyFunction_GetCode(of == &_Py_NoneStruct ? user : of) != code) return 0;
    } else if (PyDict_GetItem(PyFunction_GetGlobals(user), of) != was) return 0;
  }
  return 1;
}

/* Whether the check of the version that has the token passes; its captures are in *captures. -1 for an error. */
static int holds(PyObject *state, PyObject *compiled, PyObject *statics, PyObject **captures) {
  PyObject *versions = ITEM(state, VERSIONS), *paths, *has, *check = 0, *user = 0;
  if (PyList_Size(versions) < 1) return 0;
  Py_IncRef(paths = PyList_GetItem(versions, 0));
  int found = -1;
  if (!(has = PyObject_GetAttr(paths, ITEM(state, HAS)))) goto end;
  found = 0;
  if (ITEM(has, 0) != ITEM(state, TOKEN)) goto end;
  found = -1;
  if (!(user = PyObject_GetAttr(compiled, ITEM(state, USER)))) goto end;
  if (same_reads(user, ITEM(has, 1), 1)) {
    Py_IncRef(*captures = ITEM(state, NOTHING));
    found = 1;
    goto end;
  }
  if (!(check = PyObject_GetAttr(paths, ITEM(state, CHECK)))) goto end;
  PyObject *arguments[] = {user, statics};
  if (!(*captures = PyObject_Vectorcall(check, arguments, 2, 0))) goto end;
  found = *captures != &_Py_NoneStruct;
end:
  if (has) Py_DecRef(has);
  if (check) Py_DecRef(check);
  if (user) Py_DecRef(user);
  Py_DecRef(paths);
  return found;
}

/* Whether nothing is traced; -1 for an error. */
static int untraced(PyObject *variable) {
  PyObject *trace = 0;
  if (PyContextVar_Get(variable, 0, &trace) < 0) return -1;
  const int found = !trace || trace == &_Py_NoneStruct;
  if (trace) Py_DecRef(trace);
  return found;
}

/* Whether nothing is traced, and the settings are those of the state. */
static int in_force(PyObject *state) {
  PyObject *now = 0;
  const int found = untraced(ITEM(state, CURRENT));
  if (found < 0 || PyContextVar_Get(ITEM(state, OVERRIDES), 0, &now) < 0) return -1;
  const int base = !now || now == &_Py_NoneStruct;
  const PyObject *settings = base ? PyDict_GetItem(ITEM(state, BASE), ITEM(state, NAME)) : now;
  if (now) Py_DecRef(now);
  return found && settings == ITEM(state, SETTINGS);
}

RG_SHARED PyObject *serve(
  PyObject *state, PyObject *const *a, int64_t n, PyObject **x, int64_t operands, int64_t count, Fits fits, Call call
) {
  PyObject *statics = 0, *captures = 0, *results = 0, *order = ITEM(state, ORDER);
  const int64_t given = NUMBER(state, TRACED), others = NUMBER(state, STATICS);
  if (n != 3 || given > operands) goto other;
  if (others) { if (!(statics = PyTuple_New(others))) goto failed; }
  else Py_IncRef(statics = ITEM(state, NOTHING));
  int now = take(ITEM(state, POSITIONAL), a[1], x, statics);
  if (now > 0) now = take(ITEM(state, KEYWORDS), a[2], x, statics);
  if (now > 0 && !fits(x, given)) goto other;
  if (now > 0) now = in_force(state);
  if (now > 0) now = holds(state, a[0], statics, &captures);
  if (now < 0) goto failed;
  if (!now || given + PyTuple_Size(captures) != operands) goto other;
  for (int64_t k = given; k < operands; k++) Py_IncRef(x[k] = ITEM(captures, k - given));
  if (!(results = call(0, x, operands))) goto failed;
  ++*(int64_t *)((Array *)ITEM(state, COUNT))->data;
  if (order == &_Py_NoneStruct) {
    PyObject *assemble = ITEM(state, ASSEMBLE), *whole = results;
    if (assemble == &_Py_NoneStruct) goto end;
    results = PyObject_Vectorcall(assemble, &whole, 1, 0);
    Py_DecRef(whole);
  } else {
    PyObject *whole = results;
    results = in_order(order, whole, count);
    Py_DecRef(whole);
  }
  goto end;
failed: /* the general way meets the same fault, and says where it is */
  if (!PyErr_ExceptionMatches(PyExc_Exception)) goto end;
  PyErr_Clear();
other:
  Py_IncRef(results = ITEM(state, UNSERVED));
end:
  if (captures) Py_DecRef(captures);
  if (statics) Py_DecRef(statics);
  for (int64_t k = 0; k < operands; k++) if (x[k]) Py_DecRef(x[k]);
  return results;
}

RG_SHARED PyObject *server_of(Method *serving, PyObject *state) {
  return PyTuple_Size(state) == STATE ? PyCFunction_NewEx(serving, state, 0) : 0;
}

RG_SHARED int stands(PyObject *state) {
  const int found = untraced(ITEM(state, TRACE));
  if (found < 0) PyErr_Clear();
  return found > 0 && same_reads(ITEM(state, READER), ITEM(state, READS), 0);
}

RG_SHARED PyObject *bound_to(Method *binding, PyObject *state, int64_t arrays) {
  const int fits = PyTuple_Size(state) == ARRAYS + arrays && ITEM(state, READER)->type == &PyFunction_Type;
  if (!fits) PyErr_SetString(PyExc_TypeError, "bind takes what server.h says, with an array for each operand and result");
  return fits ? PyCFunction_NewEx(binding, state, 0) : 0;
}

/* What an object of a served type relies on: the bases of the type, the attribute with its servers, their answer for calls
   that they do not serve, and the function that takes such calls. */
enum { BASES, SERVERS, ANSWER, GENERAL };
static PyObject *relied;
static PyObject *no_keywords;

/* A call: the servers are asked one after the other. */
static PyObject *called(PyObject *self, PyObject *args, PyObject *keywords) {
  PyObject *servers = PyObject_GetAttr(self, ITEM(relied, SERVERS)), *found = 0;
  if (!servers) return 0;
  for (int64_t k = 0; k < PyList_Size(servers); k++) {
    PyObject *server = PyList_GetItem(servers, k), *given[] = {self, args, keywords ? keywords : no_keywords};
    Py_IncRef(server);
    found = PyObject_Vectorcall(server, given, 3, 0);
    Py_DecRef(server);
    if (found != ITEM(relied, ANSWER)) {
      Py_DecRef(servers);
      return found;
    }
    Py_DecRef(found);
  }
  Py_DecRef(servers);
  PyObject *own = keywords ? 0 : PyDict_New(), *given[] = {self, args, keywords ? keywords : own};
  if (!keywords && !own) return 0;
  found = PyObject_Vectorcall(ITEM(relied, GENERAL), given, 3, 0);
  if (own) Py_DecRef(own);
  return found;
}

RG_SHARED PyObject *served_type(PyObject *state) {
  static Slot slots[] = {{50, called}, {0, 0}}; /* Py_tp_call */
  static Spec spec = {"retrograd.compiler.compiled.Compiled", 0, 0, 1 << 18 | 1 << 10, slots}; /* the default, a base type */
  if (!(no_keywords = PyDict_New())) return 0;
  Py_IncRef(relied = state);
  return PyType_FromSpecWithBases(&spec, ITEM(state, BASES));
}
