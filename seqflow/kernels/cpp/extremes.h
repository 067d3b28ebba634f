// Where in each segment the largest element is: the first of equal ones; the first NaN, where there is one.
// In NumPy: reference.segment_arg. The smallest is the largest in reverse order.
#pragma once

#include "order_keys.h"
#include "ordering_kernels.h"

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

  // NaN wins.
  struct Better {
    template <class W> static W join(W most, W x) { return (x > most) | (x != x) ? x : most; }
  };
  struct Lower {
    template <class W> static W join(W least, W x) { return x < least ? x : least; }
  };
  static bool better(K x, K most) { return (x > most) | ((x != x) & (most == most)); }

  const T *end;  // of all data
  bool reverse;

  static Places counted() {
    Places lane;
    for (int i = 0; i < LANES; ++i) lane[i] = i;
    return lane;
  }

  V load_lanes(const T *from, int64_t count) const {
    const bool whole = count >= LANES || end - from >= LANES;
    return Keys<T>::template comparable<LANES>(
        whole ? load<K, T, LANES>(from) : load_some<K, T, LANES>(from, count), reverse);
  }

  // The first position of the largest of up to PART elements, one behind the other.
  int64_t run(const T *from, int64_t size, K *largest) const {
    const Places lane = counted();
    const auto tail = [&](int64_t i, V other) {
      return lane < static_cast<Lane>(size - i) ? load_lanes(from + i, size - i) : other;
    };
    const V first = Keys<T>::template comparable<LANES>(V{} + static_cast<K>(from[0]), reverse);
    V most = first;
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) most = Better::join(most, load_lanes(from + i, LANES));
    if (i < size) most = Better::join(most, tail(i, first));
    const K value = across<Better, K, LANES>(most);
    *largest = value;
    constexpr Lane NOWHERE = static_cast<Lane>(PART);
    Places place = Places{} + NOWHERE;
    const auto match = [&](int64_t i, V x) {
      const Places found = floats ? (x == value) | ((x != x) & (value != value ? Places{} - 1 : Places{})) : x == value;
      place = Lower::join(place, found ? lane + static_cast<Lane>(i) : Places{} + NOWHERE);
    };
    for (i = 0; i + LANES <= size; i += LANES) match(i, load_lanes(from + i, LANES));
    if (i < size) match(i, load_lanes(from + i, size - i));  // a match behind the end is no lower than one inside
    return across<Lower, Lane, LANES>(place);
  }

  int64_t find(const T *from, int64_t size) const {
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

  // The same for each of up to LANES columns.
  void find_in_columns(const T *from, int64_t size, int64_t columns, int64_t count, int64_t *to) const {
    K most[LANES];
    for (int64_t part = 0; part < size; part += PART) {
      const int64_t rows = size - part < PART ? size - part : PART;
      const T *row = from + part * columns;
      V best = load_lanes(row, count);
      Places place = {};
      for (int64_t i = 1; i < rows; ++i) {
        const V x = load_lanes(row + i * columns, count);
        const Places wins = floats ? (x > best) | ((x != x) & (best == best)) : x > best;
        best = wins ? x : best;
        place = wins ? Places{} + static_cast<Lane>(i) : place;
      }
      for (int64_t i = 0; i < count; ++i) {
        if (part > 0 && !better(best[i], most[i])) continue;
        most[i] = best[i];
        to[i] = part + place[i];
      }
    }
  }
};

template <class T>
void arg_segments(const Ordering &job, int64_t begin, int64_t end, void *) {
  const int64_t *offsets = job.offsets, columns = job.columns;
  const T *data = static_cast<const T *>(job.data);
  constexpr int LANES = FindLargest<T>::LANES;
  const FindLargest<T> finder{data + offsets[job.num_segments] * columns, job.descending};
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    const T *from = data + offsets[k] * columns;
    int64_t *to = job.positions + k * columns;
    if (size == 0) {
      for (int64_t i = 0; i < columns; ++i) to[i] = -1;
    } else if (columns == 1) {
      *to = finder.find(from, size);
    } else {
      for (int64_t i = 0; i < columns; i += LANES)
        finder.find_in_columns(from + i, size, columns, columns - i < LANES ? columns - i : LANES, to + i);
    }
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
