// Binds scans.h: cumulative sums of each segment.
#include <vector>

#include "shared/processor.h"
#include "bindings/python.h"
#include "reductions/scans.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

// A long segment in pieces, each from the sums of those before it, which are added up as F. One thread takes the sum of a
// piece while a cache has it.
template <class F>
void scan_long(const ScanKernels &kernels, Type type, const Scan &job, int64_t first, int64_t last) {
  const int64_t columns = job.columns, step = piece_rows(columns), count = (last - first + step - 1) / step;
  const int64_t work = (last - first) * columns * 8;
  std::vector<F> before(static_cast<size_t>(product(count + 1, columns)));
  // Pieces are counted in the order of the scan.
  const auto rows_of = [&](int64_t piece) {
    const int64_t from = first + (job.reverse ? count - 1 - piece : piece) * step;
    return std::pair(from, std::min(from + step, last));
  };
  const auto total = [&](int64_t piece) {
    const auto [from, to] = rows_of(piece);
    kernels.total[type](job, from, to, before.data() + (piece + 1) * columns);
  };
  const auto add = [&](int64_t piece) {
    for (int64_t c = piece * columns; c < (piece + 1) * columns; ++c) before[c + columns] += before[c];
  };
  const auto scan_piece = [&](int64_t piece) {
    const auto [from, to] = rows_of(piece);
    const int64_t offsets[] = {from, to};
    Scan part = job;
    part.offsets = offsets;
    part.before = before.data() + piece * columns;
    kernels.cumsum[type](part, 0, 1);
  };
  if (usable_threads() == 1) {
    for (int64_t piece = 0; piece < count; ++piece) total(piece), add(piece), scan_piece(piece);
    return;
  }
  parallel_for(count, work, [&](int64_t piece) { total(piece); });
  for (int64_t piece = 0; piece < count; ++piece) add(piece);
  parallel_for(count, work, [&](int64_t piece) { scan_piece(piece); });
}

nb::object cumsum_within(nb::handle data, nb::handle lengths, bool reverse, bool exclusive) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return cumsum_within(cast(data, dtype_named(FLOAT32)), lengths, reverse, exclusive);
  const Type type = rows.type();
  Scan job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  nb::object result = empty_array({rows.extent(0)}, rows, 1, dtype_named(sum_type(type)));
  job.data = rows.data();
  job.out = Buffer(result, NUMERIC, true).data();
  job.reverse = reverse;
  job.exclusive = exclusive;
  const Integers sizes = counts.counts();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  const ScanKernels &kernels = SEQFLOW_SELECTED(scan_kernels);
  const bool is_float = type == FLOAT32 || type == FLOAT64;
  const bool cuts = is_float || usable_threads() > 1;  // sums of integers are exact in any order
  const auto is_shared = [&](int64_t k) { return cuts && is_long(offsets[k + 1] - offsets[k], job.columns); };
  parallel_segments(offsets, job.columns, rows.bytes(), [&](int64_t begin, int64_t end) {
    others_of(begin, end, is_shared, [&](int64_t first, int64_t last) { kernels.cumsum[type](job, first, last); });
  });
  for (int64_t k = 0; k + 1 < offsets.size; ++k) {
    if (!is_shared(k)) continue;
    if (is_float)
      scan_long<double>(kernels, type, job, offsets[k], offsets[k + 1]);
    else
      scan_long<uint64_t>(kernels, type, job, offsets[k], offsets[k + 1]);  // the bits of int64, which may overflow
  }
  return result;
}

}  // namespace

void bind_scans(nb::module_ &module) {
  bind_kernel(module, "cumsum_within", cumsum_within);
}

}  // namespace seqflow
