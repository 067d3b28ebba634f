// Argmax and argmin of each segment: the first of equal ones; the first NaN, where there is one.
// The smallest is the largest in reverse order. `Larger` passes over NaN, which is looked
// for apart.
#pragma once

#include "ordering/order_keys.h"
#include "ordering/ordering.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
struct FindLargest {
  using K = typename Keys<T>::K;
  static constexpr bool floats = Keys<T>::floats;
  static constexpr int LANES = VECTOR_BYTES / sizeof(K);
  static constexpr int64_t PART = 1 << 20;  // positions inside a part fit the lanes
  using V = Vector<K, LANES>;
  using Lane = typename Signed<sizeof(K)>::type;
  using Places = Vector<Lane, LANES>;

  static bool better(K x, K most) { return (x > most) | ((x != x) & (most == most)); }

  const T *end;  // of all data
  int64_t flipped;  // order_keys.h
  bool *declines;

  static constexpr K lowest() { return floats ? -Keys<T>::largest() : static_cast<K>(~Keys<T>::MOST); }

  static Places counted() {
    Places lane;
    for (int i = 0; i < LANES; ++i) lane[i] = i;
    return lane;
  }

  V load_lanes(const T *from, int64_t count) const {
    const bool whole = count >= LANES || end - from >= LANES;
    return Keys<T>::template comparable<LANES>(
        whole ? load<K, T, LANES>(from) : load_some<K, T, LANES>(from, count), flipped);
  }

  // The position of the largest of up to COUNT vectors of elements. All vectors are read, whatever the size: a branch for
  // each number of vectors is a wrong guess for most segments.
  template <int COUNT>
  int64_t few(const T *from, int64_t size) const {
    V x[COUNT];
    Places nans = {};
    V most = V{} + lowest();
    const Places past = Places{} + static_cast<Lane>(size);
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) {
      x[k] = load_lanes(from + k * LANES, size - k * LANES);
      x[k] = counted() + static_cast<Lane>(k * LANES) < past ? x[k] : V{} + lowest();
      if constexpr (floats) nans |= x[k] != x[k];
      most = Larger::join(most, x[k]);
    }
    const K value = across<Larger, K, LANES>(most);
    const bool any = floats && lane_bits<Lane, LANES>(nans) != 0;
    uint64_t found = 0;  // lanes past the end are not before the first one found
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k)
      found |= lane_bits<Lane, LANES>(any ? x[k] != x[k] : x[k] == value) << k * LANES;
    return __builtin_ctzll(found);
  }

  // The same for up to PART elements; and which it is.
  int64_t run(const T *from, int64_t size, K *largest) const {
    V most = V{} + lowest();
    int64_t i = 0;
    uint64_t nans = 0;
    for (; i + LANES <= size && nans == 0; i += LANES) {
      const V x = load_lanes(from + i, LANES);
      most = Larger::join(most, x);
      if constexpr (floats) nans = lane_bits<Lane, LANES>(x != x);
    }
    if (nans != 0) {
      *largest = static_cast<K>(from[i - LANES + __builtin_ctzll(nans)]);
      return i - LANES + __builtin_ctzll(nans);
    }
    K value = across<Larger, K, LANES>(most);
    for (; i < size; ++i) {
      const K x = Keys<T>::template comparable<1>(Vector<K, 1>{static_cast<K>(from[i])}, flipped)[0];
      if (x != x) {
        *largest = x;
        return i;
      }
      value = x > value ? x : value;
    }
    *largest = value;
    for (i = 0; i < size; i += LANES) {
      const uint64_t found = lane_bits<Lane, LANES>(load_lanes(from + i, size - i) == value);
      if (found != 0) return i + __builtin_ctzll(found);
    }
    return 0;  // not reached: one of them is it
  }

  int64_t find(const T *from, int64_t size) const {
    if (size <= 4 * LANES) return few<4>(from, size);
    if constexpr (LANES <= 8)
      if (size <= 8 * LANES) return few<8>(from, size);
    if constexpr (LANES <= 4)
      if (size <= 16 * LANES) return few<16>(from, size);
    K most;
    int64_t place = run(from, size < PART ? size : PART, &most);
    for (int64_t at = PART; at < size; at += PART) {
      K next;
      const int64_t inside = run(from + at, size - at < PART ? size - at : PART, &next);
      if (!better(next, most)) continue;
      most = next;
      place = at + inside;
    }
    return place;
  }

  V load_column(const T *from, int64_t count, bool whole) const {
    if (whole) return Keys<T>::template comparable<LANES>(load<K, T, LANES>(from), flipped);
    return load_lanes(from, count);
  }

  // The elements of comparable lanes.
  void put(T *values, V best, int64_t count) const {
    if constexpr (floats)
      if (lane_bits<Lane, LANES>(best != best)) __atomic_store_n(declines, true, __ATOMIC_RELAXED);
    const auto found = __builtin_convertvector(Keys<T>::template comparable<LANES>(best, flipped), Vector<T, LANES>);
    store_some<T, LANES>(values, found, count);
  }

  // The same for each of COUNT * LANES columns, or where there is one vector of fewer; and their values, unless `values`
  // is null. Several vectors, since each comparison waits for the one before it.
  template <int COUNT>
  void find_in_columns(const T *from, int64_t size, int64_t columns, int64_t count, int64_t *to, T *values) const {
    constexpr bool WHOLE = COUNT > 1;
    K most[COUNT * LANES];
    for (int64_t part = 0; part < size; part += PART) {
      const int64_t rows = size - part < PART ? size - part : PART;
      const T *row = from + part * columns;
      V best[COUNT];
      Places place[COUNT];
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) {
        best[k] = load_column(row + k * LANES, count, WHOLE);
        place[k] = Places{};
      }
      for (int64_t i = 1; i < rows; ++i) {
        row += columns;
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; ++k) {
          const V x = load_column(row + k * LANES, count, WHOLE);
          // larger, or NaN, but nothing after NaN
          const Places wins = floats ? ~(x <= best[k]) & (best[k] == best[k]) : x > best[k];
          best[k] = wins ? x : best[k];
          place[k] = wins ? Places{} + static_cast<Lane>(i) : place[k];
        }
      }
      if (values)  // of one part
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; ++k) put(values + k * LANES, best[k], WHOLE ? LANES : count);
      if (WHOLE && size <= PART) {
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; ++k) store<int64_t, LANES>(to + k * LANES, __builtin_convertvector(place[k], Vector<int64_t, LANES>));
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        const K found = best[i / LANES][i % LANES];
        if (part > 0 && !better(found, most[i])) continue;
        most[i] = found;
        to[i] = part + place[i / LANES][i % LANES];
      }
    }
  }
};

