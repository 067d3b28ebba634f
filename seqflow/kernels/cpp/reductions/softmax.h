// softmax, log(softmax) and log(sum(exp)) of each segment. In NumPy: softmax.py.
//
// The search for the largest element skips NaN: a NaN makes the sum of exponentials NaN, and so every quotient.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

enum SoftmaxForm { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, NUM_SOFTMAX_FORMS };

// float32 or float64 rows, column by column. `out` has a row for each row, for LOGSUMEXP one for each segment.
struct Softmax {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  const void *empty;  // one element of the result, or null for 0
  void *out;
};

// The gradient of softmax, from its result `y` and what arrives there: y * (d - sum(d * y)) of each segment.
struct SoftmaxBackward {
  const void *d, *y;
  int64_t columns;
  const int64_t *offsets;
  void *out;
};

// Exponentials of a long segment are added up in pieces, and the sums of the pieces in order: any number of threads
// gives the same bits.
constexpr int64_t SOFTMAX_PIECE = 1 << 16;

// The steps of one long segment of one column, for some of its rows; float32, float64.
struct LongSoftmax {
  double (*largest[2])(const Softmax &, int64_t begin, int64_t end);
  double (*powers[NUM_SOFTMAX_FORMS][2])(const Softmax &, int64_t begin, int64_t end, double shift);  // their sum
  void (*finish[NUM_SOFTMAX_FORMS][2])(const Softmax &, int64_t segment, int64_t begin, int64_t end, double shift,
                                       double total);
};

