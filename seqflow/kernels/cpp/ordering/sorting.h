// Sorting inside segments, and the largest k.
//
// Short segments are sorted in registers, longer ones in blocks that are merged. Where positions are requested too, an
// element of up to 32 bits and its position in a short segment make one float64, exactly; 64-bit elements are inserted
// one by one. Long segments are sorted by parts (parts.h), or by digits where vectors are narrow, elements small or pivots
// bad.
#pragma once

#include "ordering/equals.h"
#include "ordering/network.h"
#include "ordering/order_keys.h"
#include "ordering/ordering.h"
#include "ordering/parts.h"
#include "ordering/radix.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
struct SegmentOrder {
  using K = typename Keys<T>::K;
  using D = Digits<T>;
  using U = typename D::U;
  static constexpr bool floats = Keys<T>::floats;
  static constexpr int LANES = VECTOR_BYTES / sizeof(K);
  static constexpr int64_t IN_REGISTERS = 16 * LANES < MAX_SHORT ? 16 * LANES : MAX_SHORT;
  static constexpr int64_t MAX_MERGED = 256 * sizeof(T);  // longer segments are sorted by digits: fewer for small T
  using V = Vector<K, LANES>;
  using Lane = typename Signed<sizeof(K)>::type;

  const T *end;  // of all data
  int64_t flipped;  // order_keys.h
  uint8_t *scratch;

  template <class L, int N>
  static Vector<L, N> counted() {
    Vector<L, N> lane;
    for (int i = 0; i < N; ++i) lane[i] = i;
    return lane;
  }

  // `count` elements, of which the last lanes may be missing, converted to A; nothing behind `end` is read.
  template <class A, int N>
  Vector<A, N> load_lanes(const T *from, int64_t count) const {
    if (end - from >= N) return load<A, T, N>(from);
    return load_some<A, T, N>(from, count < 0 ? 0 : count);
  }

  // Whether numbers rise all along (1), fall all along (-1), or neither (0).
  template <class N>
  static int direction(const N *numbers, int64_t size) {
    int64_t i = 1;
    if (numbers[0] > numbers[1]) {
      while (i < size && numbers[i - 1] > numbers[i]) ++i;
      return i == size ? -1 : 0;
    }
    while (i < size && numbers[i - 1] <= numbers[i]) ++i;
    return i == size;
  }

  // Values

  // The lanes in which NaN or -0 were met: what is written for them is the largest, or a zero of any sign.
  using Found = Vector<Lane, LANES>;

  static bool any(const Found &found) {
    int64_t words[VECTOR_BYTES / sizeof(int64_t)], joined = 0;
    memcpy(words, &found, sizeof words);
    for (const int64_t word : words) joined |= word;
    return joined != 0;
  }

  // What the lanes from position `at` of a segment of `size` are compared as; behind it the largest there is.
  V comparable(const T *from, int64_t at, int64_t size, Found *found) const {
    const int64_t left = size - at;
    const V elements = load_lanes<K, LANES>(from + at, left);
    V lanes = Keys<T>::template comparable<LANES>(elements, flipped);
    const auto inside = counted<Lane, LANES>() < static_cast<Lane>(left < 0 ? 0 : left > LANES ? LANES : left);
    if constexpr (floats) {
      const auto nan = (lanes != lanes) & inside;
      *found |= nan | ((Found)elements == static_cast<Lane>(Digits<T>::TOP));
      lanes = nan ? V{} + (flipped ? -Keys<T>::largest() : Keys<T>::largest()) : lanes;
    }
    return inside ? lanes : V{} + Keys<T>::largest();
  }

