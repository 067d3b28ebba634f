// Rows written more than once: each for its whole segment, each with its neighbours. Bytes are moved by the C
// library, which knows the processor, so there is one form for all instruction sets; large results are in moves.h.
#include <cstring>
#include <vector>

#include "bindings/python.h"
#include "moves/moves.h"
#include "shared/processor.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

void expand_rows(const uint8_t *from, uint8_t *to, int64_t row_bytes, const int64_t *offsets, int64_t begin,
                 int64_t end) {
  for (int64_t k = begin; k < end; ++k, from += row_bytes)
    for (int64_t i = offsets[k]; i < offsets[k + 1]; ++i) memcpy(to + i * row_bytes, from, row_bytes);
}

// Short rows, in blocks: the next block overwrites what a block writes beyond its segment.
template <int ROW_BYTES>
void expand_short_rows(const uint8_t *from, uint8_t *to, const int64_t *offsets, int64_t begin, int64_t end) {
  constexpr int BLOCK = 64;
  const uint8_t *const limit = to + offsets[end] * ROW_BYTES;
  for (int64_t k = begin; k < end; ++k) {
    uint8_t block[BLOCK];
    for (int i = 0; i < BLOCK; i += ROW_BYTES) memcpy(block + i, from + k * ROW_BYTES, ROW_BYTES);
    uint8_t *at = to + offsets[k] * ROW_BYTES;
    const uint8_t *const stop = to + offsets[k + 1] * ROW_BYTES;
    for (; at < stop; at += BLOCK) {
      if (limit - at >= BLOCK)
        memcpy(at, block, BLOCK);
      else
        memcpy(at, block, stop - at < BLOCK ? stop - at : BLOCK);
    }
  }
}

void expand_any(const uint8_t *from, uint8_t *to, int64_t row_bytes, const int64_t *offsets, int64_t begin,
                int64_t end) {
  switch (row_bytes) {
    case 1: return expand_short_rows<1>(from, to, offsets, begin, end);
    case 2: return expand_short_rows<2>(from, to, offsets, begin, end);
    case 4: return expand_short_rows<4>(from, to, offsets, begin, end);
    case 8: return expand_short_rows<8>(from, to, offsets, begin, end);
    case 16: return expand_short_rows<16>(from, to, offsets, begin, end);
    default: return expand_rows(from + begin * row_bytes, to, row_bytes, offsets, begin, end);
  }
}

nb::object expand(nb::object data, nb::handle lengths, nb::handle out) {
  const Buffer rows(data, ANY), counts(lengths);
  const int64_t row_bytes = rows.row_bytes(), num_sequences = counts.counts().size;
  if (row_bytes == 0 || rows.extent(0) != num_sequences) decline();
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  const int64_t total = offsets[num_sequences], bytes = product(total, row_bytes);
  nb::object expanded = output(out, {total}, rows, 1, dtype_of(data));
  Buffer result(expanded, ANY, true);
  if (result.shares_memory(rows)) return expand(copy_of(data), lengths, out);
  const Repeats job = {rows.data(), result.data(), row_bytes, offsets.data()};
  const auto repeat_around = go_around(bytes, row_bytes, job.out) ? SEQFLOW_SELECTED(move_kernels).repeat_around : nullptr;
  const Unlocked unlocked(bytes);
  parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) {
    if (repeat_around) return repeat_around(job, begin, end);
    expand_any(rows.data(), result.data(), row_bytes, offsets.data(), begin, end);
  });
  return expanded;
}

// Windows of `before + 1 + after` rows; `margin` holds that many rows of the value outside.
struct Windows {
  const uint8_t *data;
  uint8_t *out;
  const uint8_t *margin;
  int64_t row_bytes, before, after;
  const int64_t *offsets;
};

inline void copy_short(uint8_t *to, const uint8_t *from, int64_t size) {
  if (size < 8 || size > 16) {
    memcpy(to, from, size);
    return;
  }
  uint64_t head, tail;
  memcpy(&head, from, 8);
  memcpy(&tail, from + size - 8, 8);
  memcpy(to, &head, 8);
  memcpy(to + size - 8, &tail, 8);
}

