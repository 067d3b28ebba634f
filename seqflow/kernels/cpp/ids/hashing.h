// Hashes ids and strings into buckets. In NumPy: hashing.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Element by element: ids to buckets.
struct Hashing {
  const void *ids;
  bool wide;  // int64, else int32
  uint64_t state, num_buckets;
  int64_t *out;
};

// Strings, one after another in `data`, to buckets.
struct StringHashing {
  const uint8_t *data;
  const int64_t *offsets;
  uint64_t state, num_buckets;
  int64_t *out;
};

// Runs of n tokens, each wholly in its segment.
struct Grams {
  const void *tokens;
  bool wide;  // int64, else int32
  const int64_t *offsets, *targets;  // of the segments, and of the runs that begin in them
  int64_t n;
  uint64_t state;
  uint64_t *out;
};

// The least hash in each of `count` bins of equal width, over the numbers of a segment.
struct Bins {
  const void *numbers;
  bool wide;  // int64, else int32
  const int64_t *offsets;
  uint64_t state;
  int64_t count;    // 1 to MOST_BINS
  uint16_t *named;  // [count, NAMED], for `name_bins` to fill: the first bins that the stream of each names
  uint64_t *least;  // [segments, count]
};

constexpr int64_t MOST_BINS = 4096, NAMED = 8;