  template <int VECTORS>
  void sort_registers(const T *from, int64_t size, V *r, Found *found) const {
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; ++i) r[i] = comparable(from, i * LANES, size, found);
    Network<K, VECTORS>::sort(r);
  }

  static Vector<T, LANES> values_of(V lanes, int64_t flipped) {
    return __builtin_convertvector(Keys<T>::template comparable<LANES>(lanes, flipped), Vector<T, LANES>);
  }

  // Sorted segments with the bits of their own zeros and NaN.
  void restore(const T *from, int64_t size, T *to) const {
    if constexpr (floats) {
      int64_t nans = 0;
      for (int64_t i = 0; i < size; ++i) nans += from[i] != from[i];
      restore_equals(from, size, to, flipped ? to : to + size - nans, nans);
    }
  }

  template <int VECTORS>
  void sort_short(const T *from, int64_t size, T *to, const T *out_end, Found *found) const {
    V r[VECTORS];
    sort_registers<VECTORS>(from, size, r, found);
    T sorted[VECTORS * LANES];
    const bool roomy = out_end - to >= VECTORS * LANES;  // what is written too much is overwritten later
    T *const into = roomy ? to : sorted;
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; ++i) store<T, LANES>(into + i * LANES, values_of(r[i], flipped));
    if (!roomy) memcpy(to, sorted, size * sizeof(T));
  }

  void sort(const T *from, int64_t size, T *to, const T *out_end, Found *found) const {
    if (size <= LANES) return sort_short<1>(from, size, to, out_end, found);
    if (size <= 2 * LANES) return sort_short<2>(from, size, to, out_end, found);
    if (size <= 4 * LANES) return sort_short<4>(from, size, to, out_end, found);
    if constexpr (IN_REGISTERS > 4 * LANES)
      if (size <= 8 * LANES) return sort_short<8>(from, size, to, out_end, found);
    if constexpr (IN_REGISTERS > 8 * LANES)
      if (size <= 16 * LANES) return sort_short<16>(from, size, to, out_end, found);
    if (size <= MAX_SHORT) {
      K blocks[4 * MAX_SHORT];
      return sort_blocks(from, size, to, blocks, found);
    }
#if defined(__AVX2__)
    if constexpr (sizeof(K) == sizeof(T))
      if (size >= PARTS_FROM && sort_parts(from, size, to, found)) return;
#endif
    if (size <= MAX_MERGED) return sort_blocks(from, size, to, reinterpret_cast<K *>(scratch), found);
    sort_by_digits(from, size, to, found);
  }

#if defined(__AVX2__)
  // Fewer elements are faster in blocks that are merged; of integers there are minima in one instruction in 32 bits.
  static constexpr int64_t PARTS_FROM = sizeof(T) == 4 && !floats ? 1024 : 256;

  // In the result itself. Where this gives up, `from` is still as it was.
  bool sort_parts(const T *from, int64_t size, T *to, Found *found) const {
    K *const keys = reinterpret_cast<K *>(to);
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) store<K, LANES>(keys + i, comparable(from + i, 0, LANES, found));
    if (i < size) store_some<K, LANES>(keys + i, comparable(from + i, 0, size - i, found), size - i);
    const int way = direction(keys, size);
    if (way < 0)
      for (int64_t first = 0, last = size - 1; first < last; ++first, --last) {
        const K key = keys[first];
        keys[first] = keys[last];
        keys[last] = key;
      }
    if (way == 0 && !Parts<K>::sort(keys, size, reinterpret_cast<K *>(scratch), Keys<T>::largest())) return false;
    if (floats ? flipped == 0 : static_cast<K>(flipped) == 0) return true;
    for (i = 0; i + LANES <= size; i += LANES) store<T, LANES>(to + i, values_of(load<K, K, LANES>(keys + i), flipped));
    if (i < size) store_some<T, LANES>(to + i, values_of(load_some<K, K, LANES>(keys + i, size - i), flipped), size - i);
    return true;
  }