// Not inlined: the compiler makes a slower loop of it inside the binding.
[[gnu::noinline]] void write_windows(const Windows &job, int64_t begin, int64_t end) {
  const int64_t row = job.row_bytes, width = (job.before + 1 + job.after) * row;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t first = job.offsets[k], last = job.offsets[k + 1];
    for (int64_t i = first; i < last; ++i) {
      uint8_t *const to = job.out + i * width;
      const int64_t ahead = i - first, behind = last - 1 - i;
      if (ahead >= job.before && behind >= job.after) {
        copy_short(to, job.data + (i - job.before) * row, width);
        continue;
      }
      const int64_t left = ahead < job.before ? job.before - ahead : 0;
      const int64_t right = behind < job.after ? job.after - behind : 0;
      memcpy(to, job.margin, left * row);
      memcpy(to + left * row, job.data + (i - job.before + left) * row, width - (left + right) * row);
      memcpy(to + width - right * row, job.margin, right * row);
    }
  }
}

struct Elements {
  const void *data;
  void *out;
  Integers positions;
  const int64_t *offsets;
  int64_t columns;
  bool fault = false;
};

// Of segments [begin, end). Each has one writer, which also zeroes its rows: they are in the caches then.
template <class T>
void put_in_segments(Elements &job, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = job.offsets[k + 1] - job.offsets[k];
    T *const to = static_cast<T *>(job.out) + job.offsets[k] * job.columns;
    memset(to, 0, size * job.columns * sizeof(T));
    for (int64_t c = 0; c < job.columns; ++c) {
      const int64_t position = job.positions[k * job.columns + c];
      if (position < -1 || position >= size)
        __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
      else if (position >= 0)
        to[position * job.columns + c] = static_cast<const T *>(job.data)[k * job.columns + c];
    }
  }
}

nb::object put_elements(nb::handle data, nb::handle positions, nb::handle lengths) {
  const Buffer rows(data), places(positions), counts(lengths);
  if (!rows.is_half()) rows.type();  // declines what is no number
  const int64_t num_segments = counts.counts().size;
  Elements job = {rows.data(), nullptr, places.integers(), nullptr, rows.row_elements()};
  if (job.columns == 0 || rows.extent(0) != num_segments || job.positions.size != rows.size()) decline();
  const auto put = [&]() -> void (*)(Elements &, int64_t, int64_t) {
    switch (rows.item_bytes()) {
      case 1: return put_in_segments<uint8_t>;
      case 2: return put_in_segments<uint16_t>;
      case 4: return put_in_segments<uint32_t>;
      case 8: return put_in_segments<uint64_t>;
      default: decline();
    }
  }();
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  const int64_t total = offsets[num_segments], bytes = product(total, rows.row_bytes());
  nb::object out = empty_array({total}, rows, 1, dtype_of(data));
  Buffer result(out, NUMERIC, true);
  job.out = result.data(), job.offsets = offsets.data();
  {
    const Unlocked unlocked(bytes);
    parallel_ranges(num_segments, bytes, [&](int64_t begin, int64_t end) { put(job, begin, end); });
  }
  if (job.fault) decline();  // the reference says which position it is
  return out;
}

nb::object windows(nb::handle data, nb::handle lengths, Index before, Index after, nb::handle value) {
  const Buffer rows(data, ANY), counts(lengths);
  Windows job = {};
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0 || before < 0 || after < 0) decline();
  const nb::object dtype = dtype_of(data);
  const Fill fill(value, dtype, rows.is_described());
  const Pattern pattern = fill.pattern();
  const int64_t num_sequences = counts.counts().size, num_rows = rows.extent(0);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_sequences], num_rows, "lengths", "data");
  int64_t width;
  if (__builtin_add_overflow(before.value, after.value, &width) || __builtin_add_overflow(width, 1, &width))
    refuse_size();
  const int64_t bytes = product(num_rows, product(width, job.row_bytes));
  nb::object out = empty_array({num_rows, width}, rows, 1, dtype);
  Buffer result(out, ANY, true);
  const int64_t widest = num_rows == 0 ? 0 : before > after ? before.value : after.value;
  std::vector<uint8_t> margin(static_cast<size_t>(product(widest, job.row_bytes)));
  if (pattern.value)
    for (size_t i = 0; i < margin.size(); ++i) margin[i] = pattern.value[i % static_cast<size_t>(pattern.size)];
  job.data = rows.data(), job.out = result.data(), job.margin = margin.data();
  job.before = before, job.after = after, job.offsets = offsets.data();
  const Unlocked unlocked(bytes);
  parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { write_windows(job, begin, end); });
  return out;
}

}  // namespace

void bind_spreading(nb::module_ &module) {
  bind_kernel(module, "expand", expand);
  bind_kernel(module, "put_elements", put_elements);
  bind_kernel(module, "windows", windows);
}

}  // namespace seqflow