struct HashingKernels {
  void (*hash_ids)(const Hashing &, int64_t begin, int64_t end);            // elements
  void (*hash_strings)(const StringHashing &, int64_t begin, int64_t end);  // strings
  void (*hash_grams)(const Grams &, int64_t begin, int64_t end);            // segments
  void (*name_bins)(const Bins &);
  void (*least_of_bins)(const Bins &, int64_t begin, int64_t end);          // segments
};
SEQFLOW_TABLE(HashingKernels, hashing_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15;

inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

inline uint64_t term(uint64_t k) { return (k + 1) * GOLDEN; }

inline uint64_t output(uint64_t state, uint64_t k) { return mix(state + term(k)); }

inline int64_t bucket(uint64_t bits, uint64_t num_buckets) {
  return static_cast<int64_t>(static_cast<unsigned __int128>(bits) * num_buckets >> 64);
}

// Bits first, for a block that stays in registers or in the cache: that loop is made of vectors where they can multiply.
template <class T>
void hash_integers(const Hashing &job, int64_t begin, int64_t end) {
  constexpr int64_t BLOCK = 128;
  const T *ids = static_cast<const T *>(job.ids);
  uint64_t bits[BLOCK];
  for (int64_t first = begin; first < end; first += BLOCK) {
    const int64_t count = end - first < BLOCK ? end - first : BLOCK;
    for (int64_t i = 0; i < count; ++i)
      bits[i] = output(job.state, static_cast<uint64_t>(static_cast<int64_t>(ids[first + i])));
    for (int64_t i = 0; i < count; ++i) job.out[first + i] = bucket(bits[i], job.num_buckets);
  }
}

inline void hash_ids(const Hashing &job, int64_t begin, int64_t end) {
  if (job.wide)
    hash_integers<int64_t>(job, begin, end);
  else
    hash_integers<int32_t>(job, begin, end);
}

// The next 8 bytes as a little-endian number; of fewer, the others are 0.
inline uint64_t word(const uint8_t *from, int64_t size) {
  uint64_t value = 0;
  if (size >= 8)
    memcpy(&value, from, 8);
  else
    memcpy(&value, from, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

inline void hash_strings(const StringHashing &job, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const int64_t first = job.offsets[k], last = job.offsets[k + 1];
    uint64_t state = job.state;
    for (int64_t at = first; at < last; at += 8) state = mix(state ^ word(job.data + at, last - at));
    job.out[k] = bucket(output(state, static_cast<uint64_t>(last - first)), job.num_buckets);
  }
}

// Many runs at a time: the steps of one wait for each other. Runs that overlap share the products of their tokens.
template <class T>
void hash_runs(const Grams &job, int64_t begin, int64_t end) {
  constexpr int64_t BLOCK = 128, STEPS = 64;
  uint64_t states[BLOCK], terms[BLOCK + STEPS];
  for (int64_t segment = begin; segment < end; ++segment)
    for (int64_t to = job.targets[segment]; to < job.targets[segment + 1]; to += BLOCK) {
      const int64_t left = job.targets[segment + 1] - to, count = left < BLOCK ? left : BLOCK;
      const T *const tokens = static_cast<const T *>(job.tokens) + job.offsets[segment] + to - job.targets[segment];
      for (int64_t i = 0; i < count; ++i) states[i] = job.state;
      for (int64_t first = 0; first < job.n; first += STEPS) {
        const int64_t steps = job.n - first < STEPS ? job.n - first : STEPS;
        for (int64_t i = 0; i < count + steps - 1; ++i)
          terms[i] = term(static_cast<uint64_t>(static_cast<int64_t>(tokens[first + i])));
        for (int64_t k = 0; k < steps; ++k)
          for (int64_t i = 0; i < count; ++i) states[i] = mix(states[i] + terms[i + k]);
      }
      for (int64_t i = 0; i < count; ++i) job.out[to + i] = states[i];
    }
}

inline void hash_grams(const Grams &job, int64_t begin, int64_t end) {
  return job.wide ? hash_runs<int64_t>(job, begin, end) : hash_runs<int32_t>(job, begin, end);
}

inline uint64_t stream_of(const Bins &job, int64_t bin) { return output(job.state, static_cast<uint64_t>(bin)); }

inline int64_t named(const Bins &job, uint64_t stream, int64_t k) {
  return bucket(output(stream, static_cast<uint64_t>(k)), static_cast<uint64_t>(job.count));
}

inline void name_bins(const Bins &job) {
  for (int64_t j = 0; j < job.count; ++j)
    for (int64_t k = 0; k < NAMED; ++k)
      job.named[j * NAMED + k] = static_cast<uint16_t>(named(job, stream_of(job, j), k));
}

// Each empty bin takes the hash of the first bin that is not, of those that its stream names. The first few are looked up
// together: one by one, each would be a branch that nothing foretells.
inline void fill_empty(const Bins &job, uint64_t *least) {
  uint8_t is_full[MOST_BINS];
  int64_t full = 0;
  for (int64_t j = 0; j < job.count; ++j) {
    is_full[j] = least[j] != ~uint64_t{0};
    full += is_full[j];
  }
  if (full == 0 || full == job.count) return;
  for (int64_t j = 0; j < job.count; ++j) {
    if (is_full[j]) continue;
    const uint16_t *const first = job.named + j * NAMED;
    uint32_t found = 0;
    for (int64_t k = 0; k < NAMED; ++k) found |= uint32_t{is_full[first[k]]} << k;
    int64_t from = first[found ? __builtin_ctz(found) : 0];
    if (!found) {
      const uint64_t stream = stream_of(job, j);
      int64_t k = NAMED;
      do from = named(job, stream, k++);
      while (!is_full[from]);
    }
    least[j] = least[from];
  }
}

template <class T>
void lessen_bins(const Bins &job, int64_t begin, int64_t end) {
  constexpr int64_t BLOCK = 128;
  const T *const numbers = static_cast<const T *>(job.numbers);
  uint64_t bits[BLOCK];
  for (int64_t segment = begin; segment < end; ++segment) {
    uint64_t *const least = job.least + segment * job.count;
    for (int64_t j = 0; j < job.count; ++j) least[j] = ~uint64_t{0};
    for (int64_t first = job.offsets[segment]; first < job.offsets[segment + 1]; first += BLOCK) {
      const int64_t left = job.offsets[segment + 1] - first, count = left < BLOCK ? left : BLOCK;
      for (int64_t i = 0; i < count; ++i)
        bits[i] = output(job.state, static_cast<uint64_t>(static_cast<int64_t>(numbers[first + i])));
      for (int64_t i = 0; i < count; ++i) {
        uint64_t &bin = least[bucket(bits[i], static_cast<uint64_t>(job.count))];
        bin = bits[i] < bin ? bits[i] : bin;
      }
    }
    fill_empty(job, least);
  }
}

inline void least_of_bins(const Bins &job, int64_t begin, int64_t end) {
  return job.wide ? lessen_bins<int64_t>(job, begin, end) : lessen_bins<int32_t>(job, begin, end);
}

extern const HashingKernels hashing_kernels = {hash_ids, hash_strings, hash_grams, name_bins, least_of_bins};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
