// Arrays by the buffer protocol, and results as NumPy arrays.
#include "bindings/python.h"

#include "bindings/numpy.h"

#include "shared/result_memory.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

namespace seqflow {
namespace {

PyObject *make_dtype(const char *name) {
  return nb::object(nb::module_::import_("numpy").attr("dtype")(name)).release().ptr();
}

constexpr int64_t FEW = 1 << 20;  // elements, for which there is memory

// In Python: memory.py.
void check_memory(nb::handle shape, nb::handle dtype) {
  nb::module_::import_("seqflow.kernels.memory").attr("check_memory")(shape, dtype);
}

// Sizes of an array.
struct Shape {
  Py_ssize_t sizes[numpy::MOST_AXES];
  int rank = 0;

  void add(int64_t size) {
    if (rank == numpy::MOST_AXES) decline();
    sizes[rank++] = size;
  }
  // The most there can be where they are more.
  int64_t elements() const {
    int64_t elements = 1;
    for (int axis = 0; axis < rank; ++axis)
      if (__builtin_mul_overflow(elements, int64_t{sizes[axis]}, &elements)) return INT64_MAX;
    return elements;
  }
  nb::object tuple() const {
    nb::list found;
    for (int axis = 0; axis < rank; ++axis) found.append(sizes[axis]);
    return nb::tuple(found);
  }
};

Shape shape_of(std::initializer_list<int64_t> extents) {
  Shape shape;
  for (const int64_t extent : extents) shape.add(extent);
  return shape;
}

nb::object new_array(const Shape &shape, nb::handle dtype) {
  if (!PyObject_TypeCheck(dtype.ptr(), numpy::dtype_type())) decline();
  const int64_t elements = shape.elements();
  constexpr int64_t SMALL = 1 << 16, MOST = int64_t{1} << 48;  // elements: no large array, and no array at all
  const int64_t bytes = elements < SMALL || elements > MOST ? 0 : elements * nb::cast<int64_t>(dtype.attr("itemsize"));
  const ResultMemory memory(bytes);
  PyObject *array = numpy::new_array(dtype.inc_ref().ptr(), shape.rank, shape.sizes, nullptr, nullptr, 0);
  if (!array) throw nb::python_error();
  return nb::steal(array);
}

nb::object checked_new_array(const Shape &shape, nb::handle dtype) {
  if (shape.elements() > FEW) check_memory(shape.tuple(), dtype);
  return new_array(shape, dtype);
}

// Whether an array of a native dtype can be written to as it lies: contiguous and aligned.
bool is_writable(nb::handle array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool plain = view.format && view.format[0] != 0 && view.format[1] == 0;  // so also in native byte order
  const bool aligned = view.itemsize > 0 && reinterpret_cast<uintptr_t>(view.buf) % view.itemsize == 0;
  PyBuffer_Release(&view);
  return plain && aligned;
}

// An array with one more axis, of the bytes of each element.
nb::object bytes_of(nb::handle array) {
  const nb::object dtype = dtype_of(array);
  const std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  if (!std::strchr("biufcMmSUV", kind[0]) || nb::cast<bool>(dtype.attr("hasobject")) ||
      !nb::cast<bool>(dtype.attr("isnative")) || nb::cast<int64_t>(dtype.attr("itemsize")) == 0)
    decline();
  if (!nb::cast<bool>(array.attr("flags").attr("c_contiguous"))) decline();
  nb::object shape = array.attr("shape") + nb::make_tuple(1);
  return array.attr("reshape")(shape).attr("view")("uint8");
}

}  // namespace

void decline() { throw nb::next_overload(); }

// As the buffer protocol does, but without a description that NumPy allocates.
bool Buffer::acquire_fields(nb::handle array, bool writable) {
  if (!is_plain_array(array)) return false;
  const numpy::Array &fields = numpy::fields_of(array);
  const numpy::Item item = numpy::item_of(fields);
  if (fields.rank > static_cast<int>(std::size(sizes)) || !item.bytes) return false;
  if (!fields.has(numpy::CONTIGUOUS | (writable ? numpy::WRITEABLE : 0))) return false;
  view = {};
  view.buf = fields.data;
  view.len = item.bytes;
  view.itemsize = item.bytes;
  view.format = const_cast<char *>(item.format);
  view.ndim = fields.rank;
  view.shape = sizes;
  for (int axis = 0; axis < view.ndim; ++axis) view.len *= sizes[axis] = fields.shape[axis];
  owner = nb::borrow(array);
  return true;
}

bool Buffer::acquire(nb::handle array, bool writable) {
  if (acquire_fields(array, writable)) return true;
  const int flags = PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &view, flags) == 0) return true;
  PyErr_Clear();
  return false;
}

Buffer::Buffer(nb::handle array, Elements elements, bool writable) {
  bool acquired = acquire(array, writable);
  if (elements == ANY && !(acquired && is_movable())) {
    if (acquired) PyBuffer_Release(&view);
    hidden_axes = 1;
    acquired = acquire(bytes_of(array), writable);
  }
  if (!acquired) decline();
  if (rank() < 1 || view.itemsize < 1 || item_bytes() < 1) {
    PyBuffer_Release(&view);
    decline();
  }
}