#endif

  void sort_by_digits(const T *from, int64_t size, T *to, Found *found) const {
    U *const keys = reinterpret_cast<U *>(scratch), *const other_keys = keys + size;
    bool rare = false;  // NaN or -0
    for (int64_t i = 0; i < size; ++i) {
      keys[i] = D::of(from[i], flipped);
      if constexpr (floats) rare |= from[i] != from[i] || keys[i] == D::of(T{-0.0}, flipped);
    }
    if (rare) *found = ~Found{};
    const U *const sorted = sort_digits(keys, other_keys, size);
    for (int64_t i = 0; i < size; ++i) to[i] = D::back(sorted[i], flipped);
  }

  // Blocks that fit the registers are sorted and then merged.
  void sort_blocks(const T *from, int64_t size, T *to, K *memory, Found *found) const {
    constexpr int VECTORS = IN_REGISTERS / LANES, BLOCK = VECTORS * LANES;
    const int64_t total = (size + BLOCK - 1) / BLOCK * BLOCK;
    K *sorted = memory, *other = memory + total;
    for (int64_t at = 0; at < total; at += BLOCK) {
      V r[VECTORS];
      sort_registers<VECTORS>(from + at, size - at < BLOCK ? size - at : BLOCK, r, found);
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) store<K, LANES>(sorted + at + i * LANES, r[i]);
    }
    for (int64_t run = BLOCK; run < total; run *= 2) {
      for (int64_t at = 0; at < total; at += 2 * run) {
        const int64_t left = total - at < run ? total - at : run;
        const int64_t right = total - at - left < run ? total - at - left : run;
        merge<K>(sorted + at, left, sorted + at + left, right, other + at);
      }
      K *const merged = other;
      other = sorted;
      sorted = merged;
    }
    int64_t i = 0;
    for (; i + LANES <= size; i += LANES) store<T, LANES>(to + i, values_of(load<K, K, LANES>(sorted + i), flipped));
    if (i < size) store_some<T, LANES>(to + i, values_of(load<K, K, LANES>(sorted + i), flipped), size - i);
  }

  // Positions

  static void count_up_or_down(int way, int64_t size, int64_t *to) {
    for (int64_t i = 0; i < size; ++i) to[i] = way > 0 ? i : size - 1 - i;
  }

  // Elements of up to 32 bits, each with its position, as whole numbers: below 2^38 in short segments, 2^51 in others.
  static constexpr bool fits_double = sizeof(T) <= 4;
  static constexpr int PAIRS = VECTOR_BYTES / sizeof(double);
  static constexpr int64_t PAIRS_IN_REGISTERS = 16 * PAIRS < MAX_SHORT ? 16 * PAIRS : MAX_SHORT;
  static constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: added to a whole number, its last bits are its own

  // `places`: a power of two above all positions, at most 2^20.
  Vector<double, PAIRS> paired(const T *from, int64_t at, int64_t size, double places = MAX_SHORT) const {
    using I = Vector<int32_t, PAIRS>;
    using P = Vector<double, PAIRS>;
    const int64_t left = size - at;
    I keys;
    if constexpr (__is_same(T, float)) {
      const auto lanes = load_lanes<float, PAIRS>(from + at, left) + 0.0f;  // -0 becomes 0
      keys = (I)lanes;
      keys ^= (keys >> 31) & 0x7fffffff;
      keys = lanes != lanes ? I{} + 0x7fffffff : keys;
    } else {
      keys = load_lanes<int32_t, PAIRS>(from + at, left);
      keys ^= static_cast<int32_t>(flipped);
    }
    if (floats && flipped) keys = ~keys;
    const auto lane = counted<int64_t, PAIRS>();
    const P place = __builtin_convertvector(counted<int32_t, PAIRS>(), P) + static_cast<double>(at);
    return lane < left ? __builtin_convertvector(keys, P) * places + place
                       : P{} + __builtin_huge_val();
  }

  template <int VECTORS>
  void argsort_registers(const T *from, int64_t size, int64_t *to, const int64_t *out_end) const {
    using Places = Vector<int64_t, PAIRS>;
    Vector<double, PAIRS> r[VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; ++i) r[i] = paired(from, i * PAIRS, size);
    Network<double, VECTORS>::sort(r);
    int64_t sorted[VECTORS * PAIRS];
    const bool roomy = out_end - to >= VECTORS * PAIRS;
    int64_t *const into = roomy ? to : sorted;
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; ++i)
      store<int64_t, PAIRS>(into + i * PAIRS, (Places)(r[i] + ROUND) & (MAX_SHORT - 1));
    if (!roomy) memcpy(to, sorted, size * sizeof(int64_t));
  }

  void argsort(const T *from, int64_t size, int64_t *to, const int64_t *out_end) const {
    if constexpr (fits_double) {
      if (size <= PAIRS) return argsort_registers<1>(from, size, to, out_end);
      if (size <= 2 * PAIRS) return argsort_registers<2>(from, size, to, out_end);
      if (size <= 4 * PAIRS) return argsort_registers<4>(from, size, to, out_end);
      if (size <= 8 * PAIRS) return argsort_registers<8>(from, size, to, out_end);
      if constexpr (PAIRS_IN_REGISTERS > 8 * PAIRS)
        if (size <= 16 * PAIRS) return argsort_registers<16>(from, size, to, out_end);
    }
#if defined(__AVX2__)
    if constexpr (!fits_double) {
      uint64_t few[3 * MAX_SHORT + 8];
      uint64_t *const keys = size <= MAX_SHORT ? few : reinterpret_cast<uint64_t *>(scratch);
      if (size > FEW_INSERTED) {
        for (int64_t i = 0; i < size; ++i) keys[i] = D::stable(from[i], flipped);
        if (order_keys(keys, size, to, keys + size)) return;
      }
    }
#endif
    if (size <= MAX_SHORT) {
      U keys[MAX_SHORT];
      for (int64_t i = 0; i < size; ++i) insert(keys, to, i, D::stable(from[i], flipped), i);
      return;
    }
#if defined(__AVX2__)
    if constexpr (fits_double)
      if (size < (sizeof(T) < 4 ? MANY / 8 : MANY) && argsort_parts(from, size, to)) return;
#endif
    U *const keys = reinterpret_cast<U *>(scratch);
    int64_t *const other_places = reinterpret_cast<int64_t *>(scratch + 2 * size * sizeof(int64_t));
    for (int64_t i = 0; i < size; ++i) {
      keys[i] = D::stable(from[i], flipped);
      to[i] = i;
    }
    if (const int way = direction(keys, size)) return count_up_or_down(way, size, to);
    if (sort_digits<U>(keys, keys + size, to, other_places, size)) memcpy(to, other_places, size * sizeof(int64_t));
  }

