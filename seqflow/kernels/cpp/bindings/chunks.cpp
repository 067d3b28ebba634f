// Binds chunks.h: rows of Arrow chunks, held while they are read.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "moves/chunks.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

// Arrays that stay in place as long as this lives, with their rows numbered from one to the next.
struct HeldRows {
  std::vector<std::unique_ptr<Buffer>> arrays;  // at least one
  std::vector<int64_t> firsts;                  // [arrays + 1]
  nb::object dtype;

  const Buffer &like() const { return *arrays.front(); }
  int64_t num_rows() const { return firsts.back(); }
  bool shares_memory(const Buffer &other) const {
    return std::any_of(arrays.begin(), arrays.end(), [&](const auto &array) { return array->shares_memory(other); });
  }
};

constexpr const char *HELD = "seqflow.HeldRows";

// None where they are nothing that native kernels take.
nb::object hold_rows(nb::typed<nb::tuple, nb::object, nb::ellipsis> arrays) try {
  auto held = std::make_unique<HeldRows>();
  if (arrays.size() == 0) decline();
  held->dtype = dtype_of(arrays[0]);
  held->firsts.push_back(0);
  for (nb::handle array : arrays) {
    if (!dtype_of(array).equal(held->dtype)) decline();
    held->arrays.push_back(std::make_unique<Buffer>(array, ANY));
    const Buffer &rows = *held->arrays.back();
    if (rows.row_bytes() == 0 || rows.rank() != held->like().rank()) decline();
    for (int axis = 1; axis < rows.rank(); ++axis)
      if (rows.extent(axis) != held->like().extent(axis)) decline();
    held->firsts.push_back(held->firsts.back() + rows.extent(0));
  }
  return nb::capsule(held.release(), HELD, [](void *pointer) noexcept { delete static_cast<HeldRows *>(pointer); });
} catch (const nb::builtin_exception &declined) {
  if (declined.type() != nb::exception_type::next_overload) throw;
  return nb::none();
}

// What the ChunkedRows hold for native kernels.
class Chunks {
 public:
  explicit Chunks(nb::handle chunks) : capsule(nb::getattr(chunks, "held", nb::none())) {
    if (!PyCapsule_IsValid(capsule.ptr(), HELD)) decline();
    held = static_cast<const HeldRows *>(PyCapsule_GetPointer(capsule.ptr(), HELD));
  }
  const HeldRows *operator->() const { return held; }
  const HeldRows &operator*() const { return *held; }

 private:
  nb::object capsule;
  const HeldRows *held;
};

// Slices of rows, each inside one array: the address of each, and the offsets that follow from their sizes.
struct Slicing {
  std::vector<const uint8_t *> from;
  Numbers offsets;

  Slicing(const HeldRows &held, Integers starts, Integers sizes)
      : from(static_cast<size_t>(sizes.size)), offsets(sizes.size + 1) {
    const int64_t num_rows = held.num_rows(), row_bytes = held.like().row_bytes();
    offsets[0] = 0;
    for (int64_t k = 0; k < sizes.size; ++k) {
      const int64_t start = starts[k], size = sizes[k];
      if (size < 0) throw Fault{"negative", "sizes", {k, size}, 2};
      if (start < 0 || size > num_rows || start > num_rows - size)
        throw Fault{"slice_outside", "starts", {k, start, size, num_rows}, 4};
      const auto next = std::upper_bound(held.firsts.begin(), held.firsts.end(), start);
      from[k] = nullptr;
      if (size > 0) {
        if (size > *next - start) throw Fault{"slice_across", "starts", {k, start, size, next[-1], *next}, 5};
        from[k] = held.arrays[next - held.firsts.begin() - 1]->data() + (start - next[-1]) * row_bytes;
      }
      if (__builtin_add_overflow(offsets[k], size, &offsets[k + 1])) decline();
    }
  }
};