struct SoftmaxKernels {
  void (*run[NUM_SOFTMAX_FORMS][2])(const Softmax &, int64_t begin, int64_t end);  // segments; float32, float64
  LongSoftmax of_long;
  void (*backward[2])(const SoftmaxBackward &, int64_t begin, int64_t end);
};
SEQFLOW_TABLE(SoftmaxKernels, softmax_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/exponential.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <SoftmaxForm form, class T>
struct SegmentSoftmax {
  static constexpr int LANES = VECTOR_BYTES / sizeof(T);
  static constexpr int MOST = 8;    // vectors that are kept in registers
  static constexpr int CHUNK = 32;  // additions in one lane before they go into a float64
  static constexpr T LOWEST = -__builtin_huge_val();
  using V = Vector<T, LANES>;
  using Lane = typename Signed<sizeof(T)>::type;

  const T *end;     // of all data
  const T *out_end; // of the rows this call writes: what is in front of it may be written twice

  static V spread(T value) { return V{} + value; }

  // `count` elements, the other lanes -infinity.
  V load_tail(const T *from, int64_t count) const {
    V lanes = spread(LOWEST);
    if (end - from >= LANES) {
      Vector<Lane, LANES> lane;
      for (int i = 0; i < LANES; ++i) lane[i] = i;
      lanes = lane < static_cast<Lane>(count) ? load<T, T, LANES>(from) : lanes;
    } else {
      for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
    }
    return lanes;
  }

  void store_tail(T *to, V lanes, int64_t count) const {
    if (out_end - to >= LANES)
      store<T, LANES>(to, lanes);
    else
      store_some<T, LANES>(to, lanes, count);
  }

  // The number that is subtracted before exp.
  static T shift_for(T most) {
    if (form == LOGSUMEXP && __builtin_isinf(most)) return 0;
    return most;
  }

  static T logsumexp(double total, T shift) { return static_cast<T>(__builtin_log(total) + shift); }

  // From COUNT - 1 whole vectors and a bit, to COUNT whole ones.
  template <int COUNT>
  void few(const T *from, int64_t size, T *to) const {
    V x[COUNT];
#pragma GCC unroll 8
    for (int k = 0; k < COUNT - 1; ++k) x[k] = load<T, T, LANES>(from + k * LANES);
    const int64_t tail = size - (COUNT - 1) * LANES;
    x[COUNT - 1] = load_tail(from + (COUNT - 1) * LANES, tail);
    V most = x[0];
#pragma GCC unroll 8
    for (int k = 1; k < COUNT; ++k) most = Larger::join(most, x[k]);
    const T shift = shift_for(across<Larger, T, LANES>(most));
    V sum = {};
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) {
      const V power = exponential<T, LANES>(x[k] - shift);
      sum += power;
      x[k] = form == SOFTMAX ? power : x[k] - shift;
    }
    const T total = across<Plus, T, LANES>(sum);
    if (form == LOGSUMEXP) {
      *to = logsumexp(total, shift);
      return;
    }
    const T last = form == SOFTMAX ? 1 / total : static_cast<T>(__builtin_log(static_cast<double>(total)));
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) x[k] = form == SOFTMAX ? x[k] * last : x[k] - last;
#pragma GCC unroll 8
    for (int k = 0; k < COUNT - 1; ++k) store<T, LANES>(to + k * LANES, x[k]);
    store_tail(to + (COUNT - 1) * LANES, x[COUNT - 1], tail);
  }

  // Call `take(position, vector, how many of its lanes count)` for a whole run of elements.
  template <class Take>
  void each(const T *from, int64_t size, const Take &take) const {
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) take(i, load<T, T, LANES>(from + i), LANES);
    if (i < size) take(i, load_tail(from + i, size - i), size - i);
  }

  void put(T *to, V lanes, int64_t count) const {
    if (count == LANES)
      store<T, LANES>(to, lanes);
    else
      store_tail(to, lanes, count);
  }

  __attribute__((noinline)) T largest(const T *from, int64_t size) const {
    V most = spread(LOWEST);
    each(from, size, [&](int64_t, V x, int64_t) { most = Larger::join(most, x); });
    return across<Larger, T, LANES>(most);
  }

  // The sum of exponentials; of SOFTMAX they are also stored.
  __attribute__((noinline)) double powers(const T *from, int64_t size, T *to, T shift) const {
    double total = 0;
    for (int64_t chunk = 0; chunk < size; chunk += CHUNK * LANES) {
      V sum = {};
      const int64_t rest = size - chunk;
      each(from + chunk, rest < CHUNK * LANES ? rest : CHUNK * LANES, [&](int64_t i, V x, int64_t count) {
        const V power = exponential<T, LANES>(x - shift);
        sum += power;
        if (form == SOFTMAX) put(to + chunk + i, power, count);
      });
      total += static_cast<double>(across<Plus, T, LANES>(sum));
    }
    return total;
  }

  __attribute__((noinline)) void finish(const T *from, int64_t size, T *to, T shift, double total) const {
    if (form == LOGSUMEXP) {
      *to = logsumexp(total, shift);
    } else if (form == SOFTMAX) {
      const T factor = static_cast<T>(1 / total);
      for (int64_t i = 0; i < size; ++i) to[i] *= factor;
    } else {
      const T last = static_cast<T>(__builtin_log(total));
      each(from, size, [&](int64_t i, V x, int64_t count) { put(to + i, (x - shift) - last, count); });
    }
  }

  void many(const T *from, int64_t size, T *to) const {
    const T shift = shift_for(largest(from, size));
    double total = 0;
    for (int64_t at = 0; at < size; at += SOFTMAX_PIECE) {
      const int64_t rest = size - at;
      total += powers(from + at, rest < SOFTMAX_PIECE ? rest : SOFTMAX_PIECE, form == LOGSUMEXP ? to : to + at, shift);
    }
    finish(from, size, to, shift, total);
  }

  void run(const T *from, int64_t size, T *to) const {
    switch ((size + LANES - 1) / LANES) {
      case 1: return few<1>(from, size, to);
      case 2: return few<2>(from, size, to);
      case 3: return few<3>(from, size, to);
      case 4: return few<4>(from, size, to);
      case 5: return few<5>(from, size, to);
      case 6: return few<6>(from, size, to);
      case 7: return few<7>(from, size, to);
      case 8: return few<8>(from, size, to);
      default: return many(from, size, to);
    }
  }

  // WIDTH vectors of columns, of which the last has `count` lanes that count.
  template <int WIDTH>
  void block(const T *from, int64_t size, T *to, int64_t columns, int64_t count) const {
    const auto at = [&](const T *row, int k) {
      return k < WIDTH - 1 || count == LANES ? load<T, T, LANES>(row + k * LANES)
                                             : load_some<T, T, LANES>(row + k * LANES, count);
    };
    const auto put_at = [&](T *row, int k, V lanes) {
      if (k < WIDTH - 1 || count == LANES)
        store<T, LANES>(row + k * LANES, lanes);
      else
        store_some<T, LANES>(row + k * LANES, lanes, count);
    };
    V shift[WIDTH], last[WIDTH] = {};
    double totals[WIDTH * LANES] = {};
    for (int k = 0; k < WIDTH; ++k) shift[k] = spread(LOWEST);
    for (int64_t i = 0; i < size; ++i)
      for (int k = 0; k < WIDTH; ++k) shift[k] = Larger::join(shift[k], at(from + i * columns, k));
    for (int k = 0; k < WIDTH; ++k)
      for (int lane = 0; lane < LANES; ++lane) shift[k][lane] = shift_for(shift[k][lane]);
    for (int64_t chunk = 0; chunk < size; chunk += CHUNK) {
      const int64_t stop = chunk + CHUNK < size ? chunk + CHUNK : size;
      V sums[WIDTH] = {};
      for (int64_t i = chunk; i < stop; ++i)
        for (int k = 0; k < WIDTH; ++k) {
          const V power = exponential<T, LANES>(at(from + i * columns, k) - shift[k]);
          sums[k] += power;
          if (form == SOFTMAX) put_at(to + i * columns, k, power);
        }
      for (int k = 0; k < WIDTH; ++k)
        for (int lane = 0; lane < LANES; ++lane) totals[k * LANES + lane] += static_cast<double>(sums[k][lane]);
    }
    for (int k = 0; k < WIDTH; ++k)
      for (int lane = 0; lane < LANES; ++lane) {
        const double total = totals[k * LANES + lane];
        last[k][lane] = form == SOFTMAX     ? static_cast<T>(1 / total)
                        : form == LOGSUMEXP ? logsumexp(total, shift[k][lane])
                                            : static_cast<T>(__builtin_log(total));
      }
    if (form == LOGSUMEXP) {
      for (int k = 0; k < WIDTH; ++k) put_at(to, k, last[k]);
      return;
    }
    for (int64_t i = 0; i < size; ++i)
      for (int k = 0; k < WIDTH; ++k) {
        T *row = to + i * columns;
        put_at(row, k, form == SOFTMAX ? at(row, k) * last[k] : (at(from + i * columns, k) - shift[k]) - last[k]);
      }
  }

  void rows(const T *from, int64_t size, T *to, int64_t columns) const {
    constexpr int WIDTH = 64 / VECTOR_BYTES;  // a line of the cache
    int64_t column = 0;
    for (; column + WIDTH * LANES <= columns; column += WIDTH * LANES)
      block<WIDTH>(from + column, size, to + column, columns, LANES);
    for (; column < columns; column += LANES)
      block<1>(from + column, size, to + column, columns, columns - column < LANES ? columns - column : LANES);
  }
};

