// Binds ordering.h: sort, argsort, top-k and argmax of each segment.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "ordering/equals.h"
#include "ordering/ordering.h"
#include "shared/processor.h"
#include "shared/room.h"
#include "bindings/python.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

constexpr int64_t ORDERING_WORK = 4;

using Kernel = void (*)(const Ordering &, int64_t begin, int64_t end, void *scratch);

// What makes signed integers of unsigned ones in the same order, and turns the order around.
int64_t order_bits(Type type, bool descending) {
  const int64_t all = -int64_t{descending};
  switch (type) {
    case UINT8: return all ^ INT8_MIN;
    case UINT16: return all ^ INT16_MIN;
    case UINT32: return all ^ INT32_MIN;
    case UINT64: return all ^ INT64_MIN;
    default: return all;
  }
}

// Run a kernel on segments [begin, end).
void run_segments(Kernel kernel, const Ordering &job, int64_t begin, int64_t end) {
  int64_t longest = 0;
  for (int64_t k = begin; k < end; ++k) longest = std::max(longest, job.offsets[k + 1] - job.offsets[k]);
  Room<uint8_t> scratch(longest > MAX_SHORT ? scratch_bytes(longest) : 0);
  kernel(job, begin, end, scratch.data());
}

// Sort a segment: divided into a bucket for each thread, which are sorted. How it is divided does not matter: equal elements
// share a bucket, and keep their order.
void sort_long(const OrderingKernels &kernels, Type type, const Ordering &job, int64_t k, int64_t item) {
  constexpr int64_t SAMPLES = 1024;  // for each bucket, so that buckets differ by a few in a hundred
  const int64_t first = job.offsets[k], size = job.offsets[k + 1] - first, count = std::min(usable_threads(), 16);
  Room<uint8_t> memory(product(size, item));
  Dividing parts = {static_cast<const uint8_t *>(job.data) + first * item, memory.data(), job.flipped, count, nullptr};
  const int64_t taken = std::min(size, SAMPLES * count);
  std::vector<uint64_t> keys(static_cast<size_t>(taken)), pivots;
  kernels.keys[type](parts, size / taken, taken, keys.data());
  std::sort(keys.begin(), keys.end());
  for (int64_t i = 1; i < count; ++i) pivots.push_back(keys[static_cast<size_t>(taken * i / count)]);
  parts.pivots = pivots.data();

  const int64_t work = product(size, item * ORDERING_WORK);
  const auto piece = [&](int64_t i) { return size / count * i + std::min(i, size % count); };
  std::vector<int64_t> next(static_cast<size_t>(count * count)), cuts;  // of each piece in each bucket
  parallel_for(count, work, [&](int64_t i) { kernels.count[type](parts, piece(i), piece(i + 1), &next[i * count]); });
  int64_t at = 0;
  for (int64_t bucket = 0; bucket < count; ++bucket) {
    cuts.push_back(at);
    for (int64_t i = 0; i < count; ++i) at += std::exchange(next[i * count + bucket], at);
  }
  cuts.push_back(size);
  parallel_for(count, work, [&](int64_t i) { kernels.fill[type](parts, piece(i), piece(i + 1), &next[i * count]); });
  Ordering own = job;
  own.data = memory.data(), own.values = static_cast<uint8_t *>(job.values) + first * item;
  own.offsets = cuts.data(), own.num_segments = count;
  parallel_for(count, work, [&](int64_t i) { run_segments(kernels.sort[type], own, i, i + 1); });
}

// The places of the largest in pieces of segments, and then of the largest of these.
void find_in_pieces(Kernel kernel, const Ordering &job, int64_t item, int64_t work) {
  const int64_t columns = job.columns, step = piece_rows(columns);
  std::vector<int64_t> cuts, pieces = {0};  // where pieces begin, and how many there are before each segment
  for (int64_t k = 0; k < job.num_segments; ++k) {
    for (int64_t at = job.offsets[k]; at < job.offsets[k + 1]; at += step) cuts.push_back(at);
    pieces.push_back(static_cast<int64_t>(cuts.size()));
  }
  const int64_t count = static_cast<int64_t>(cuts.size());
  cuts.push_back(job.offsets[job.num_segments]);
  std::vector<int64_t> places(static_cast<size_t>(count * columns));
  std::vector<uint8_t> best(static_cast<size_t>(count * columns * item));
  Ordering own = job;
  own.offsets = cuts.data(), own.num_segments = count, own.positions = places.data();
  parallel_for(count, work, [&](int64_t piece) {
    kernel(own, piece, piece + 1, nullptr);
    for (int64_t c = piece * columns; c < (piece + 1) * columns; ++c) {
      places[c] += cuts[piece];
      memcpy(best.data() + c * item, static_cast<const uint8_t *>(job.data) + (places[c] * columns + c % columns) * item, item);
    }
  });
  own.data = best.data(), own.offsets = pieces.data(), own.num_segments = job.num_segments, own.positions = job.positions;
  kernel(own, 0, job.num_segments, nullptr);
  for (int64_t k = 0; k < job.num_segments; ++k)
    for (int64_t c = 0; pieces[k] < pieces[k + 1] && c < columns; ++c) {
      int64_t &place = job.positions[k * columns + c];
      place = places[(pieces[k] + place) * columns + c] - job.offsets[k];
    }
}