template <class T>
void arg_segments(const Ordering &job, int64_t begin, int64_t end, void *) {
  const int64_t *offsets = job.offsets, columns = job.columns;
  const T *data = static_cast<const T *>(job.data);
  constexpr int LANES = FindLargest<T>::LANES;
  const FindLargest<T> finder{data + offsets[job.num_segments] * columns, job.flipped, job.declines};
  const T empty = job.empty ? *static_cast<const T *>(job.empty) : T{};
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    const T *from = data + offsets[k] * columns;
    int64_t *to = job.positions + k * columns;
    T *values = job.values ? static_cast<T *>(job.values) + k * columns : nullptr;
    if (values && size > finder.PART) __atomic_store_n(job.declines, true, __ATOMIC_RELAXED);
    if (size == 0) {
      for (int64_t i = 0; i < columns; ++i) to[i] = -1;
      for (int64_t i = 0; values && i < columns; ++i) values[i] = empty;
    } else if (columns == 1) {
      *to = finder.find(from, size);
    } else {
      constexpr int64_t WIDE = 4 * LANES;
      int64_t i = 0;
      for (; columns - i >= WIDE; i += WIDE) finder.template find_in_columns<4>(from + i, size, columns, WIDE, to + i, values ? values + i : nullptr);
      for (; i < columns; i += LANES)
        finder.template find_in_columns<1>(from + i, size, columns, columns - i < LANES ? columns - i : LANES, to + i,
                                           values ? values + i : nullptr);
    }
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
