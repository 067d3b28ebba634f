// Tensors of torch as NumPy arrays on the same memory, and arrays as tensors, through DLPack's exchange functions. Nothing
// of torch is needed to compile this: it hands over a table of functions (torch.Tensor.__dlpack_c_exchange_api__).
#include <cstring>
#include <vector>

#include "bindings/numpy.h"
#include "bindings/python.h"

namespace seqflow {
namespace {
namespace tensors {

// As in dlpack.h, version 1.
struct Version {
  uint32_t major, minor;
};
enum Code : uint8_t { INT = 0, UINT = 1, FLOAT = 2, BOOL = 6 };
struct Described {
  void *data;
  int32_t device, device_number, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Managed {
  Version version;
  void *owner;
  void (*free)(Managed *);
  uint64_t flags;
  Described tensor;
};
struct Exchange {
  Version version;
  Exchange *earlier;
  void *allocate, *managed_of;
  int (*tensor_of)(Managed *, void **);
  int (*describe)(void *, Described *);
};
constexpr int32_t CPU = 1;

const Exchange *exchange;
PyTypeObject *tensor_type, *parameter_type;
PyObject *is_negated;  // the name of a method

// Whether torch's tables are of a version that is known here; then the other functions may be called.
bool set_up(nb::handle exchange_table, nb::handle tensor, nb::handle parameter) {
  exchange = static_cast<const Exchange *>(PyCapsule_GetPointer(exchange_table.ptr(), "dlpack_exchange_api"));
  if (!exchange) throw nb::python_error();
  tensor_type = reinterpret_cast<PyTypeObject *>(tensor.inc_ref().ptr());
  parameter_type = reinterpret_cast<PyTypeObject *>(parameter.inc_ref().ptr());
  is_negated = PyUnicode_InternFromString("is_neg");
  return exchange->version.major == 1;
}

// The number of a dtype in NumPy; -1 where it has none.
int number_of(const Described &x) {
  constexpr int INT64 = sizeof(long) == 8 ? 7 : 9;
  if (x.lanes != 1) return -1;
  const int wide = x.bits == 8 ? 0 : x.bits == 16 ? 1 : x.bits == 32 ? 2 : x.bits == 64 ? 3 : -1;
  if (wide < 0) return -1;
  static constexpr int INTS[] = {1, 3, 5, INT64}, UINTS[] = {2, 4, 6, INT64 + 1}, FLOATS[] = {-1, 23, 11, 12};
  switch (x.code) {
    case INT: return INTS[wide];
    case UINT: return UINTS[wide];
    case FLOAT: return FLOATS[wide];
    case BOOL: return wide == 0 ? 0 : -1;
    default: return -1;
  }
}

nb::tuple tuple_of(const std::vector<nb::object> &objects) {
  nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  if (!made.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < objects.size(); ++i)
    PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i), nb::object(objects[i]).release().ptr());
  return nb::borrow<nb::tuple>(made);
}

// An array on the memory of a tensor, which it keeps; nothing where the tensor is not a plain one of the CPU.
nb::object array_of(PyObject *tensor) {
  if (Py_TYPE(tensor) != tensor_type && Py_TYPE(tensor) != parameter_type) return {};
  Described x;
  if (exchange->describe(tensor, &x)) {  // it has no memory: sparse, meta, a wrapper of torch.func
    PyErr_Clear();
    return {};
  }
  const int number = number_of(x);
  if (x.device != CPU || number < 0 || x.rank > numpy::MOST_AXES) return {};
  Py_intptr_t shape[numpy::MOST_AXES], strides[numpy::MOST_AXES];
  bool is_empty = false;
  for (int i = 0; i < x.rank; ++i) {
    shape[i] = x.shape[i];
    is_empty |= shape[i] == 0;
    if (x.strides) strides[i] = x.strides[i] * (x.bits / 8);
  }
  if (!x.data && !is_empty) return {};  // torch's zero tensors have no memory
  // DLPack does not tell that the memory holds the negative of the tensor's values: so does the imaginary part of a
  // conjugate, which is floats
  if (x.code == FLOAT) {
    const nb::object negated = nb::steal(PyObject_CallMethodNoArgs(tensor, is_negated));
    if (!negated.is_valid()) throw nb::python_error();
    if (!negated.is(Py_False)) return {};
  }
  PyObject *dtype = numpy::dtype_of_number(number);  // which new_array takes over, as set_base does the tensor
  if (!dtype) throw nb::python_error();
  char *data = x.data ? static_cast<char *>(x.data) + x.byte_offset : nullptr;
  nb::object array = nb::steal(
      numpy::new_array(dtype, x.rank, shape, data && x.strides ? strides : nullptr, data, data ? numpy::WRITEABLE : 0));
  Py_INCREF(tensor);
  if (!array.is_valid() || numpy::set_base(array.ptr(), tensor)) throw nb::python_error();
  return array;
}

// The type of a dtype, which the buffer protocol names by this letter; false where torch has none.
bool describe(char letter, Described *x) {
  if (!letter || !std::strchr("?bBhHiIlLqQefd", letter)) return false;
  x->code = letter == '?' ? BOOL : std::strchr("efd", letter) ? FLOAT : std::strchr("bhilq", letter) ? INT : UINT;
  x->lanes = 1;
  return true;
}

// An array that a tensor keeps.
struct Kept {
  Managed managed;
  PyObject *array;
  std::vector<int64_t> sizes;  // shape and strides
};

void free_kept(Managed *managed) {
  // torch calls this in any thread, also when Python has ended: then the memory goes with the process
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  auto kept = static_cast<Kept *>(managed->owner);
  Py_DECREF(kept->array);
  delete kept;
  PyGILState_Release(state);
}

// A tensor on the memory of an array; none where it is read-only, not contiguous, empty, or of another dtype.
nb::object tensor_of(nb::handle array) {
  if (!is_plain_array(array)) return {};
  const numpy::Array &fields = numpy::fields_of(array);
  const numpy::Item item = numpy::item_of(fields);
  Described x = {};
  if (!fields.has(numpy::CONTIGUOUS | numpy::ALIGNED | numpy::WRITEABLE) || !describe(item.format[0], &x)) return {};
  x.bits = static_cast<uint8_t>(item.bytes * 8);
  std::vector<int64_t> sizes(2 * static_cast<size_t>(fields.rank));
  int64_t size = 1;
  for (int i = fields.rank - 1; i >= 0; --i) {
    sizes[i] = fields.shape[i];
    sizes[fields.rank + i] = size;
    size *= fields.shape[i];
  }
  if (size == 0) return {};
  x.data = fields.data;
  x.device = CPU;
  x.rank = fields.rank;
  x.shape = sizes.data();
  x.strides = x.shape + x.rank;
  auto kept = new Kept{{{1, 0}, nullptr, free_kept, 0, x}, array.inc_ref().ptr(), std::move(sizes)};
  kept->managed.owner = kept;
  void *tensor = nullptr;
  if (exchange->tensor_of(&kept->managed, &tensor)) throw nb::python_error();
  return nb::steal(static_cast<PyObject *>(tensor));
}

nb::object tensor_of_array(nb::handle array) {
  nb::object tensor = tensor_of(array);
  return tensor.is_valid() ? tensor : nb::none();
}

// Arrays on the memory of tensors, None for None; false where one is not a plain tensor of the CPU.
bool arrays_of(nb::tuple tensors, std::vector<nb::object> &arrays) {
  arrays.reserve(tensors.size());
  for (nb::handle tensor : tensors) {
    arrays.push_back(tensor.is_none() ? nb::none() : array_of(tensor.ptr()));
    if (!arrays.back().is_valid()) return false;
  }
  return true;
}

// A function of arrays on the memory of tensors, and tensors on that of its results, which `otherwise` makes where they
// cannot share it. NotImplemented where a tensor is not a plain one of the CPU.
nb::object call_on_tensors(nb::handle function, nb::handle otherwise, nb::tuple tensors, nb::handle attributes) {
  std::vector<nb::object> arrays;
  if (!arrays_of(tensors, arrays)) return nb::borrow(Py_NotImplemented);
  PyObject *const keywords = attributes.is_none() ? nullptr : attributes.ptr();
  static_assert(sizeof(nb::object) == sizeof(PyObject *));
  nb::object found = nb::steal(
      PyObject_VectorcallDict(function.ptr(), reinterpret_cast<PyObject **>(arrays.data()), arrays.size(), keywords));
  if (!found.is_valid()) throw nb::python_error();
  const auto convert = [&](nb::handle result) {
    // a view may be one of an input
    const bool is_own = is_plain_array(result) && !numpy::fields_of(result).base;
    nb::object tensor = is_own ? tensor_of(result) : nb::object();
    return tensor.is_valid() ? tensor : otherwise(result, tuple_of(arrays));
  };
  if (!PyTuple_Check(found.ptr())) return convert(found);
  std::vector<nb::object> results;
  for (nb::handle one : nb::borrow<nb::tuple>(found)) results.push_back(convert(one));
  return tuple_of(results);
}

}  // namespace tensors
}  // namespace

void bind_tensors(nb::module_ &module) {
  module.def("set_up_tensors", tensors::set_up);
  module.def("call_on_tensors", tensors::call_on_tensors, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("tensor_of_array", tensors::tensor_of_array);
}

}  // namespace seqflow
