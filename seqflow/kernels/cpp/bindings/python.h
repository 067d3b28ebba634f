// Between Python and the kernels: arrays as they are, results as NumPy arrays, faults as KernelError.
#pragma once

#include <nanobind/nanobind.h>

#include "shared/checks.h"

namespace seqflow {

namespace nb = nanobind;

// Leave the call to NumPy: throws what ends a function that `bind_kernel` has bound.
[[noreturn]] void decline();

enum Elements {
  NUMERIC,  // numbers, as the buffer protocol describes them
  ANY       // whatever may be copied as bytes
};

// A C-contiguous array in native byte order, by the buffer protocol; others are declined.
class Buffer {
 public:
  explicit Buffer(nb::handle array, Elements elements = NUMERIC, bool writable = false);
  ~Buffer() { PyBuffer_Release(&view); }  // nothing where it is described by `fields`
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  const uint8_t *data() const { return static_cast<const uint8_t *>(view.buf); }
  uint8_t *data() { return static_cast<uint8_t *>(view.buf); }
  int rank() const { return view.ndim - hidden_axes; }
  int64_t extent(int axis) const { return view.shape[axis]; }
  int64_t item_bytes() const { return hidden_axes ? view.shape[rank()] : view.itemsize; }
  int64_t bytes() const { return view.len; }
  int64_t size() const { return view.len / item_bytes(); }  // elements
  int64_t row_elements(int axis = 1) const;                 // elements of all axes from there on
  int64_t row_bytes(int axis = 1) const { return row_elements(axis) * item_bytes(); }
  bool is_half() const;                                   // float16
  bool is_bytes() const;                                  // uint8
  bool is_described() const { return hidden_axes == 0; }  // by the buffer protocol
  Type type() const;          // declines what is not computed with
  Integers integers() const;  // declines all but int32 and int64
  Integers counts() const;    // the same, of one axis
  bool shares_memory(const Buffer &other) const;

 private:
  bool acquire(nb::handle array, bool writable);
  bool acquire_fields(nb::handle array, bool writable);
  bool is_movable() const;
  Py_buffer view;
  nb::object owner;          // of a view without the buffer protocol
  Py_ssize_t sizes[8] = {};  // its shape, which another thread may change
  int hidden_axes = 0;  // 1 where the last axis of the view holds the bytes of an element
};

nb::object empty_bytes(int64_t count);

// numpy.empty of a shape, which is that of `like` from an axis on behind some other axes; and of a dtype.
nb::object empty_array(std::initializer_list<int64_t> front, const Buffer &like, int from, nb::handle dtype);

// The same, or `out` where it is given; KernelError unless it has that shape and dtype.
nb::object output(nb::handle out, std::initializer_list<int64_t> front, const Buffer &like, int from,
                  nb::handle dtype, const char *argument = "out");
nb::object output(nb::handle out, nb::tuple shape, nb::handle dtype, const char *argument = "out");

bool is_plain_array(nb::handle array);  // numpy.ndarray itself
nb::object dtype_of(nb::handle array);
nb::object dtype_named(Type type);

// KernelError where there is not enough memory for an array of this shape.
void check_memory(std::initializer_list<int64_t> shape, Type type);
Type sum_type(Type type);   // as arrays.sum_dtype
Type mean_type(Type type);  // as arrays.mean_dtype
nb::object bool_dtype();
nb::object int64_array(const int64_t *values, int64_t size);

// Copies of an array: as it is, and in another dtype.
nb::object copy_of(nb::handle array);
nb::object cast(nb::handle array, nb::handle dtype);

// A number that Python takes as an index, as the argument of a kernel.
struct Index {
  int64_t value = 0;
  operator int64_t() const { return value; }
};

// None: no index is ignored; nor is one that int64 cannot hold.
struct Ignored {
  bool any = false;
  int64_t index = 0;
  explicit Ignored(nb::handle value);
};

// One element of a dtype with a value to fill with.
class Fill {
 public:
  // zero_bytes: the number 0 is all bytes 0.
  Fill(nb::handle value, nb::handle dtype, bool zero_bytes = true);
  const void *data() const { return element.is_valid() ? PyBytes_AS_STRING(element.ptr()) : nullptr; }  // null: 0
  Pattern pattern() const;

 private:
  nb::object element;
};

// Lets other Python threads run meanwhile, where there is enough to do. Where Python has ended meanwhile, the thread,
// a daemon, stays here until the process is gone.
class Unlocked {
 public:
  explicit Unlocked(int64_t bytes) : state(bytes >= WORTH_IT ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state) lock_again(state);
  }
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;

 private:
  static constexpr int64_t WORTH_IT = 1 << 17;
  static void lock_again(PyThreadState *state) noexcept;
  PyThreadState *state;
};

void translate_faults();

// Any object may be None.
template <class A>
auto parameter() {
  if constexpr (std::is_base_of_v<nb::handle, A>)
    return nb::arg().none();
  else
    return nb::arg();
}

template <class A>
using Whatever = nb::handle;

// Bind a kernel under its public name, with its parameters by position. The last overload takes what the function
// declines and what it cannot be called with: it answers NotImplemented, and dispatch.py asks NumPy.
template <class... A>
void bind_kernel(nb::module_ &module, const char *name, nb::object (*function)(A...)) {
  module.def(name, function, parameter<A>()...);
  module.def(name, [](Whatever<A>...) { return nb::borrow(Py_NotImplemented); }, parameter<Whatever<A>>()...);
}

// The bindings of each family of kernels.
void bind_attention(nb::module_ &module);
void bind_bucketing(nb::module_ &module);
void bind_chunks(nb::module_ &module);
void bind_discounting(nb::module_ &module);
void bind_distinct(nb::module_ &module);
void bind_footers(nb::module_ &module);
void bind_groups(nb::module_ &module);
void bind_hashing(nb::module_ &module);
void bind_lengths(nb::module_ &module);
void bind_line_columns(nb::module_ &module);
void bind_lines(nb::module_ &module);
void bind_matching(nb::module_ &module);
void bind_matrices(nb::module_ &module);
void bind_moves(nb::module_ &module);
void bind_ordering(nb::module_ &module);
void bind_packing(nb::module_ &module);
void bind_padding(nb::module_ &module);
void bind_quantized(nb::module_ &module);
void bind_recurrent(nb::module_ &module);
void bind_reductions(nb::module_ &module);
void bind_scans(nb::module_ &module);
void bind_sharing(nb::module_ &module);
void bind_softmax(nb::module_ &module);
void bind_spreading(nb::module_ &module);
void bind_tensors(nb::module_ &module);
void bind_vocabulary(nb::module_ &module);

}  // namespace seqflow

template <>
struct nanobind::detail::type_caster<seqflow::Index> {
  NB_TYPE_CASTER(seqflow::Index, const_name("int"))
  bool from_python(handle source, uint8_t, cleanup_list *) noexcept {
    PyObject *number = PyNumber_Index(source.ptr());
    int overflow = 1;
    if (number) value.value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_XDECREF(number);
    if (PyErr_Occurred()) PyErr_Clear();
    return overflow == 0;
  }
};
