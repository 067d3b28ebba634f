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
constexpr int64_t CHUNK = 512;  // numbers; the places of their blocks fit next to a fraction in 32 bits
constexpr int64_t BLOCK = 2;    // numbers; 4 take 5 % less time of long segments and 30 % more of short ones
constexpr uint32_t BITS = 20, LAST = (uint32_t{1} << BITS) - 1, SLACK = 8;
using Doubles = Vector<double, LANES>;
using Places = Vector<int64_t, LANES>;
using Words = Vector<uint32_t, 2 * LANES>;

inline uint64_t remainder(unsigned __int128 product) {
  const uint64_t low = static_cast<uint64_t>(product), high = static_cast<uint64_t>(product >> 64);
  // a sum, since a shift of both, `product >> 61`, takes six steps on Zen
  const uint64_t once = (low & PRIME) + (8 * high + (low >> 61));
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

// Up to CHUNK numbers, below the prime, and their halves; the last one fills its vector.
struct Chunk {
  int64_t size;
  uint64_t x[CHUNK];
  double lo[CHUNK], hi[CHUNK];
};

inline Doubles placed(Doubles lo, Doubles hi, Doubles by_lo, Doubles by_hi, Doubles plus) {
  return hi * by_hi + (lo * by_lo + plus);
}

// The low halves of the lanes of two vectors: two of the first, two of the second, and so on. Of floats, since GCC has one
// instruction for them and three for integers.
template <int N>
inline Vector<uint32_t, 2 * N> low_words(Vector<double, N> one, Vector<double, N> two) {
  constexpr int A = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, B = A + 2 * N;
  const auto a = (Vector<float, 2 * N>)one, b = (Vector<float, 2 * N>)two;
  using Result = Vector<uint32_t, 2 * N>;
  if constexpr (N == 2)
    return (Result)__builtin_shufflevector(a, b, A, A + 2, B, B + 2);
  else if constexpr (N == 4)
    return (Result)__builtin_shufflevector(a, b, A, A + 2, B, B + 2, A + 4, A + 6, B + 4, B + 6);
  else
    return (Result)__builtin_shufflevector(a, b, A, A + 2, B, B + 2, A + 4, A + 6, B + 4, B + 6, A + 8, A + 10, B + 8,
                                           B + 10, A + 12, A + 14, B + 12, B + 14);
}

// The lane of both vectors, one after another, that is this lane of their low words.
constexpr int lane_of(int word) { return word / 4 * 2 + word % 2 + word / 2 % 2 * LANES; }

// The least hash of pair j among the numbers whose fractions are at most `limit`. Seldom called: once in 100 pairs.
__attribute__((noinline)) uint64_t least_near(const MinHash &job, const Chunk &chunk, int64_t j, uint32_t limit) {
  const double *const shares = job.shares + j;
  const int64_t size = padded(job.count);
  uint64_t least = PRIME;
  for (int64_t i = 0; i < chunk.size; i += LANES) {
    const Doubles sums = placed(load<double, double, LANES>(chunk.lo + i), load<double, double, LANES>(chunk.hi + i),
                                shares[0] - Doubles{}, shares[size] - Doubles{}, shares[2 * size] - Doubles{});
    uint64_t bits = lane_bits<int64_t, LANES>(((Places)sums & int64_t{LAST}) <= int64_t{limit});
    for (; bits != 0; bits &= bits - 1) {
      const uint64_t hash = hashed(job, j, chunk.x[i + __builtin_ctzll(bits)]);
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
    const auto words = [&](int64_t i) __attribute__((always_inline)) {
      const Doubles lo = chunk.lo[i] - Doubles{}, hi = chunk.hi[i] - Doubles{};
      return low_words<LANES>(placed(lo, hi, shares[0], shares[2], shares[4]),
                              placed(lo, hi, shares[1], shares[3], shares[5])) << (32 - BITS);
    };
    Words first = ~Words{}, second = ~Words{}, block = {};
    for (int64_t i = 0; i < chunk.size; i += BLOCK, block += 1) {
      Words found = words(i);
      for (int k = 1; k < BLOCK; ++k) {
        const Words other = words(i + k);
        found = other < found ? other : found;
      }
      found |= block;
      const Words larger = found > first ? found : first;
      second = larger < second ? larger : second;
      first = found < first ? found : first;
    }
    const Words nearest = first >> (32 - BITS), next = second >> (32 - BITS);
    const uint64_t alone = lane_bits<int32_t, 2 * LANES>(
        (Vector<int32_t, 2 * LANES>)((nearest >= SLACK) & (next - nearest >= SLACK)));
#pragma GCC unroll 16
    for (int word = 0; word < 2 * LANES; ++word) {
      const int64_t pair = j + lane_of(word);
      if (pair >= job.count) continue;
      uint64_t hash = least[pair];
      if (alone >> word & 1) {
        const uint64_t *const x = chunk.x + first[word] % CHUNK * BLOCK;
        for (int k = 0; k < BLOCK; ++k) {
          const uint64_t other = hashed(job, pair, x[k]);
          hash = other < hash ? other : hash;
        }
      } else {  // a fraction next to 0 may be that of a hash next to the prime: the least is then the next one
        const uint32_t limit = nearest[word] >= SLACK ? nearest[word] : next[word] >= SLACK ? next[word] : LAST;
        const uint64_t other = least_near(job, chunk, pair, limit + SLACK);
        hash = other < hash ? other : hash;
      }
      least[pair] = hash;
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
      const int64_t last = (left < CHUNK ? left : CHUNK) - 1;
      chunk.size = last + 1;
      for (int64_t i = 0; i < (last + LANES) / LANES * LANES; ++i) {
        const int64_t at = start + (i < last ? i : last);
        const uint64_t x = chunk.x[i] = remainder(static_cast<uint64_t>(job.numbers[at]));
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
