// Pooling of quantized embedding tables: 8-, 4- or 2-bit rows with a scale and a bias each. In NumPy: quantized.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// A row is its integers, 8 / bits of them in a byte, the first in the lowest bits; then its scale and its bias.
struct QuantizedPooling {
  const uint8_t *table;
  int64_t num_rows, row_bytes, packed_bytes;  // packed_bytes: of the integers
  bool half;                                  // scale and bias are float16, else float32
  const int64_t *offsets;                     // of segments, checked
  Integers indices;
  bool pruned;           // the index -1 stands for a row of zeros
  const float *weights;  // of each position; null: none
  bool mean;
  float *out;
  bool fault = false;  // an index was out of range: the caller finds it
};

using PoolQuantized = void (*)(QuantizedPooling &, int64_t begin, int64_t end);  // segments [begin, end)

struct QuantizedKernels {
  PoolQuantized bits8, bits4, bits2;
};
SEQFLOW_TABLE(QuantizedKernels, quantized_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/picked_rows.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int BYTE_LANES = VECTOR_BYTES / 4;  // bytes that are widened to one vector
using Wide = Vector<int32_t, BYTE_LANES>;
using Floats = Vector<float, BYTE_LANES>;

inline Wide widen_bytes(const uint8_t *from) {
#if defined(__AVX512F__)
  return (Wide)_mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128((const __m128i *)from));
#elif defined(__AVX2__)
  return (Wide)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
#elif defined(__SSE2__)
  int32_t raw;
  memcpy(&raw, from, sizeof raw);
  const __m128i zero = _mm_setzero_si128();
  return (Wide)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(raw), zero), zero);
#else
  return load<int32_t, uint8_t, BYTE_LANES>(from);
#endif
}

struct ScaleAndBias {
  float scale, bias;
};

inline ScaleAndBias scale_and_bias(const uint8_t *from, bool half) {
  ScaleAndBias ends;
  if (!half) {
    memcpy(&ends.scale, from, sizeof ends.scale);
    memcpy(&ends.bias, from + sizeof ends.scale, sizeof ends.bias);
    return ends;
  }
  uint32_t raw;
  memcpy(&raw, from, sizeof raw);
#if defined(__F16C__)
  const auto wide = (Vector<float, 4>)_mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(raw)));
#else
  const auto wide = widen_bits<4>(Vector<uint16_t, 4>{static_cast<uint16_t>(raw), static_cast<uint16_t>(raw >> 16)});
#endif
  return {wide[0], wide[1]};
}

// Pools rows in accumulators in registers: of each byte, one for each of its integers. Indices are I: int32_t, int64_t.
template <int BITS, class I>
class QuantizedPooler {
 public:
  static constexpr int PER_BYTE = 8 / BITS;
  static constexpr int MOST = 8 / PER_BYTE;  // vectors of bytes at the same time
  static constexpr bool LOOKED_UP = BITS == 2 && VECTOR_BYTES > 16;

  explicit QuantizedPooler(QuantizedPooling &job)
      : job(job),
        ahead(rows_ahead(job.row_bytes)),
        lines(most_lines(job)),
        columns(job.packed_bytes * PER_BYTE) {}