#if defined(__AVX2__)
  static constexpr int64_t MOST_PAIRED = 1 << 20;   // so that an element of 32 bits and a position make a float64
  static constexpr int64_t FEW_INSERTED = 8;

  static int position_bits(int64_t size) { return 64 - __builtin_clzll(static_cast<uint64_t>(size - 1)); }

  // The sort of pairs; from MANY elements on, digits are faster. False where pivots were bad.
  bool argsort_parts(const T *from, int64_t size, int64_t *to) const {
    using Places = Vector<int64_t, PAIRS>;
    const int64_t places = int64_t{1} << position_bits(size);
    double *const pairs = reinterpret_cast<double *>(scratch);
    int64_t i = 0;
    for (; i < size; i += PAIRS) store<double, PAIRS>(pairs + i, paired(from, i, size, static_cast<double>(places)));
    if (const int way = direction(pairs, size)) {
      count_up_or_down(way, size, to);
      return true;
    }
    if (!Parts<double>::sort(pairs, size, pairs + size, __builtin_huge_val())) return false;
    for (i = 0; i + PAIRS <= size; i += PAIRS)
      store<int64_t, PAIRS>(to + i, (Places)(load<double, double, PAIRS>(pairs + i) + ROUND) & (places - 1));
    for (; i < size; ++i) to[i] = static_cast<int64_t>(pairs[i]) & (places - 1);
    return true;
  }

  // The places of at least two keys in stable order. The highest bits of a key, less the smallest one, and its place make
  // one integer; where bits are lost, what is out of order for that is inserted. `memory` has room for 2 * size + 8. False
  // where that is too often or pivots were bad.
  static bool order_keys(const uint64_t *keys, int64_t size, int64_t *to, uint64_t *memory) {
    if (const int way = direction(keys, size)) {
      count_up_or_down(way, size, to);
      return true;
    }
    const int bits = position_bits(size);
    if (bits > 32) return false;
    uint64_t least = keys[0], most = keys[0];
    for (int64_t i = 1; i < size; ++i) {
      least = keys[i] < least ? keys[i] : least;
      most = keys[i] > most ? keys[i] : most;
    }
    const int spare = __builtin_clzll(most - least), lost = bits > spare ? bits - spare : 0;
    if (size >= MANY && spare >= 31) return false;  // at most 3 wide digits differ
    constexpr uint64_t TOP = uint64_t{1} << 63;
    for (int64_t i = 0; i < size; ++i)
      memory[i] = ((keys[i] - least) >> lost << bits | static_cast<uint64_t>(i)) ^ TOP;
    int64_t *const joined = reinterpret_cast<int64_t *>(memory);
    if (!Parts<int64_t>::sort(joined, size, joined + size, INT64_MAX)) return false;
    const int64_t mask = (int64_t{1} << bits) - 1;
    for (int64_t i = 0; i < size; ++i) to[i] = joined[i] & mask;
    if (lost == 0) return true;
    int64_t moves = 4 * size;
    for (int64_t i = 1; i < size; ++i) {
      if ((joined[i] ^ joined[i - 1]) >> bits != 0) continue;
      const int64_t place = to[i];
      int64_t at = i;
      for (; at > 0 && keys[to[at - 1]] > keys[place]; --at) to[at] = to[at - 1];
      to[at] = place;
      if ((moves -= i - at) < 0) return false;
    }
    return true;
  }
