// Binds ordering.h: sort, argsort, top-k and argmax of each segment.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ordering/equals.h"
#include "ordering/ordering.h"
#include "shared/processor.h"
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
  parallel_segments(offsets, job.columns, product(rows.bytes(), ORDERING_WORK), [&](int64_t begin, int64_t end) {
    int64_t longest = 0;
    for (int64_t k = begin; k < end; ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
    std::unique_ptr<int64_t[]> scratch;
    if (longest > MAX_SHORT) scratch.reset(new int64_t[scratch_bytes(longest) / sizeof(int64_t)]);
    kernel(job, begin, end, scratch.get());
  });
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

}  // namespace

void bind_ordering(nb::module_ &module) {
  bind_kernel(module, "sort_within", sort_within);
  bind_kernel(module, "argsort_within", argsort_within);
  bind_kernel(module, "segment_topk", segment_topk);
  bind_kernel(module, "segment_arg", segment_arg);
}

}  // namespace seqflow