  // Segments [begin, end) of rows of COUNT vectors of bytes with float32 scale and bias, without weights: all that a segment
  // needs stays in registers. Segments longer than CHUNK go the other way.
  template <int COUNT>
  __attribute__((noinline)) void whole_rows(int64_t begin, int64_t end) const {
    constexpr int64_t PACKED = COUNT * BYTE_LANES, ROW = PACKED + 2 * sizeof(float);
    const I *const indices = static_cast<const I *>(job.indices.values);
    const uint64_t num_rows = static_cast<uint64_t>(job.num_rows);
    const uintptr_t table = reinterpret_cast<uintptr_t>(job.table);
    const int64_t *const offsets = job.offsets;
    const int64_t most = job.indices.size - ahead, far = ahead;
    float *out = job.out + begin * PACKED;
    for (int64_t k = begin; k < end; ++k, out += PACKED) {
      const int64_t from = offsets[k], to = offsets[k + 1], distance = to <= most ? far : 0;
      if (__builtin_expect(to - from > CHUNK, 0)) {
        segment(k);
        continue;
      }
      Floats sums[COUNT] = {};
      float bias = 0;
      for (const I *p = indices + from, *const last = indices + to; p != last; ++p) {
        // not checked yet: the address may be anything
        const uintptr_t later = table + static_cast<uint64_t>(int64_t{__atomic_load_n(p + distance, __ATOMIC_RELAXED)}) * ROW;
#pragma GCC unroll 8
        for (int64_t at = 0; at < ROW - 1; at += 64) __builtin_prefetch(reinterpret_cast<const void *>(later + at));
        __builtin_prefetch(reinterpret_cast<const void *>(later + ROW - 1));
        const int64_t index = __atomic_load_n(p, __ATOMIC_RELAXED);
        if (__builtin_expect(static_cast<uint64_t>(index) >= num_rows, 0)) {
          if (!job.pruned || index != -1) __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
          continue;
        }
        const uint8_t *const row = reinterpret_cast<const uint8_t *>(table + static_cast<uint64_t>(index) * ROW);
        const ScaleAndBias ends = scale_and_bias(row + PACKED, false);
        bias += ends.bias;
        const Floats scale = multiples(ends.scale);
#pragma GCC unroll 8
        for (int i = 0; i < COUNT; ++i) add_scaled(sums[i], scale, widen_bytes(row + i * BYTE_LANES), 0);
      }
#pragma GCC unroll 8
      for (int i = 0; i < COUNT; ++i) store<float, BYTE_LANES>(out + i * BYTE_LANES, sums[i] + bias);
    }
  }

  // The same for any number of vectors up to COUNT.
  template <int COUNT>
  void whole_rows_of(int64_t begin, int64_t end) const {
    if constexpr (COUNT > 1)
      if (job.packed_bytes < COUNT * BYTE_LANES) return whole_rows_of<COUNT - 1>(begin, end);
    whole_rows<COUNT>(begin, end);
  }

  void segment(int64_t k) const {
    const int64_t from = job.offsets[k], to = job.offsets[k + 1];
    float *const out = job.out + k * columns;
    for (int64_t at = 0, left; (left = job.packed_bytes - at) > 0;) {
      if (left >= MOST * BYTE_LANES)
        at = bytes<MOST>(from, to, at, out);
      else if (MOST >= 4 && left >= MOST / 2 * BYTE_LANES)
        at = bytes<(MOST >= 4 ? MOST / 2 : 1)>(from, to, at, out);
      else if (MOST == 8 && left >= 2 * BYTE_LANES)
        at = bytes<(MOST == 8 ? 2 : 1)>(from, to, at, out);
      else
        at = bytes<1>(from, to, at, out);
    }
  }