#endif

  // Into the first `count` of sorted keys, behind those that are equal.
  static void insert(U *keys, int64_t *places, int64_t count, U key, int64_t place) {
    int64_t at = count;
    for (; at > 0 && keys[at - 1] > key; --at) {
      keys[at] = keys[at - 1];
      places[at] = places[at - 1];
    }
    keys[at] = key;
    places[at] = place;
  }

  // The largest k

  void topk(const T *from, int64_t size, int64_t k, T *values, int64_t *places) const {
    const int64_t found = size < k ? size : k;
    if (found == 0) return clear_rest(0, k, values, places);
    int64_t few[MAX_SHORT + PAIRS];
    const int64_t *order = few;
    if (size <= MAX_SHORT)
      argsort(from, size, few, few + sizeof few / sizeof few[0]);
    else
      order = largest(from, size, k);
    for (int64_t i = 0; i < found; ++i) {
      values[i] = from[order[i]];
      places[i] = order[i];
    }
    clear_rest(found, k, values, places);
  }

  static void clear_rest(int64_t found, int64_t k, T *values, int64_t *places) {
    for (int64_t i = found; i < k; ++i) {
      values[i] = 0;
      places[i] = -1;
    }
  }

  // The positions of the k largest of a long segment. Candidates are collected and reduced to the k best when there are
  // too many; a later element must beat the last of these.
  const int64_t *largest(const T *from, int64_t size, int64_t k) const {
#if defined(__AVX2__)
    if (const int64_t *found = largest_by_parts(from, size, k)) return found;
#endif
    int64_t *places = reinterpret_cast<int64_t *>(scratch), *other_places = places + size;
    U *keys = reinterpret_cast<U *>(other_places + size), *other_keys = keys + size;
    const int64_t room = 2 * k < 256 ? 256 : 2 * k;
    int64_t count = 0;
    U worst = static_cast<U>(~U{0});
    bool full = false;
    for (int64_t i = 0; i < size; ++i) {
      const U key = D::stable(from[i], flipped);
      keys[count] = key;
      places[count] = i;
      count += !full || key < worst;
      if (count < room && i + 1 < size) continue;
      if (sort_digits<U>(keys, other_keys, places, other_places, count)) {
        exchange(keys, other_keys);
        exchange(places, other_places);
      }
      if (count < k) continue;
      count = k;
      worst = keys[k - 1];
      full = true;
    }
    return places;
  }