// The parts of a call that all kernels share. `result_of` makes the result and fills in where it is.
template <class Make>
nb::object run(const Kernel (&kernels)[NUM_TYPES], const Buffer &rows, nb::handle lengths, bool descending,
               Ordering job, Make &&result_of) {
  const Buffer counts(lengths);
  const Type type = rows.type();
  job.flipped = order_bits(type, descending);
  const Integers sizes = counts.counts();
  if (rows.row_elements() == 0) decline();
  job.columns = rows.row_elements();
  job.data = rows.data();
  nb::object result = result_of(sizes.size, job);
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  job.num_segments = offsets.size - 1;
  check_sum(offsets[job.num_segments], rows.extent(0), "lengths", "data");
  const Kernel kernel = kernels[type];
  const OrderingKernels &all = SEQFLOW_SELECTED(ordering_kernels);
  const bool sorts = kernel == all.sort[type], finds = kernel == all.arg[type];
  const bool shares = (sorts || finds) && usable_threads() > 1;
  bool any_long = false;
  const auto is_shared = [&](int64_t k) { return shares && is_long(offsets[k + 1] - offsets[k], job.columns); };
  for (int64_t k = 0; k < job.num_segments; ++k) any_long |= is_shared(k);
  const int64_t work = product(rows.bytes(), ORDERING_WORK);
  if (finds && any_long) {
    if (job.values) decline();
    find_in_pieces(kernel, job, rows.item_bytes(), work);
    return result;
  }
  parallel_segments(offsets, job.columns, work, [&](int64_t begin, int64_t end) {
    others_of(begin, end, is_shared, [&](int64_t first, int64_t last) { run_segments(kernel, job, first, last); });
  });
  for (int64_t k = 0; any_long && k < job.num_segments; ++k)
    if (is_shared(k)) sort_long(all, type, job, k, rows.item_bytes());
  return result;
}

bool is_time(nb::handle data) {
  const nb::object kind = dtype_of(data).attr("kind");
  return kind.equal(nb::str("M")) || kind.equal(nb::str("m"));
}

// Times as integers in the same order: NaT, the smallest one, becomes the largest.
nb::object as_integers(nb::handle times) { return times.attr("view")(dtype_named(INT64)) - nb::int_(1); }
nb::object as_times(nb::handle integers, nb::handle times) {
  return (integers + nb::int_(1)).attr("view")(dtype_of(times));
}

// Rows of several columns: `order` is called with all columns one below the other, and lengths to match.
template <class F>
nb::object by_columns(nb::handle data, const Buffer &rows, nb::handle lengths, F &&order) {
  const Buffer counts(lengths);
  rows.type();
  const int64_t num_rows = rows.extent(0), columns = rows.row_elements();
  if (columns == 0) decline();
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[offsets.size - 1], num_rows, "lengths", "data");
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object flat = data.attr("reshape")(num_rows, columns).attr("T").attr("reshape")(-1);
  const nb::object ordered = order(flat, numpy.attr("tile")(lengths, columns));
  const nb::object back = ordered.attr("reshape")(columns, num_rows).attr("T");
  return numpy.attr("ascontiguousarray")(back).attr("reshape")(data.attr("shape"));
}

nb::object sort_within(nb::handle data, nb::handle lengths, bool descending) {
  const Buffer rows(data, ANY);
  if (!rows.is_described() && is_time(data)) return as_times(sort_within(as_integers(data), lengths, descending), data);
  if (rows.is_half())
    return cast(sort_within(cast(data, dtype_named(FLOAT32)), lengths, descending), dtype_of(data));
  if (rows.rank() > 1)
    return by_columns(data, rows, lengths, [&](nb::handle column, nb::handle repeated) {
      return sort_within(column, repeated, descending);
    });
  nb::object sorted;
  run(SEQFLOW_SELECTED(ordering_kernels).sort, rows, lengths, descending, {},
      [&](int64_t, Ordering &job) {
        sorted = empty_array({rows.extent(0)}, rows, 1, dtype_of(data));
        job.values = Buffer(sorted, NUMERIC, true).data();
        return sorted;
      });
  return sorted;
}

