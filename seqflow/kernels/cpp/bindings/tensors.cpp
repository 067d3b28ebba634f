// Tensors of torch as NumPy arrays on the same memory, and arrays as tensors, through DLPack's exchange functions. Nothing
// of torch or NumPy is needed to compile this: torch hands over a table of functions (torch.Tensor.__dlpack_c_exchange_api__),
// and so does NumPy (_ARRAY_API).
#include <cstring>
#include <memory>
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
constexpr int WRITEABLE = 0x400;
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

// Arrays on the memory of tensors, None for None; None for all where one is not a plain tensor of the CPU.
nb::object arrays_of_tensors(nb::tuple tensors) {
  const Py_ssize_t size = PyTuple_GET_SIZE(tensors.ptr());
  nb::object found = nb::steal(PyTuple_New(size));
  if (!found.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject *tensor = PyTuple_GET_ITEM(tensors.ptr(), i);
    nb::object array = tensor == Py_None ? nb::none() : array_of(tensor);
    if (!array.is_valid()) return nb::none();
    PyTuple_SET_ITEM(found.ptr(), i, array.release().ptr());
  }
  return found;
}

// An array that a tensor keeps.
struct Kept {
  Managed managed;
  Py_buffer view;
  std::vector<int64_t> shape, strides;
};

void free_kept(Managed *managed) {
  // torch calls this in any thread, also when Python has ended: then the memory goes with the process
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  auto kept = static_cast<Kept *>(managed->owner);
  PyBuffer_Release(&kept->view);
  delete kept;
  PyGILState_Release(state);
}

// A tensor on the memory of an array; None where the array is read-only, not contiguous, empty, or of another dtype.
nb::object tensor_of_array(nb::handle array) {
  auto kept = std::make_unique<Kept>();
  Py_buffer &view = kept->view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)) {
    PyErr_Clear();
    return nb::none();
  }
  const char *format = view.format;
  Described &x = kept->managed.tensor;
  const char letter = format && !format[1] ? format[0] : 0;
  const bool is_known = letter && std::strchr("?bBhHiIlLqQefd", letter);
  if (!is_known || view.len == 0) {
    PyBuffer_Release(&view);
    return nb::none();
  }
  x.code = letter == '?' ? BOOL : std::strchr("efd", letter) ? FLOAT : std::strchr("bhilq", letter) ? INT : UINT;
  x.bits = static_cast<uint8_t>(view.itemsize * 8);
  x.lanes = 1;
  x.data = view.buf;
  x.device = CPU;
  x.device_number = 0;
  x.byte_offset = 0;
  x.rank = view.ndim;
  kept->shape.assign(view.shape, view.shape + view.ndim);
  kept->strides.resize(view.ndim);
  int64_t step = 1;
  for (int i = view.ndim - 1; i >= 0; --i) {
    kept->strides[i] = step;
    step *= view.shape[i];
  }
  x.shape = kept->shape.data();
  x.strides = kept->strides.data();
  kept->managed.version = {1, 0};
  kept->managed.flags = 0;
  kept->managed.owner = kept.get();
  kept->managed.free = free_kept;
  void *tensor = nullptr;
  if (exchange->tensor_of(&kept.release()->managed, &tensor)) throw nb::python_error();
  return nb::steal(static_cast<PyObject *>(tensor));
}

}  // namespace tensors
}  // namespace

void bind_tensors(nb::module_ &module) {
  module.def("set_up_tensors", tensors::set_up);
  module.def("arrays_of_tensors", tensors::arrays_of_tensors);
  module.def("tensor_of_array", tensors::tensor_of_array);
}

}  // namespace seqflow