int64_t Buffer::row_elements(int axis) const {
  int64_t elements = 1;
  for (; axis < rank(); ++axis) elements *= view.shape[axis];
  return elements;
}

bool Buffer::is_movable() const {
  const char *format = view.format;
  if (!format) return false;
  if (format[0] == 'Z') ++format;
  return format[0] != 0 && format[1] == 0 && std::strchr("?bBhHiIlLqQefdg", format[0]);
}

bool Buffer::is_half() const { return view.format && std::strcmp(view.format, "e") == 0; }

bool Buffer::is_bytes() const { return view.format && std::strcmp(view.format, "B") == 0; }

Type Buffer::type() const {
  const char *format = view.format;
  if (hidden_axes || !format || format[0] == 0 || format[1] != 0) decline();
  if (view.len > 0 && reinterpret_cast<uintptr_t>(view.buf) % view.itemsize != 0) decline();
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
  decline();
}

Integers Buffer::integers() const {
  const Type found = type();
  if (found != INT32 && found != INT64) decline();
  return {view.buf, size(), found == INT64};
}

Integers Buffer::counts() const {
  if (view.ndim != 1) decline();
  return integers();
}

bool Buffer::shares_memory(const Buffer &other) const {
  return data() < other.data() + other.bytes() && other.data() < data() + bytes();
}

namespace {

Shape shape_of(std::initializer_list<int64_t> front, const Buffer &like, int from) {
  Shape shape = shape_of(front);
  for (int axis = from; axis < like.rank(); ++axis) shape.add(like.extent(axis));
  return shape;
}

nb::object output(nb::handle out, const Shape &shape, nb::handle dtype, const char *argument) {
  if (out.is_none()) return checked_new_array(shape, dtype);
  const nb::object sizes = shape.tuple();
  if (is_plain_array(out) && out.attr("dtype").is(dtype) && out.attr("shape").equal(sizes) && is_writable(out))
    return nb::borrow(out);
  return nb::module_::import_("seqflow.kernels.arrays").attr("check_out")(out, sizes, dtype, argument);
}

}  // namespace

nb::object empty_bytes(int64_t count) { return new_array(shape_of({count}), dtype_named(UINT8)); }

nb::object empty_array(std::initializer_list<int64_t> front, const Buffer &like, int from, nb::handle dtype) {
  return checked_new_array(shape_of(front, like, from), dtype);
}

nb::object output(nb::handle out, std::initializer_list<int64_t> front, const Buffer &like, int from,
                  nb::handle dtype, const char *argument) {
  return output(out, shape_of(front, like, from), dtype, argument);
}

nb::object output(nb::handle out, nb::tuple shape, nb::handle dtype, const char *argument) {
  Shape sizes;
  for (nb::handle size : shape) sizes.add(nb::cast<int64_t>(size));
  return output(out, sizes, dtype, argument);
}

bool is_plain_array(nb::handle array) { return Py_TYPE(array.ptr()) == numpy::array_type(); }

nb::object dtype_of(nb::handle array) {
  if (!PyObject_TypeCheck(array.ptr(), numpy::array_type())) decline();
  return array.attr("dtype");
}

nb::object dtype_named(Type type) {
  static const char *const names[NUM_TYPES] = {"int8",   "uint8", "int16",  "uint16",  "int32",
                                               "uint32", "int64", "uint64", "float32", "float64"};
  static PyObject *dtypes[NUM_TYPES] = {};
  if (!dtypes[type]) dtypes[type] = make_dtype(names[type]);
  return nb::borrow(dtypes[type]);
}

void check_memory(std::initializer_list<int64_t> extents, Type type) {
  const Shape shape = shape_of(extents);
  if (shape.elements() > FEW) check_memory(shape.tuple(), dtype_named(type));
}

Type sum_type(Type type) {
  if (type == FLOAT32 || type == FLOAT64) return type;
  return type == UINT64 ? UINT64 : INT64;
}

Type mean_type(Type type) { return type == FLOAT32 ? FLOAT32 : FLOAT64; }

nb::object bool_dtype() {
  static PyObject *const dtype = make_dtype("bool");
  return nb::borrow(dtype);
}

void Unlocked::lock_again(PyThreadState *state) noexcept {
  // Python ends a thread it does not want back by unwinding it, through frames that know nothing of that.
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

nb::object int64_array(const int64_t *values, int64_t size) {
  nb::object array = new_array(shape_of({size}), dtype_named(INT64));
  Buffer buffer(array, NUMERIC, true);
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

nb::object copy_of(nb::handle array) { return array.attr("copy")(); }

nb::object cast(nb::handle array, nb::handle dtype) { return array.attr("astype")(dtype); }

Fill::Fill(nb::handle value, nb::handle dtype, bool zero_bytes) {
  if (zero_bytes && PyLong_CheckExact(value.ptr()) && PyObject_Not(value.ptr()) == 1) return;
  element = nb::module_::import_("numpy").attr("full")(1, value, dtype).attr("tobytes")();
}

Pattern Fill::pattern() const {
  Pattern pattern = {};
  pattern.value = static_cast<const uint8_t *>(data());
  pattern.size = pattern.value ? PyBytes_GET_SIZE(element.ptr()) : 1;
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
