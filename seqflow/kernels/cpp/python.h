// Between Python and the kernels: arrays as they are, results as NumPy arrays, faults as KernelError.
#pragma once

#include <nanobind/nanobind.h>

#include "checks.h"

namespace seqflow {

namespace nb = nanobind;

// A C-contiguous array in native byte order, by the buffer protocol. TypeError for any other; native.py then
// brings it into this form.
class Buffer {
 public:
  explicit Buffer(nb::handle array, bool writable = false);
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  const uint8_t *data() const { return static_cast<const uint8_t *>(view.buf); }
  uint8_t *data() { return static_cast<uint8_t *>(view.buf); }
  int rank() const { return view.ndim; }
  int64_t extent(int axis) const { return view.shape[axis]; }
  int64_t item_bytes() const { return view.itemsize; }
  int64_t bytes() const { return view.len; }
  int64_t size() const;                      // elements
  int64_t row_elements(int axis = 1) const;  // elements of all axes from there on
  int64_t row_bytes(int axis = 1) const { return row_elements(axis) * view.itemsize; }
  void check_bytes(int64_t wanted) const;  // ValueError where it has another size
  void check_movable() const;   // TypeError where the bytes are not the whole of an element
  Type type() const;            // TypeError for a type that is not computed with
  Integers integers() const;    // TypeError unless int32 or int64
  Integers counts() const;      // the same, of one axis
  bool has_rows_like(const Buffer &other) const;  // the same dtype, and shape but for the first axis
  bool shares_memory(const Buffer &other) const;

 private:
  Py_buffer view;
};

[[noreturn]] void not_plain();

// numpy.empty of a shape, which is that of `like` from an axis on behind some other axes; and of a dtype.
nb::object empty_array(std::initializer_list<int64_t> front, const Buffer &like, int from, nb::handle dtype);
nb::object dtype_of(nb::handle array);
nb::object dtype_named(Type type);
nb::object bool_dtype();
nb::object int64_array(const int64_t *values, int64_t size);

// None: no index is ignored; nor is one that int64 cannot hold.
struct Ignored {
  bool any = false;
  int64_t index = 0;
  explicit Ignored(nb::handle value);
};

// A value to fill with: the bytes of one element, or None for 0. native.py brings others into this form.
Pattern pattern_of(nb::handle value, int64_t row_bytes);
const void *fill_bytes(nb::handle value, int64_t item_bytes);

// Lets other Python threads run meanwhile, where there is enough to do.
class Unlocked {
 public:
  explicit Unlocked(int64_t bytes) : state(bytes >= WORTH_IT ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state) PyEval_RestoreThread(state);
  }
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;

 private:
  static constexpr int64_t WORTH_IT = 1 << 17;
  PyThreadState *state;
};

void translate_faults();

// The bindings of each family of kernels.
void bind_folds(nb::module_ &module);
void bind_groups(nb::module_ &module);
void bind_lengths(nb::module_ &module);
void bind_reductions(nb::module_ &module);
void bind_moves(nb::module_ &module);
void bind_padding(nb::module_ &module);
void bind_packing(nb::module_ &module);
void bind_spreading(nb::module_ &module);
void bind_recurrent(nb::module_ &module);
void bind_ordering(nb::module_ &module);
void bind_packing(nb::module_ &module);
void bind_softmax(nb::module_ &module);

}  // namespace seqflow
