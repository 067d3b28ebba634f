// Discounted sums inside each segment. In NumPy: discounting.py.
#include "bindings/python.h"
#include "shared/segments.h"

namespace seqflow {
namespace {
namespace discounting {

struct Job {
  const void *data, *discount;
  const double *last;  // null where it is 0
  const int64_t *offsets;
  int64_t columns;
  void *out;
  double gamma;
  bool reverse;
};

constexpr int64_t BLOCK = 16;  // columns whose sums stay in registers

// COUNT columns of a segment from `column` on; 0: a number of columns that is known only here.
template <class T, class D, int COUNT>
void add_columns(const Job &job, int64_t segment, int64_t column) {
  const int64_t left = job.columns - column, count = COUNT ? COUNT : left < BLOCK ? left : BLOCK;
  const int64_t first = job.offsets[segment], stop = job.offsets[segment + 1], step = job.reverse ? -1 : 1;
  double sums[COUNT ? COUNT : BLOCK] = {};
  for (int64_t c = 0; job.last && c < count; ++c) sums[c] = job.last[segment * job.columns + column + c];
  for (int64_t i = first, t = job.reverse ? stop - 1 : first; i < stop; ++i, t += step) {
    const T *row = static_cast<const T *>(job.data) + t * job.columns + column;
    T *to = static_cast<T *>(job.out) + t * job.columns + column;
    const double by = static_cast<double>(static_cast<const D *>(job.discount)[t]) * job.gamma;
    for (int64_t c = 0; c < count; ++c)
      to[c] = static_cast<T>(sums[c] = static_cast<double>(row[c]) + by * sums[c]);
  }
}

template <class T, class D>
void add_up(const Job &job, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k)
    if (job.columns == 1)
      add_columns<T, D, 1>(job, k, 0);
    else
      for (int64_t column = 0; column < job.columns; column += BLOCK) add_columns<T, D, 0>(job, k, column);
}

}  // namespace discounting

nb::object discounted_sums(nb::handle data, nb::handle discount, nb::handle lengths, nb::handle last, bool reverse,
                           double gamma) {
  const Buffer rows(data), factors(discount), counts(lengths);
  if (rows.type() != FLOAT32 && rows.type() != FLOAT64) decline();
  if (factors.type() != FLOAT32 && factors.type() != FLOAT64) decline();
  if (factors.rank() != 1 || factors.extent(0) != rows.extent(0)) decline();
  discounting::Job job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  const Integers sizes = counts.counts();
  std::unique_ptr<Buffer> after;
  if (!last.is_none()) {
    after.reset(new Buffer(last));
    if (after->type() != FLOAT64 || after->rank() != rows.rank()) decline();
    if (after->extent(0) != sizes.size || after->row_elements() != job.columns) decline();
    job.last = reinterpret_cast<const double *>(after->data());
  }
  nb::object result = empty_array({rows.extent(0)}, rows, 1, dtype_named(rows.type()));
  Buffer out(result, NUMERIC, true);
  job.data = rows.data();
  job.discount = factors.data();
  job.gamma = gamma;
  job.out = out.data();
  job.reverse = reverse;
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  using discounting::add_up;
  const auto run = rows.type() == FLOAT32 ? (factors.type() == FLOAT32 ? add_up<float, float> : add_up<float, double>)
                                          : (factors.type() == FLOAT32 ? add_up<double, float> : add_up<double, double>);
  parallel_segments(offsets, job.columns, rows.bytes(), [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return result;
}

}  // namespace

void bind_discounting(nb::module_ &module) {
  bind_kernel(module, "discounted_sums", discounted_sums);
}

}  // namespace seqflow