 private:
  // The columns of COUNT vectors of bytes from `at` on. Where fewer bytes are left, these are the last of the integers,
  // or run on into scale and bias. Returns where the next begin.
  template <int COUNT>
  int64_t bytes(int64_t from, int64_t to, int64_t at, float *out) const {
    constexpr int SIZE = COUNT * BYTE_LANES;
    if (at + SIZE > job.packed_bytes) at = job.packed_bytes < SIZE ? 0 : job.packed_bytes - SIZE;
    const int64_t size = to - from, first = size < CHUNK ? size : CHUNK;
    Floats rows[PER_BYTE][COUNT];
    const float bias = accumulate<COUNT>(from, from + first, at, rows);
    if (PER_BYTE == 1 && size <= CHUNK && at + SIZE <= job.packed_bytes && !job.mean) {
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) store<float, BYTE_LANES>(out + at + k * BYTE_LANES, rows[0][k] + bias);
      return at + SIZE;
    }
    float sums[PER_BYTE][SIZE];
    memcpy(sums, rows, sizeof sums);
    if (size > CHUNK)
      add_later<COUNT>(from + first, to, at, bias, sums);
    else
      each(sums, [=](float sum) { return sum + bias; });
    if (job.mean && size > 0) each(sums, [count = static_cast<float>(size)](float sum) { return sum / count; });
    const int64_t last = job.packed_bytes - at < SIZE ? job.packed_bytes - at : SIZE;
    if (last < SIZE)
      interleave<SIZE>(sums, last, out + at * PER_BYTE);
    else
      interleave<SIZE>(sums, SIZE, out + at * PER_BYTE);
    return at + last;
  }

  // Complete the sums of the first CHUNK positions of a segment, whose later ones are [from, to).
  template <int COUNT, int SIZE = COUNT * BYTE_LANES>
  __attribute__((noinline)) void add_later(int64_t from, int64_t to, int64_t at, double bias,
                                           float (&sums)[PER_BYTE][SIZE]) const {
    double totals[PER_BYTE][SIZE];
    for (int place = 0; place < PER_BYTE; ++place)
      for (int i = 0; i < SIZE; ++i) totals[place][i] = static_cast<double>(sums[place][i]);
    Floats rows[PER_BYTE][COUNT];
    for (; from < to; from += CHUNK) {
      bias += static_cast<double>(accumulate<COUNT>(from, to - from < CHUNK ? to : from + CHUNK, at, rows));
      memcpy(sums, rows, sizeof rows);
      for (int place = 0; place < PER_BYTE; ++place)
        for (int i = 0; i < SIZE; ++i) totals[place][i] += static_cast<double>(sums[place][i]);
    }
    for (int place = 0; place < PER_BYTE; ++place)
      for (int i = 0; i < SIZE; ++i) sums[place][i] = static_cast<float>(totals[place][i] + bias);
  }

  template <int SIZE, class Body>
  static inline void each(float (&sums)[PER_BYTE][SIZE], const Body &body) {
    for (auto &row : sums)
      for (float &sum : row) sum = body(sum);
  }

  // The sums of integers times scales over positions [from, to), at most CHUNK of them; returns that of the biases.
  template <int COUNT>
  inline float accumulate(int64_t from, int64_t to, int64_t at, Floats (&out)[PER_BYTE][COUNT]) const {
    const uint8_t *const table = job.table;
    const float *const weights = job.weights;
    int64_t position = from;
    const I *const indices = static_cast<const I *>(job.indices.values);
    const uint64_t num_rows = static_cast<uint64_t>(job.num_rows);
    const int64_t row_bytes = job.row_bytes, packed_bytes = job.packed_bytes, row_lines = lines;
    const bool fetches = at == 0 && to + ahead <= job.indices.size;
    const int64_t distance = fetches ? ahead : 0;
    const bool half = job.half, narrow = row_bytes < BYTE_LANES;
    Floats sums[PER_BYTE][COUNT] = {};
    float bias = 0;
    for (const I *p = indices + from, *const end = indices + to; p != end; ++p, ++position) {
      if (fetches) fetch(table, __atomic_load_n(p + distance, __ATOMIC_RELAXED), row_bytes, row_lines);
      const int64_t index = __atomic_load_n(p, __ATOMIC_RELAXED);
      if (__builtin_expect(static_cast<uint64_t>(index) >= num_rows, 0)) {
        if (!job.pruned || index != -1) __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
        continue;
      }
      const uint8_t *row = table + index * row_bytes;
      ScaleAndBias ends = scale_and_bias(row + packed_bytes, half);
      if (weights) {
        ends.scale *= weights[position];
        ends.bias *= weights[position];
      }
      bias += ends.bias;
      uint8_t few[BYTE_LANES] = {};
      if (COUNT == 1 && narrow) {
        memcpy(few, row, static_cast<size_t>(row_bytes));
        row = few;
      }
      const Floats scale = multiples(ends.scale);
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) {
        const Wide packed = widen_bytes(row + at + k * BYTE_LANES);
#pragma GCC unroll 4
        for (int place = 0; place < PER_BYTE; ++place)
          add_scaled(sums[place][k], scale, packed >> (place * BITS), place);
      }
    }