nb::object gather_slices(nb::handle chunks, nb::handle starts, nb::handle sizes, nb::handle out) {
  const Chunks held(chunks);
  const Buffer at(starts), counts(sizes);
  const int64_t num_slices = counts.counts().size;
  if (at.counts().size != num_slices) decline();
  const Slicing slices(*held, at.counts(), counts.counts());
  const int64_t total = slices.offsets[num_slices], row_bytes = held->like().row_bytes();
  const int64_t bytes = product(total, row_bytes);
  nb::object gathered = output(out, {total}, held->like(), 1, held->dtype);
  Buffer to(gathered, ANY, true);
  if (!out.is_none() && held->shares_memory(to)) decline();
  const GatherSlices job = {slices.from.data(), slices.offsets.data(), row_bytes, to.data()};
  const Unlocked unlocked(bytes);
  const auto run = SEQFLOW_SELECTED(chunk_kernels).gather_slices;
  parallel_ranges(num_slices, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return gathered;
}

// How elements of the held arrays become elements of a dtype; null where they stay as they are.
Cast cast_to(const HeldRows &held, nb::handle dtype) {
  if (dtype.is_none() || held.dtype.equal(dtype)) return nullptr;
  const Type from = held.like().type();
  const bool is_float = from == FLOAT32 || from == FLOAT64;
  const ChunkKernels &kernels = SEQFLOW_SELECTED(chunk_kernels);
  const auto is = [&](Type type) { return dtype_named(type).equal(dtype); };
  if (is(INT64) && !is_float) return kernels.int64[from];
  if (is(INT32) && !is_float) return kernels.int32[from];
  if (is(FLOAT32)) return kernels.float32[from];
  if (is(FLOAT64)) return kernels.float64[from];
  decline();
}

// How slices are padded.
struct PaddingOptions {
  PaddingOptions(const HeldRows &held, nb::handle value, const char *side, bool truncate, nb::handle dtype)
      : held(held),
        cast(cast_to(held, dtype)),
        target(cast ? nb::borrow(dtype) : held.dtype),
        fill(value, target, held.like().is_described()),
        left(std::strcmp(side, "left") == 0),
        truncate(truncate) {
    if (!left && std::strcmp(side, "right") != 0) decline();
  }

  const HeldRows &held;
  const Cast cast;  // null: elements stay as they are
  const nb::object target;
  const Fill fill;
  const bool left, truncate;
};

// One row for each of some slices, in an array [B, width, *d], and in a mask [B, width] where that is not None.
class PaddedSlices {
 public:
  PaddedSlices(const PaddingOptions &how, nb::handle starts, nb::handle sizes, int64_t width, nb::handle padded, nb::handle mask)
      : how(how), at(starts), counts(sizes), num_slices(counts.counts().size), to(padded, ANY, true) {
    const Buffer &like = how.held.like();
    if (at.counts().size != num_slices || width < 0) decline();
    output(padded, {num_slices, width}, like, 1, how.target);
    job.width = width;
    job.left = how.left;
    job.cast = how.cast;
    job.pattern = how.fill.pattern();
    job.row_elements = like.row_elements();
    job.row_bytes = like.row_bytes();
    job.padded_row_bytes = to.item_bytes() * job.row_elements;
    job.padded = to.data();
    if (!mask.is_none()) {
      output(mask, {num_slices, width}, counts, 1, bool_dtype(), "mask");
      marks = std::make_unique<Buffer>(mask, NUMERIC, true);
      job.mask = marks->data();
    }
    if (how.held.shares_memory(to) || (marks && how.held.shares_memory(*marks))) decline();
  }

  int64_t bytes() const { return to.bytes(); }

  // Needs nothing of Python.
  void run() {
    Slicing slices(how.held, at.counts(), counts.counts());
    if (!how.truncate) check_room(slices.offsets, job.width, "sizes");
    for (int64_t k = 0, start = 0, stop; k < num_slices; ++k, start = stop) {
      stop = slices.offsets[k + 1];
      const int64_t size = stop - start, kept = size < job.width ? size : job.width;
      if (how.left && kept > 0) slices.from[k] += (size - kept) * job.row_bytes;
      slices.offsets[k + 1] = slices.offsets[k] + kept;
    }
    job.from = slices.from.data();
    job.offsets = slices.offsets.data();
    const auto kernel = SEQFLOW_SELECTED(chunk_kernels).pad_slices;
    parallel_ranges(num_slices, bytes(), [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
    if (job.fault) decline();  // NumPy says which element does not fit
  }

 private:
  const PaddingOptions &how;
  const Buffer at, counts;
  const int64_t num_slices;
  Buffer to;
  std::unique_ptr<Buffer> marks;
  PadSlices job = {};
};

nb::object pad_batches(nb::handle chunks, nb::handle batches, nb::handle value, const char *side, bool truncate,
                       nb::handle dtype) {
  if (!nb::isinstance<nb::list>(batches)) decline();
  const Chunks held(chunks);
  const PaddingOptions how(*held, value, side, truncate, dtype);
  std::vector<std::unique_ptr<PaddedSlices>> all;
  int64_t bytes = 0;
  for (nb::handle batch : nb::borrow<nb::list>(batches)) {
    if (!nb::isinstance<nb::tuple>(batch) || nb::len(batch) != 4) decline();
    const nb::tuple parts = nb::borrow<nb::tuple>(batch);
    const int64_t width = Buffer(parts[2], ANY).rank() > 1 ? Buffer(parts[2], ANY).extent(1) : -1;
    all.push_back(std::make_unique<PaddedSlices>(how, parts[0], parts[1], width, parts[2], parts[3]));
    bytes += all.back()->bytes();
  }
  const Unlocked unlocked(bytes);
  for (auto &one : all) one->run();
  return nb::none();
}

}  // namespace

void bind_chunks(nb::module_ &module) {
  module.def("hold_rows", hold_rows);
  bind_kernel(module, "gather_slices", gather_slices);
  bind_kernel(module, "pad_batches", pad_batches);
}

}  // namespace seqflow