nb::object argsort_within(nb::handle data, nb::handle lengths, bool descending) {
  const Buffer rows(data, ANY);
  if (!rows.is_described() && is_time(data)) return argsort_within(as_integers(data), lengths, descending);
  if (rows.is_half()) return argsort_within(cast(data, dtype_named(FLOAT32)), lengths, descending);
  if (rows.rank() > 1)
    return by_columns(data, rows, lengths, [&](nb::handle column, nb::handle repeated) {
      return argsort_within(column, repeated, descending);
    });
  return run(SEQFLOW_SELECTED(ordering_kernels).argsort, rows, lengths, descending, {},
             [&](int64_t, Ordering &job) {
               nb::object positions = empty_array({rows.extent(0)}, rows, 1, dtype_named(INT64));
               job.positions = reinterpret_cast<int64_t *>(Buffer(positions, NUMERIC, true).data());
               return positions;
             });
}

nb::object segment_topk(nb::handle data, nb::handle lengths, Index k) {
  const Buffer rows(data);
  if (k < 0 || rows.rank() > 1) decline();
  if (rows.is_half()) {
    const nb::object found = segment_topk(cast(data, dtype_named(FLOAT32)), lengths, k);
    return nb::make_tuple(cast(found[0], dtype_of(data)), found[1]);
  }
  Ordering job = {};
  job.k = k;
  return run(SEQFLOW_SELECTED(ordering_kernels).topk, rows, lengths, true, job,
             [&](int64_t num_segments, Ordering &job) -> nb::object {
               nb::object values = empty_array({num_segments, k}, rows, 1, dtype_of(data));
               nb::object positions = empty_array({num_segments, k}, rows, 1, dtype_named(INT64));
               job.values = Buffer(values, NUMERIC, true).data();
               job.positions = reinterpret_cast<int64_t *>(Buffer(positions, NUMERIC, true).data());
               return nb::make_tuple(values, positions);
             });
}

nb::object segment_arg(const char *kind, nb::handle data, nb::handle lengths) {
  const bool descending = std::strcmp(kind, "min") == 0;
  if (!descending && std::strcmp(kind, "max") != 0) decline();
  const Buffer rows(data);
  if (rows.is_half()) return segment_arg(kind, cast(data, dtype_named(FLOAT32)), lengths);
  return run(SEQFLOW_SELECTED(ordering_kernels).arg, rows, lengths, descending, {},
             [&](int64_t num_segments, Ordering &job) {
               nb::object positions = empty_array({num_segments}, rows, 1, dtype_named(INT64));
               job.positions = reinterpret_cast<int64_t *>(Buffer(positions, NUMERIC, true).data());
               return positions;
             });
}

// Of several columns: those of one are reduced in lanes, where another one of equal zeros may win.
nb::object segment_extreme(const char *kind, nb::handle data, nb::handle lengths, nb::handle empty) {
  const bool descending = std::strcmp(kind, "min") == 0;
  if (!descending && std::strcmp(kind, "max") != 0) decline();
  const Buffer rows(data);
  if (rows.is_half()) {
    const nb::object found = segment_extreme(kind, cast(data, dtype_named(FLOAT32)), lengths, empty);
    return nb::make_tuple(cast(found[0], dtype_of(data)), found[1]);
  }
  if (rows.row_elements() < 2) decline();
  const nb::object dtype = dtype_of(data);
  const Fill fill(empty, dtype);
  bool declines = false;
  Ordering job = {};
  job.empty = fill.data();
  job.declines = &declines;
  const nb::object found = run(SEQFLOW_SELECTED(ordering_kernels).arg, rows, lengths, descending, job,
                               [&](int64_t num_segments, Ordering &job) -> nb::object {
                                 nb::object values = empty_array({num_segments}, rows, 1, dtype);
                                 nb::object positions = empty_array({num_segments}, rows, 1, dtype_named(INT64));
                                 job.values = Buffer(values, NUMERIC, true).data();
                                 job.positions = reinterpret_cast<int64_t *>(Buffer(positions, NUMERIC, true).data());
                                 return nb::make_tuple(values, positions);
                               });
  if (declines) decline();
  return found;
}

}  // namespace

void bind_ordering(nb::module_ &module) {
  bind_kernel(module, "sort_within", sort_within);
  bind_kernel(module, "argsort_within", argsort_within);
  bind_kernel(module, "segment_topk", segment_topk);
  bind_kernel(module, "segment_arg", segment_arg);
  bind_kernel(module, "segment_extreme", segment_extreme);
}

}  // namespace seqflow