template <SoftmaxForm form, class T>
void softmax(const Softmax &job, int64_t begin, int64_t end) {
  const int64_t *offsets = job.offsets, columns = job.columns;
  const T *data = static_cast<const T *>(job.data);
  T *out = static_cast<T *>(job.out);
  SegmentSoftmax<form, T> kernel{data + offsets[job.num_segments] * columns, out + offsets[end] * columns};
  const T empty = job.empty ? *static_cast<const T *>(job.empty) : 0;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    const T *from = data + offsets[k] * columns;
    T *to = out + (form == LOGSUMEXP ? k : offsets[k]) * columns;
    if (size == 0) {
      for (int64_t i = 0; form == LOGSUMEXP && i < columns; ++i) to[i] = empty;
    } else if (columns == 1) {
      kernel.run(from, size, to);
    } else {
      kernel.rows(from, size, to, columns);
    }
  }
}

// The kernel for rows of one column, of which none at or behind `end` is written.
template <SoftmaxForm form, class T>
SegmentSoftmax<form, T> up_to(const Softmax &job, int64_t end) {
  return {static_cast<const T *>(job.data) + job.offsets[job.num_segments], static_cast<T *>(job.out) + end};
}

template <class T>
double softmax_largest(const Softmax &job, int64_t begin, int64_t end) {
  return static_cast<double>(up_to<SOFTMAX, T>(job, end).largest(static_cast<const T *>(job.data) + begin, end - begin));
}

