#include "python.h"

#include <cstring>

namespace seqflow {
namespace {

// Python objects that live as long as the process.
PyObject *numpy_empty() {
  static PyObject *const empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  return empty;
}

PyObject *make_dtype(const char *name) {
  return nb::object(nb::module_::import_("numpy").attr("dtype")(name)).release().ptr();
}

nb::object call_empty(nb::object shape, nb::handle dtype) {
  PyObject *arguments[2] = {shape.ptr(), dtype.ptr()};
  PyObject *array = PyObject_Vectorcall(numpy_empty(), arguments, 2, nullptr);
  if (!array) throw nb::python_error();
  return nb::steal(array);
}

}  // namespace

void not_plain() { throw nb::type_error("not a C-contiguous array of a native type"); }

Buffer::Buffer(nb::handle array, bool writable) {
  const int flags = PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &view, flags) != 0) {
    PyErr_Clear();
    not_plain();
  }
  if (view.ndim < 1 || view.itemsize < 1) {
    PyBuffer_Release(&view);
    not_plain();
  }
}

int64_t Buffer::size() const { return view.len / view.itemsize; }

int64_t Buffer::row_elements(int axis) const {
  int64_t elements = 1;
  for (; axis < view.ndim; ++axis) elements *= view.shape[axis];
  return elements;
}

void Buffer::check_bytes(int64_t wanted) const {
  if (bytes() != wanted) throw nb::value_error("the output has another size than the result");
}

void Buffer::check_movable() const {
  const char *format = view.format;
  if (!format) not_plain();
  if (format[0] == 'Z') ++format;
  if (format[0] == 0 || format[1] != 0 || !std::strchr("?bBhHiIlLqQefdg", format[0])) not_plain();
}

Type Buffer::type() const {
  const char *format = view.format;
  if (!format || format[0] == 0 || format[1] != 0) not_plain();
  if (view.len > 0 && reinterpret_cast<uintptr_t>(view.buf) % view.itemsize != 0) not_plain();
  switch (format[0]) {
    case 'f': return FLOAT32;
    case 'd': return FLOAT64;
    case '?': return UINT8;
    case 'b': case 'h': case 'i': case 'l': case 'q':
      switch (view.itemsize) {
        case 1: return INT8;
        case 2: return INT16;
        case 4: return INT32;
        case 8: return INT64;
      }
      break;
    case 'B': case 'H': case 'I': case 'L': case 'Q':
      switch (view.itemsize) {
        case 1: return UINT8;
        case 2: return UINT16;
        case 4: return UINT32;
        case 8: return UINT64;
      }
      break;
  }
  not_plain();
}

Integers Buffer::integers() const {
  const Type found = type();
  if (found != INT32 && found != INT64) not_plain();
  return {view.buf, size(), found == INT64};
}

Integers Buffer::counts() const {
  if (view.ndim != 1) not_plain();
  return integers();
}

bool Buffer::has_rows_like(const Buffer &other) const {
  if (view.ndim != other.view.ndim || std::strcmp(view.format, other.view.format) != 0) return false;
  for (int axis = 1; axis < view.ndim; ++axis)
    if (view.shape[axis] != other.view.shape[axis]) return false;
  return true;
}

bool Buffer::shares_memory(const Buffer &other) const {
  return data() < other.data() + other.bytes() && other.data() < data() + bytes();
}

nb::object empty_array(std::initializer_list<int64_t> front, const Buffer &like, int from, nb::handle dtype) {
  const int rest = like.rank() > from ? like.rank() - from : 0;
  nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(front.size()) + rest));
  Py_ssize_t at = 0;
  for (const int64_t extent : front) PyTuple_SET_ITEM(shape.ptr(), at++, PyLong_FromLongLong(extent));
  for (int axis = from; axis < like.rank(); ++axis)
    PyTuple_SET_ITEM(shape.ptr(), at++, PyLong_FromLongLong(like.extent(axis)));
  return call_empty(shape, dtype);
}

nb::object dtype_of(nb::handle array) { return array.attr("dtype"); }

nb::object dtype_named(Type type) {
  static const char *const names[NUM_TYPES] = {"int8",   "uint8", "int16",  "uint16",  "int32",
                                               "uint32", "int64", "uint64", "float32", "float64"};
  static PyObject *dtypes[NUM_TYPES] = {};
  if (!dtypes[type]) dtypes[type] = make_dtype(names[type]);
  return nb::borrow(dtypes[type]);
}

nb::object bool_dtype() {
  static PyObject *const dtype = make_dtype("bool");
  return nb::borrow(dtype);
}

nb::object int64_array(const int64_t *values, int64_t size) {
  nb::object array = call_empty(nb::int_(size), dtype_named(INT64));
  Buffer buffer(array, true);
  if (size > 0) std::memcpy(buffer.data(), values, size * sizeof(int64_t));
  return array;
}

Ignored::Ignored(nb::handle value) {
  if (value.is_none()) return;
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  index = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  any = overflow == 0;
}

const void *fill_bytes(nb::handle value, int64_t item_bytes) {
  if (value.is_none()) return nullptr;
  if (!PyBytes_Check(value.ptr()) || PyBytes_GET_SIZE(value.ptr()) != item_bytes) not_plain();
  return PyBytes_AS_STRING(value.ptr());
}

Pattern pattern_of(nb::handle value, int64_t row_bytes) {
  Pattern pattern = {};
  pattern.size = value.is_none() || !PyBytes_Check(value.ptr()) ? 1 : PyBytes_GET_SIZE(value.ptr());
  if (pattern.size == 0 || row_bytes % pattern.size != 0) not_plain();
  pattern.value = static_cast<const uint8_t *>(fill_bytes(value, pattern.size));
  pattern.repeats = sizeof pattern.bytes % pattern.size == 0;
  if (pattern.repeats && pattern.value)
    for (size_t i = 0; i < sizeof pattern.bytes; ++i) pattern.bytes[i] = pattern.value[i % pattern.size];
  return pattern;
}

void translate_faults() {
  nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Fault &fault) {
      nb::list arguments;
      if (fault.argument) arguments.append(fault.argument);
      for (int i = 0; i < fault.count; ++i) arguments.append(fault.numbers[i]);
      if (fault.owner) arguments.append(fault.owner);
      nb::object make = nb::module_::import_("seqflow.kernels.error").attr(fault.kind);
      nb::object error = make(*nb::tuple(arguments));
      PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    }
  });
}

}  // namespace seqflow
