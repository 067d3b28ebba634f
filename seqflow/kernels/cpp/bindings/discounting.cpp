// Discounted sums inside each segment. In NumPy: discounting.py.
#include <algorithm>

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

  double before(int64_t segment, int64_t column) const { return last ? last[segment * columns + column] : 0; }
};

// One column of a segment that is being summed.
struct Sum {
  int64_t row, left;
  double value;
};

// Take `count` steps in each of N segments: the steps of one wait for each other, those of others do not.
template <class T, class D, int N>
void take_steps(const Job &job, Sum *sums, int64_t count) {
  const T *const data = static_cast<const T *>(job.data);
  const D *const discount = static_cast<const D *>(job.discount);
  T *const out = static_cast<T *>(job.out);
  const int64_t step = job.reverse ? -1 : 1;
  double values[N];
  int64_t rows[N];
#pragma GCC unroll 8
  for (int s = 0; s < N; ++s) values[s] = sums[s].value, rows[s] = sums[s].row;
  for (int64_t i = 0; i < count; ++i)
#pragma GCC unroll 8
    for (int s = 0; s < N; ++s) {
      const int64_t t = rows[s] + i * step;
      values[s] = static_cast<double>(data[t]) + static_cast<double>(discount[t]) * job.gamma * values[s];
      out[t] = static_cast<T>(values[s]);
    }
#pragma GCC unroll 8
  for (int s = 0; s < N; ++s) sums[s] = {rows[s] + count * step, sums[s].left - count, values[s]};
}

// Segments of one column, some at a time.
template <class T, class D>
void add_up_numbers(const Job &job, int64_t begin, int64_t end) {
  constexpr int MANY = 4;
  Sum sums[MANY];
  int number = 0;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t first = job.offsets[k], size = job.offsets[k + 1] - first;
    if (size == 0) continue;
    sums[number++] = {job.reverse ? first + size - 1 : first, size, job.before(k, 0)};
    if (number < MANY) continue;
    int64_t least = size;
    for (const Sum &sum : sums) least = std::min(least, sum.left);
    take_steps<T, D, MANY>(job, sums, least);
    number = static_cast<int>(std::remove_if(sums, sums + MANY, [](const Sum &sum) { return sum.left == 0; }) - sums);
  }
  for (int s = 0; s < number; ++s) take_steps<T, D, 1>(job, sums + s, sums[s].left);
}

constexpr int64_t BLOCK = 16;  // columns whose sums stay in registers

template <class T, class D>
void add_up(const Job &job, int64_t begin, int64_t end) {
  if (job.columns == 1) return add_up_numbers<T, D>(job, begin, end);
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = job.offsets[k + 1] - job.offsets[k], step = job.reverse ? -1 : 1;
    const int64_t first = job.reverse ? job.offsets[k + 1] - 1 : job.offsets[k];
    for (int64_t column = 0; column < job.columns; column += BLOCK) {
      const int64_t count = job.columns - column < BLOCK ? job.columns - column : BLOCK;
      double sums[BLOCK] = {};
      for (int64_t c = 0; c < count; ++c) sums[c] = job.before(k, column + c);
      for (int64_t i = 0, t = first; i < size; ++i, t += step) {
        const T *row = static_cast<const T *>(job.data) + t * job.columns + column;
        T *to = static_cast<T *>(job.out) + t * job.columns + column;
        const double by = static_cast<double>(static_cast<const D *>(job.discount)[t]) * job.gamma;
        for (int64_t c = 0; c < count; ++c)
          to[c] = static_cast<T>(sums[c] = static_cast<double>(row[c]) + by * sums[c]);
      }
    }
  }
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