#pragma GCC unroll 4
    for (int place = 0; place < PER_BYTE; ++place)
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) out[place][k] = sums[place][k];
    return bias;
  }

  // The first bytes' sums in the order of columns. Of four places, those two apart are joined first.
  template <int SIZE>
  static inline void interleave(const float (&sums)[PER_BYTE][SIZE], int64_t bytes, float *out) {
    if constexpr (PER_BYTE == 1) {
      for (int64_t i = 0; i < bytes; ++i) out[i] = sums[0][i];
    } else if constexpr (PER_BYTE == 2) {
      alternate(sums[0], sums[1], bytes, out);
    } else {
      float even[2 * SIZE], odd[2 * SIZE];
      alternate(sums[0], sums[2], bytes, even);
      alternate(sums[1], sums[3], bytes, odd);
      alternate(even, odd, 2 * bytes, out);
    }
  }

  static inline void alternate(const float *first, const float *second, int64_t size, float *out) {
    for (int64_t i = 0; i < size; ++i) {
      out[2 * i] = first[i];
      out[2 * i + 1] = second[i];
    }
  }

  // What `add_scaled` takes a scale as: in all lanes, or for 2 bits in AVX the four products, which it looks up.
  static inline Floats multiples(float scale) {
    const Floats same = scale - Floats{};
    if constexpr (!LOOKED_UP) return same;
    Floats integers;
    for (int i = 0; i < BYTE_LANES; ++i) integers[i] = static_cast<float>(i % 4);
    return same * integers;
  }

  // Add the scale times the integer in the lowest bits of each lane.
  static inline void add_scaled(Floats &sum, Floats scale, Wide lanes, int place) {
#if defined(__AVX512F__)
    if constexpr (LOOKED_UP) return void(sum += (Floats)_mm512_permutevar_ps((__m512)scale, (__m512i)lanes));
#elif defined(__AVX2__)
    if constexpr (LOOKED_UP) return void(sum += (Floats)_mm256_permutevar_ps((__m256)scale, (__m256i)lanes));
#endif
    const Wide integers = place == PER_BYTE - 1 ? lanes : lanes & ((1 << BITS) - 1);
    sum += scale * __builtin_convertvector(integers, Floats);
  }

  // Every line of a row whose index is not checked yet: the address may be anything.
  static inline __attribute__((always_inline)) void fetch(const uint8_t *table, int64_t index, int64_t row_bytes, int64_t lines) {
    const uintptr_t row = reinterpret_cast<uintptr_t>(table) + static_cast<uint64_t>(index * row_bytes);
    __builtin_prefetch(reinterpret_cast<const void *>(row));
    for (int64_t line = 1; line + 1 < lines; ++line)
      __builtin_prefetch(reinterpret_cast<const void *>(row + line * 64));
    __builtin_prefetch(reinterpret_cast<const void *>(row + row_bytes - 1));
  }

  // In how many lines a row is at most.
  static int64_t most_lines(const QuantizedPooling &job) {
    const uint64_t parts = reinterpret_cast<uintptr_t>(job.table) | static_cast<uint64_t>(job.row_bytes) | 64;
    const int64_t alignment = static_cast<int64_t>(parts & -parts);
    return (job.row_bytes + 2 * 64 - 1 - alignment) / 64;
  }

  QuantizedPooling &job;
  const int64_t ahead, lines, columns;
};

template <int BITS, class I>
void pool_segments(QuantizedPooling &job, int64_t begin, int64_t end) {
  const QuantizedPooler<BITS, I> pooler(job);
  if constexpr (BITS == 8)
    if (!job.weights && !job.half && !job.mean && job.packed_bytes % BYTE_LANES == 0 &&
        job.packed_bytes <= pooler.MOST * BYTE_LANES)
      return pooler.template whole_rows_of<pooler.MOST>(begin, end);
  for (int64_t k = begin; k < end; ++k) pooler.segment(k);
}

template <int BITS>
void pool_quantized(QuantizedPooling &job, int64_t begin, int64_t end) {
  if (job.indices.wide)
    pool_segments<BITS, int64_t>(job, begin, end);
  else
    pool_segments<BITS, int32_t>(job, begin, end);
}

extern const QuantizedKernels quantized_kernels = {pool_quantized<8>, pool_quantized<4>, pool_quantized<2>};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
