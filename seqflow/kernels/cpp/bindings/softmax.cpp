// Binds softmax.h.
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/segments.h"
#include "reductions/softmax.h"

#include <cmath>
#include <vector>

namespace seqflow {
namespace {

constexpr int64_t SOFTMAX_WORK = 4;        // exp takes longer than a copy
constexpr int64_t LONG = 4 * SOFTMAX_PIECE;  // segments from this length on are shared by all threads

std::vector<int64_t> long_segments(const Numbers &offsets) {
  std::vector<int64_t> found;
  if (offsets[offsets.size - 1] < LONG) return found;
  for (int64_t k = 0; k + 1 < offsets.size; ++k)
    if (offsets[k + 1] - offsets[k] >= LONG) found.push_back(k);
  return found;
}

// One long segment of one column, by all threads.
void run_long(SoftmaxForm form, bool wide, const Softmax &job, int64_t segment) {
  const LongSoftmax &steps = SEQFLOW_SELECTED(softmax_kernels).of_long;
  const int64_t begin = job.offsets[segment], end = job.offsets[segment + 1], bytes = (end - begin) * (wide ? 8 : 4);
  std::vector<double> found(static_cast<size_t>((end - begin + SOFTMAX_PIECE - 1) / SOFTMAX_PIECE));
  const auto each_piece = [&](int64_t work, const auto &step) {
    parallel_for(static_cast<int64_t>(found.size()), work, [&](int64_t piece) {
      const int64_t first = begin + piece * SOFTMAX_PIECE;
      step(piece, first, std::min(first + SOFTMAX_PIECE, end));
    });
  };
  each_piece(bytes, [&](int64_t piece, int64_t first, int64_t last) {
    found[static_cast<size_t>(piece)] = steps.largest[wide](job, first, last);
  });
  const double most = *std::max_element(found.begin(), found.end());
  const double shift = form == LOGSUMEXP && std::isinf(most) ? 0 : most;
  each_piece(product(bytes, SOFTMAX_WORK), [&](int64_t piece, int64_t first, int64_t last) {
    found[static_cast<size_t>(piece)] = steps.powers[form][wide](job, first, last, shift);
  });
  double total = 0;
  for (const double part : found) total += part;
  if (form == LOGSUMEXP) return steps.finish[form][wide](job, segment, begin, end, shift, total);
  each_piece(bytes, [&](int64_t, int64_t first, int64_t last) {
    steps.finish[form][wide](job, segment, first, last, shift, total);
  });
}

nb::object run(SoftmaxForm form, nb::handle data, nb::handle lengths, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return run(form, cast(data, dtype_named(FLOAT64)), lengths, empty);
  const Type type = rows.type();
  if (type != FLOAT32 && type != FLOAT64) return run(form, cast(data, dtype_named(FLOAT64)), lengths, empty);
  if (rows.row_elements() == 0) decline();
  const Integers sizes = counts.counts();
  const nb::object dtype = dtype_named(type);
  Softmax job = {};
  job.columns = rows.row_elements();
  const int64_t size = form == LOGSUMEXP ? sizes.size : rows.extent(0);
  nb::object result = empty_array({size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.data = rows.data();
  job.empty = fill.data();
  job.out = Buffer(result, NUMERIC, true).data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  job.num_segments = offsets.size - 1;
  check_sum(offsets[job.num_segments], rows.extent(0), "lengths", "data");
  const auto kernel = SEQFLOW_SELECTED(softmax_kernels).run[form][type == FLOAT64];
  const std::vector<int64_t> alone =
      job.columns == 1 && num_threads() > 1 ? long_segments(offsets) : std::vector<int64_t>();
  parallel_segments(offsets, job.columns, product(rows.bytes(), SOFTMAX_WORK), [&](int64_t begin, int64_t end) {
    for (auto next = std::lower_bound(alone.begin(), alone.end(), begin); next != alone.end() && *next < end; ++next) {
      if (begin < *next) kernel(job, begin, *next);
      begin = *next + 1;
    }
    if (begin < end) kernel(job, begin, end);
  });
  for (const int64_t segment : alone) run_long(form, type == FLOAT64, job, segment);
  return result;
}

nb::object softmax_within(nb::handle data, nb::handle lengths, bool log) {
  return run(log ? LOG_SOFTMAX : SOFTMAX, data, lengths, nb::int_(0));
}

nb::object segment_logsumexp(nb::handle data, nb::handle lengths, nb::handle empty) {
  return run(LOGSUMEXP, data, lengths, empty);
}

nb::object softmax_within_backward(nb::handle d, nb::handle out, nb::handle lengths) {
  const Buffer arriving(d), result(out), counts(lengths);
  const Type type = result.type();
  if (arriving.is_half() || result.is_half() || arriving.type() != type) decline();
  if ((type != FLOAT32 && type != FLOAT64) || result.row_elements() == 0) decline();
  if (arriving.extent(0) != result.extent(0) || arriving.size() != result.size()) decline();
  nb::object back = empty_array({result.extent(0)}, result, 1, dtype_named(type));
  SoftmaxBackward job = {};
  job.columns = result.row_elements();
  job.d = arriving.data(), job.y = result.data();
  job.out = Buffer(back, NUMERIC, true).data();
  const Unlocked unlocked(result.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[offsets.size - 1], result.extent(0), "lengths", "data");
  job.offsets = offsets.data();
  const auto kernel = SEQFLOW_SELECTED(softmax_kernels).backward[type == FLOAT64];
  parallel_segments(offsets, job.columns, result.bytes(),
                    [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  return back;
}

}  // namespace

void bind_softmax(nb::module_ &module) {
  bind_kernel(module, "softmax_within", softmax_within);
  bind_kernel(module, "segment_logsumexp", segment_logsumexp);
  bind_kernel(module, "softmax_within_backward", softmax_within_backward);
}

}  // namespace seqflow
