// NumPy's binary interface: the table of functions that it hands over (_ARRAY_API), and the first fields of its arrays and
// dtypes. Nothing of NumPy is needed to compile this. Its functions in Python and the buffer protocol, which allocates a
// description of each array, take several times as long as these, and longer than a small kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace seqflow::numpy {

namespace nb = nanobind;

constexpr int MOST_AXES = 64;
constexpr int CONTIGUOUS = 1, ALIGNED = 0x100, WRITEABLE = 0x400;  // flags

struct Dtype {
  PyObject_HEAD
  PyTypeObject *scalar;
  char kind, letter, byte_order, flags;
  int number;
};

struct Array {
  PyObject_HEAD
  char *data;
  int rank;
  Py_ssize_t *shape, *strides;
  PyObject *base;
  Dtype *dtype;
  int flags;

  bool has(int wanted) const { return (flags & wanted) == wanted; }
};

inline const Array &fields_of(nb::handle array) { return *reinterpret_cast<const Array *>(array.ptr()); }

// The letter of a dtype in the buffer protocol, and its bytes.
struct Item {
  const char *format;
  int bytes;
};

// Of a number in native byte order; no letter for others.
inline Item item_of(const Array &array) {
  static constexpr Item ITEMS[] = {{"?", 1}, {"b", 1}, {"B", 1}, {"h", 2}, {"H", 2}, {"i", 4}, {"I", 4},
                                   {"l", sizeof(long)}, {"L", sizeof(long)}, {"q", 8}, {"Q", 8}, {"f", 4}, {"d", 8}};
  constexpr int COUNT = sizeof ITEMS / sizeof *ITEMS, HALF = 23;
  const Dtype &dtype = *array.dtype;
  if (dtype.byte_order != '=' && dtype.byte_order != '|') return {"", 0};
  if (dtype.number == HALF) return {"e", 2};
  return dtype.number >= 0 && dtype.number < COUNT ? ITEMS[dtype.number] : Item{"", 0};
}

inline void **table() {
  static void **const functions = [] {
    const nb::object capsule = nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
    void *found = PyCapsule_GetPointer(capsule.ptr(), nullptr);
    if (!found) throw nb::python_error();
    return static_cast<void **>(found);
  }();
  return functions;
}

// Raise ImportError where arrays may have other fields; NumPy's functions are used instead of the kernels then.
inline void check_version() {
  const unsigned version = reinterpret_cast<unsigned (*)()>(table()[0])() >> 24;
  if (version != 2) throw nb::import_error("the kernels were made for the arrays of NumPy 2");
}

inline PyTypeObject *array_type() { return static_cast<PyTypeObject *>(table()[2]); }
inline PyTypeObject *dtype_type() { return static_cast<PyTypeObject *>(table()[3]); }

inline PyObject *dtype_of_number(int number) { return reinterpret_cast<PyObject *(*)(int)>(table()[45])(number); }

// Takes over the dtype.
inline PyObject *new_array(PyObject *dtype, int rank, const Py_ssize_t *shape, const Py_ssize_t *strides, void *data,
                           int flags) {
  using New = PyObject *(*)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
  return reinterpret_cast<New>(table()[94])(array_type(), dtype, rank, shape, strides, data, flags, nullptr);
}

// Takes over the base.
inline int set_base(PyObject *array, PyObject *base) {
  return reinterpret_cast<int (*)(PyObject *, PyObject *)>(table()[282])(array, base);
}

}  // namespace seqflow::numpy
