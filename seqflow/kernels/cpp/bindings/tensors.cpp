// Tensors of torch as NumPy arrays on the same memory, and arrays as tensors, through DLPack's exchange functions. Nothing
// of torch or NumPy is needed to compile this: torch hands over a table of functions (torch.Tensor.__dlpack_c_exchange_api__),
// and so does NumPy (_ARRAY_API).
#include <iterator>
#include <vector>

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

// Numbers of functions in NumPy's table; they are part of its binary interface.
constexpr int ARRAY_TYPE = 2, DTYPE_OF_NUMBER = 45, NEW_ARRAY = 94, SET_BASE = 282;
constexpr int ALIGNED = 0x100, WRITEABLE = 0x400;
constexpr int MOST_AXES = 64;  // of an array of NumPy

const Exchange *exchange;
void **numpy;
PyTypeObject *tensor_type, *parameter_type;
PyObject *is_negated;  // the name of a method

// Whether torch's tables are of a version that is known here; then the other functions may be called.
bool set_up(nb::handle exchange_table, nb::handle numpy_table, nb::handle tensor, nb::handle parameter) {
  exchange = static_cast<const Exchange *>(PyCapsule_GetPointer(exchange_table.ptr(), "dlpack_exchange_api"));
  numpy = static_cast<void **>(PyCapsule_GetPointer(numpy_table.ptr(), nullptr));
  if (!exchange || !numpy) throw nb::python_error();
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
  if (x.device != CPU || number < 0 || x.rank > MOST_AXES) return {};
  Py_intptr_t shape[MOST_AXES], strides[MOST_AXES];
  bool is_empty = false;
  for (int i = 0; i < x.rank; ++i) {
    shape[i] = x.shape[i];
    is_empty |= shape[i] == 0;
    if (x.strides) strides[i] = x.strides[i] * (x.bits / 8);
  }
  if (!x.data && !is_empty) return {};  // torch's zero tensors have no memory
  // DLPack does not tell that the memory holds the negative of the tensor's values
  PyObject *negated = PyObject_CallMethodNoArgs(tensor, is_negated);
  if (!negated) throw nb::python_error();
  Py_DECREF(negated);
  if (negated != Py_False) return {};
  auto dtype_of = reinterpret_cast<PyObject *(*)(int)>(numpy[DTYPE_OF_NUMBER]);
  auto new_array = reinterpret_cast<PyObject *(*)(void *, PyObject *, int, const Py_intptr_t *, const Py_intptr_t *, void *,
                                                  int, PyObject *)>(numpy[NEW_ARRAY]);
  auto set_base = reinterpret_cast<int (*)(PyObject *, PyObject *)>(numpy[SET_BASE]);
  PyObject *dtype = dtype_of(number);  // which new_array takes over, as set_base does the tensor
  if (!dtype) throw nb::python_error();
  char *data = x.data ? static_cast<char *>(x.data) + x.byte_offset : nullptr;
  nb::object array = nb::steal(
      new_array(numpy[ARRAY_TYPE], dtype, x.rank, shape, data && x.strides ? strides : nullptr, data, data ? WRITEABLE : 0, nullptr));
  Py_INCREF(tensor);
  if (!array.is_valid() || set_base(array.ptr(), tensor)) throw nb::python_error();
  return array;
}

// The first fields of NumPy's structures of arrays and of dtypes, which are part of its binary interface.
struct Dtype {
  PyObject_HEAD
  PyTypeObject *scalar;
  char kind, letter, byte_order, flags;
  int number;
};
struct ArrayFields {
  PyObject_HEAD
  char *data;
  int rank;
  Py_intptr_t *shape, *strides;
  PyObject *base;
  Dtype *dtype;
  int flags;
};

// The type of a dtype by its number in NumPy; false where torch has none.
bool describe(const Dtype &dtype, Described *x) {
  static constexpr struct {
    uint8_t code, bytes;
  } TYPES[] = {{BOOL, 1}, {INT, 1}, {UINT, 1}, {INT, 2}, {UINT, 2}, {INT, 4}, {UINT, 4}, {INT, sizeof(long)},
               {UINT, sizeof(long)}, {INT, 8}, {UINT, 8}, {FLOAT, 4}, {FLOAT, 8}};
  constexpr int HALF = 23;
  const bool is_half = dtype.number == HALF;
  if ((dtype.byte_order != '=' && dtype.byte_order != '|') || dtype.number < 0) return false;
  if (!is_half && dtype.number >= static_cast<int>(std::size(TYPES))) return false;
  x->code = is_half ? FLOAT : TYPES[dtype.number].code;
  x->bits = is_half ? 16 : TYPES[dtype.number].bytes * 8;
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
  constexpr int NEEDED = 1 | ALIGNED | WRITEABLE;  // 1: C-contiguous
  if (!is_plain_array(array)) return {};
  const auto &fields = *reinterpret_cast<const ArrayFields *>(array.ptr());
  Described x = {};
  if ((fields.flags & NEEDED) != NEEDED || !describe(*fields.dtype, &x)) return {};
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
  for (nb::handle tensor : tensors) {
    arrays.push_back(tensor.is_none() ? nb::none() : array_of(tensor.ptr()));
    if (!arrays.back().is_valid()) return false;
  }
  return true;
}

nb::object arrays_of_tensors(nb::tuple tensors) {
  std::vector<nb::object> arrays;
  return arrays_of(tensors, arrays) ? nb::object(tuple_of(arrays)) : nb::none();
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
    const bool is_own = is_plain_array(result) && !reinterpret_cast<const ArrayFields *>(result.ptr())->base;
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
  module.def("arrays_of_tensors", tensors::arrays_of_tensors);
  module.def("call_on_tensors", tensors::call_on_tensors, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("tensor_of_array", tensors::tensor_of_array);
}

}  // namespace seqflow
