// The least of (a * x + b) mod 2**61 - 1 over the numbers x of a segment, for many pairs a, b. In NumPy: matching.py.
//
// Doubles find the number with the least hash: with P the prime, hash / P is the fraction of lo * (a / P) +
// hi * (a * 2**31 / P) + b / P for x = lo + 2**31 * hi. Added to 2**32, a double keeps 20 bits of a fraction, off by less
// than SLACK / 2 units. Only the hash of the number found is computed exactly; where a second one is as near, each near one.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

constexpr uint64_t PRIME = (uint64_t{1} << 61) - 1;

struct MinHash {
  Integers numbers;
  const int64_t *offsets;       // checked
  const uint64_t *a, *b;        // [count], below the prime
  int64_t count;
  double *shares;               // [3, padded], for `prepare` to fill
  uint64_t *least;              // [segments, count]
};

struct MinHashKernels {
  int64_t (*padded)(int64_t count);
  void (*prepare)(const MinHash &);
  void (*run)(const MinHash &, int64_t begin, int64_t end);  // segments
};
SEQFLOW_TABLE(MinHashKernels, minhash_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr uint64_t LOW = (uint64_t{1} << 31) - 1;
constexpr int LANES = VECTOR_BYTES / 8;
constexpr int64_t CHUNK = 512;  // numbers whose places fit next to a fraction in 32 bits
constexpr uint32_t BITS = 20, SLACK = 8;
using Doubles = Vector<double, LANES>;
using Longs = Vector<uint64_t, LANES>;
using Words = Vector<uint32_t, 2 * LANES>;

inline uint64_t remainder(unsigned __int128 product) {
  const uint64_t once = (static_cast<uint64_t>(product) & PRIME) + static_cast<uint64_t>(product >> 61);
  return once >= PRIME ? once - PRIME : once;
}

inline uint64_t hashed(const MinHash &job, int64_t j, uint64_t x) {
  return remainder(static_cast<unsigned __int128>(job.a[j]) * x + job.b[j]);
}

inline int64_t padded(int64_t count) { return (count + 2 * LANES - 1) / (2 * LANES) * (2 * LANES); }

void prepare(const MinHash &job) {
  const int64_t size = padded(job.count);
  for (int64_t j = 0; j < 3 * size; ++j) job.shares[j] = 0;
  for (int64_t j = 0; j < job.count; ++j) {
    job.shares[j] = static_cast<double>(job.a[j]) / PRIME;
    job.shares[size + j] = static_cast<double>(remainder(static_cast<unsigned __int128>(job.a[j]) << 31)) / PRIME;
    job.shares[2 * size + j] = 4294967296.0 + static_cast<double>(job.b[j]) / PRIME + SLACK / 2 * 0x1p-20;
  }
}

// Up to CHUNK numbers, below the prime, and their halves; filled up with 0.
struct Chunk {
  int64_t size;
  uint64_t x[CHUNK];
  double lo[CHUNK], hi[CHUNK];
};

inline Doubles placed(Doubles lo, Doubles hi, Doubles by_lo, Doubles by_hi, Doubles plus) {
  return hi * by_hi + (lo * by_lo + plus);
}

// The low halves of the lanes of two vectors, in an order that takes one instruction: two of the first, two of the second.
template <int N>
inline Vector<uint32_t, 2 * N> low_words(Vector<double, N> one, Vector<double, N> two) {
  constexpr int A = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, B = A + 2 * N;
  const auto a = (Vector<uint32_t, 2 * N>)one, b = (Vector<uint32_t, 2 * N>)two;
  if constexpr (N == 2)
    return __builtin_shufflevector(a, b, A, A + 2, B, B + 2);
  else if constexpr (N == 4)
    return __builtin_shufflevector(a, b, A, A + 2, B, B + 2, A + 4, A + 6, B + 4, B + 6);
  else
    return __builtin_shufflevector(a, b, A, A + 2, B, B + 2, A + 4, A + 6, B + 4, B + 6, A + 8, A + 10, B + 8, B + 10,
                                   A + 12, A + 14, B + 12, B + 14);
}

// The lane of both vectors, one after another, that is this lane of their low words.
constexpr int lane_of(int word) { return word / 4 * 2 + word % 2 + word / 2 % 2 * LANES; }

// The least hash of pair j among the numbers whose fractions are at most `limit`.
inline uint64_t least_near(const MinHash &job, const Chunk &chunk, int64_t j, uint32_t limit) {
  const double *const shares = job.shares + j;
  const int64_t size = padded(job.count);
  uint64_t least = PRIME;
  for (int64_t i = 0; i < chunk.size; i += LANES) {
    const Doubles sums = placed(load<double, double, LANES>(chunk.lo + i), load<double, double, LANES>(chunk.hi + i),
                                shares[0] - Doubles{}, shares[size] - Doubles{}, shares[2 * size] - Doubles{});
    const Longs fractions = (Longs)sums & ((uint64_t{1} << BITS) - 1);
    uint64_t bits = lane_bits<int64_t, LANES>((Vector<int64_t, LANES>)(fractions <= limit));
    for (; bits != 0; bits &= bits - 1) {
      const int64_t at = i + __builtin_ctzll(bits);
      const uint64_t hash = at < chunk.size ? hashed(job, j, chunk.x[at]) : PRIME;
      least = hash < least ? hash : least;
    }
  }
  return least;
}

inline void lessen(const MinHash &job, const Chunk &chunk, uint64_t *least) {
  const int64_t size = padded(job.count);
  for (int64_t j = 0; j < job.count; j += 2 * LANES) {
    Doubles shares[6];
    for (int v = 0; v < 6; ++v) shares[v] = load<double, double, LANES>(job.shares + v / 2 * size + j + v % 2 * LANES);
    Words first = ~Words{}, second = ~Words{}, place = {};
    for (int64_t i = 0; i < chunk.size; ++i, place += 1) {
      const Doubles lo = chunk.lo[i] - Doubles{}, hi = chunk.hi[i] - Doubles{};
      const Words words = low_words<LANES>(placed(lo, hi, shares[0], shares[2], shares[4]),
                                           placed(lo, hi, shares[1], shares[3], shares[5]));
      const Words found = (words << (32 - BITS)) | place;
      const Words larger = found > first ? found : first;
      second = larger < second ? larger : second;
      first = found < first ? found : first;
    }
    for (int word = 0; word < 2 * LANES; ++word) {
      const int64_t pair = j + lane_of(word);
      if (pair >= job.count) continue;
      const uint32_t nearest = first[word] >> (32 - BITS), next = second[word] >> (32 - BITS);
      uint64_t hash;
      if (nearest >= SLACK && next - nearest >= SLACK)
        hash = hashed(job, pair, chunk.x[first[word] % CHUNK]);
      else  // a fraction next to 0 may be that of a hash next to the prime
        hash = least_near(job, chunk, pair, nearest < SLACK ? ~uint32_t{0} : nearest + SLACK);
      least[pair] = hash < least[pair] ? hash : least[pair];
    }
  }
}

void run(const MinHash &job, int64_t begin, int64_t end) {
  Chunk chunk = {};
  for (int64_t k = begin; k < end; ++k) {
    uint64_t *const least = job.least + k * job.count;
    for (int64_t j = 0; j < job.count; ++j) least[j] = PRIME;
    for (int64_t start = job.offsets[k]; start < job.offsets[k + 1]; start += CHUNK) {
      const int64_t left = job.offsets[k + 1] - start;
      chunk.size = left < CHUNK ? left : CHUNK;
      for (int64_t i = 0; i < chunk.size; ++i) {
        const uint64_t x = chunk.x[i] = remainder(static_cast<uint64_t>(job.numbers[start + i]));
        chunk.lo[i] = static_cast<double>(x & LOW);
        chunk.hi[i] = static_cast<double>(x >> 31);
      }
      lessen(job, chunk, least);
    }
  }
}

extern const MinHashKernels minhash_kernels = {padded, prepare, run};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