template <SoftmaxForm form, class T>
double softmax_powers(const Softmax &job, int64_t begin, int64_t end, double shift) {
  T *const to = static_cast<T *>(job.out) + (form == LOGSUMEXP ? 0 : begin);
  const T *const from = static_cast<const T *>(job.data) + begin;
  return up_to<form, T>(job, form == LOGSUMEXP ? 0 : end).powers(from, end - begin, to, static_cast<T>(shift));
}

template <SoftmaxForm form, class T>
void softmax_finish(const Softmax &job, int64_t segment, int64_t begin, int64_t end, double shift, double total) {
  T *const to = static_cast<T *>(job.out) + (form == LOGSUMEXP ? segment : begin);
  const T *const from = static_cast<const T *>(job.data) + begin;
  up_to<form, T>(job, form == LOGSUMEXP ? 0 : end).finish(from, end - begin, to, static_cast<T>(shift), total);
}

// Additions of 32 rows are made in T, before they go into a float64.
template <class T>
void softmax_backward(const SoftmaxBackward &job, int64_t begin, int64_t end) {
  constexpr int64_t CHUNK = 32, BLOCK = 64;
  const int64_t columns = job.columns;
  const T *const d = static_cast<const T *>(job.d), *const y = static_cast<const T *>(job.y);
  T *const out = static_cast<T *>(job.out);
  for (int64_t k = begin; k < end; ++k) {
    const int64_t first = job.offsets[k], last = job.offsets[k + 1];
    for (int64_t column = 0; column < columns; column += BLOCK) {
      const int64_t width = columns - column < BLOCK ? columns - column : BLOCK;
      double totals[BLOCK] = {};
      for (int64_t chunk = first; chunk < last; chunk += CHUNK) {
        const int64_t stop = chunk + CHUNK < last ? chunk + CHUNK : last;
        T sums[BLOCK] = {};
        for (int64_t i = chunk; i < stop; ++i) {
          const T *const a = d + i * columns + column, *const b = y + i * columns + column;
          for (int64_t c = 0; c < width; ++c) sums[c] += a[c] * b[c];
        }
        for (int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(sums[c]);
      }
      T whole[BLOCK];
      for (int64_t c = 0; c < width; ++c) whole[c] = static_cast<T>(totals[c]);
      for (int64_t i = first; i < last; ++i) {
        const int64_t at = i * columns + column;
        for (int64_t c = 0; c < width; ++c) out[at + c] = y[at + c] * (d[at + c] - whole[c]);
      }
    }
  }
}

extern const SoftmaxKernels softmax_kernels = {
    {
        {softmax<SOFTMAX, float>, softmax<SOFTMAX, double>},
        {softmax<LOG_SOFTMAX, float>, softmax<LOG_SOFTMAX, double>},
        {softmax<LOGSUMEXP, float>, softmax<LOGSUMEXP, double>},
    },
    {
        {softmax_largest<float>, softmax_largest<double>},
        {
            {softmax_powers<SOFTMAX, float>, softmax_powers<SOFTMAX, double>},
            {softmax_powers<LOG_SOFTMAX, float>, softmax_powers<LOG_SOFTMAX, double>},
            {softmax_powers<LOGSUMEXP, float>, softmax_powers<LOGSUMEXP, double>},
        },
        {
            {softmax_finish<SOFTMAX, float>, softmax_finish<SOFTMAX, double>},
            {softmax_finish<LOG_SOFTMAX, float>, softmax_finish<LOG_SOFTMAX, double>},
            {softmax_finish<LOGSUMEXP, float>, softmax_finish<LOGSUMEXP, double>},
        },
    },
    {softmax_backward<float>, softmax_backward<double>},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