#if defined(__AVX2__)
  // The same, with candidates sorted as argsort does; null where it would not.
  const int64_t *largest_by_parts(const T *from, int64_t size, int64_t k) const {
    const int64_t room = 2 * k < MAX_SHORT ? MAX_SHORT : 2 * k;
    if constexpr (fits_double) {
      if (size > MOST_PAIRED) return nullptr;
      const int64_t places = int64_t{1} << position_bits(size);
      double *const pairs = reinterpret_cast<double *>(scratch);
      double worst = __builtin_huge_val();
      int64_t count = 0;
      const auto keep_best = [&] {
        if (!Parts<double>::sort(pairs, count, pairs + size, __builtin_huge_val())) return false;
        if (count < k) return true;
        count = k;
        worst = pairs[k - 1];
        return true;
      };
      for (int64_t i = 0; i < size; i += PAIRS) {
        const Vector<double, PAIRS> next = paired(from, i, size, static_cast<double>(places));
        for (uint64_t better = lane_bits<int64_t, PAIRS>(next < worst); better != 0; better &= better - 1)
          pairs[count++] = next[__builtin_ctzll(better)];
        if (count >= room && !keep_best()) return nullptr;
      }
      if (!keep_best()) return nullptr;
      int64_t *const order = reinterpret_cast<int64_t *>(pairs + size);
      for (int64_t i = 0; i < count; ++i) order[i] = static_cast<int64_t>(pairs[i]) & (places - 1);
      return order;
    } else {
      const int64_t stride = size + 8;
      uint64_t *keys = reinterpret_cast<uint64_t *>(scratch), *places = keys + stride, *other = places + stride;
      int64_t *const order = reinterpret_cast<int64_t *>(other + 2 * stride);
      int64_t count = 0;
      uint64_t worst = 0;
      bool full = false;
      const auto keep_best = [&] {
        if (count < 2) return true;
        if (!order_keys(keys, count, order, other)) return false;
        const int64_t best = count < k ? count : k;
        for (int64_t j = 0; j < best; ++j) {
          other[j] = keys[order[j]];
          other[stride + j] = places[order[j]];
        }
        uint64_t *const keys_now = other;
        other = keys;
        keys = keys_now;
        places = keys + stride;
        full = count >= k;
        count = best;
        worst = keys[best - 1];
        return true;
      };
      for (int64_t i = 0; i < size; ++i) {
        const uint64_t key = D::stable(from[i], flipped);
        if (full && key >= worst) continue;
        keys[count] = key;
        places[count++] = static_cast<uint64_t>(i);
        if (count >= room && !keep_best()) return nullptr;
      }
      if (!keep_best()) return nullptr;
      return reinterpret_cast<const int64_t *>(places);
    }
  }
#endif
};

template <class T>
void sort_segments(const Ordering &job, int64_t begin, int64_t end, void *scratch) {
  const int64_t *offsets = job.offsets;
  const T *data = static_cast<const T *>(job.data);
  T *out = static_cast<T *>(job.values);
  const SegmentOrder<T> order{data + offsets[job.num_segments], job.flipped, static_cast<uint8_t *>(scratch)};
  constexpr int64_t AT_ONCE = 16;  // segments for which NaN and -0 are looked for together
  for (int64_t next; begin < end; begin = next) {
    next = end - begin < AT_ONCE ? end : begin + AT_ONCE;
    typename SegmentOrder<T>::Found found = {};
    for (int64_t k = begin; k < next; ++k) {
      const int64_t from = offsets[k], size = offsets[k + 1] - from;
      if (size > 0) order.sort(data + from, size, out + from, out + offsets[end], &found);
    }
    if (!order.any(found)) continue;
    for (int64_t k = begin; k < next; ++k) {
      const int64_t from = offsets[k], size = offsets[k + 1] - from;
      order.restore(data + from, size, out + from);
    }
  }
}

template <class T>
void argsort_segments(const Ordering &job, int64_t begin, int64_t end, void *scratch) {
  const int64_t *offsets = job.offsets;
  const T *data = static_cast<const T *>(job.data);
  const SegmentOrder<T> order{data + offsets[job.num_segments], job.flipped, static_cast<uint8_t *>(scratch)};
  for (int64_t k = begin; k < end; ++k) {
    const int64_t from = offsets[k], size = offsets[k + 1] - from;
    if (size > 0) order.argsort(data + from, size, job.positions + from, job.positions + offsets[end]);
  }
}

template <class T>
void topk_segments(const Ordering &job, int64_t begin, int64_t end, void *scratch) {
  const int64_t *offsets = job.offsets;
  const T *data = static_cast<const T *>(job.data);
  const SegmentOrder<T> order{data + offsets[job.num_segments], job.flipped, static_cast<uint8_t *>(scratch)};
  for (int64_t k = begin; k < end; ++k)
    order.topk(data + offsets[k], offsets[k + 1] - offsets[k], job.k, static_cast<T *>(job.values) + k * job.k,
               job.positions + k * job.k);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
