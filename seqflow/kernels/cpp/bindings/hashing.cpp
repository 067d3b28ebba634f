// Binds hashing.h.
#include <algorithm>
#include <vector>

#include "ids/hashing.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

// 2**63 buckets, one more than Index can hold: the upper 63 bits of the hash.
bool fits(uint64_t num_buckets) { return num_buckets >= 1 && num_buckets <= uint64_t{1} << 63; }

nb::object hash_ids(nb::handle ids, Index state, uint64_t num_buckets) {
  const Buffer buffer(ids);
  const Integers integers = buffer.integers();
  if (!fits(num_buckets)) decline();
  nb::object buckets = empty_array({}, buffer, 0, dtype_named(INT64));
  Buffer result(buckets, NUMERIC, true);
  Hashing job = {};
  job.ids = integers.values;
  job.wide = integers.wide;
  job.state = static_cast<uint64_t>(state.value);
  job.num_buckets = num_buckets;
  job.out = reinterpret_cast<int64_t *>(result.data());
  const Unlocked unlocked(result.bytes());
  const auto run = SEQFLOW_SELECTED(hashing_kernels).hash_ids;
  parallel_ranges(integers.size, result.bytes(), [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return buckets;
}

nb::object hash_strings(nb::handle data, nb::handle lengths, Index state, uint64_t num_buckets) {
  const Buffer bytes(data), counts(lengths);
  if (bytes.type() != UINT8 || !dtype_of(data).equal(dtype_named(UINT8)) || bytes.rank() != 1 || !fits(num_buckets)) decline();
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  const int64_t count = offsets.size - 1;
  check_sum(offsets[count], bytes.extent(0), "lengths", "data");
  nb::object buckets = empty_array({count}, counts, 1, dtype_named(INT64));
  Buffer result(buckets, NUMERIC, true);
  StringHashing job = {};
  job.data = bytes.data();
  job.offsets = offsets.data();
  job.state = static_cast<uint64_t>(state.value);
  job.num_buckets = num_buckets;
  job.out = reinterpret_cast<int64_t *>(result.data());
  const int64_t work = bytes.bytes() + result.bytes();
  const Unlocked unlocked(work);
  const auto run = SEQFLOW_SELECTED(hashing_kernels).hash_strings;
  parallel_ranges(count, work, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return buckets;
}

nb::object hash_grams(nb::handle tokens, nb::handle lengths, Index n, Index state) {
  const Buffer ids(tokens), counts(lengths);
  const Integers integers = ids.counts(), sizes = counts.counts();
  if (n < 1) decline();
  const Numbers offsets = checked_offsets(sizes, "lengths");
  check_sum(offsets[sizes.size], integers.size, "lengths", "tokens");
  Numbers targets(offsets.size);
  targets[0] = 0;
  for (int64_t k = 0; k < sizes.size; ++k)
    targets[k + 1] = targets[k] + std::max<int64_t>(0, offsets[k + 1] - offsets[k] - (n - 1));
  nb::object hashes = empty_array({targets[sizes.size]}, counts, 1, dtype_named(UINT64));
  Buffer result(hashes, NUMERIC, true);
  const Grams job = {integers.values, integers.wide, offsets.data(), targets.data(), n,
                     static_cast<uint64_t>(state.value), reinterpret_cast<uint64_t *>(result.data())};
  const Unlocked unlocked(result.bytes());
  const auto run = SEQFLOW_SELECTED(hashing_kernels).hash_grams;
  parallel_segments(targets, 1, product(4 * result.bytes(), n), [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return hashes;
}

nb::object least_of_bins(nb::handle shingles, nb::handle lengths, Index state, Index count) {
  const Buffer hashes(shingles), counts(lengths);
  const Integers x = hashes.counts(), sizes = counts.counts();
  if (count < 1 || count > MOST_BINS) decline();
  check_memory({sizes.size, count}, UINT64);
  nb::object result = empty_array({sizes.size, count}, hashes, 1, dtype_named(UINT64));
  Buffer out(result, NUMERIC, true);
  const Unlocked unlocked(hashes.bytes() + out.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  check_sum(offsets[sizes.size], x.size, "lengths", "shingles");
  std::vector<uint16_t> named(count * NAMED);
  const Bins job = {x.values, x.wide, offsets.data(), static_cast<uint64_t>(state.value), count, named.data(),
                    reinterpret_cast<uint64_t *>(out.data())};
  const HashingKernels &kernels = SEQFLOW_SELECTED(hashing_kernels);
  kernels.name_bins(job);
  parallel_segments(offsets, count, 2 * hashes.bytes() + 8 * out.bytes(),
                    [&](int64_t begin, int64_t end) { kernels.least_of_bins(job, begin, end); });
  return result;
}

}  // namespace

void bind_hashing(nb::module_ &module) {
  bind_kernel(module, "hash_ids", hash_ids);
  bind_kernel(module, "hash_strings", hash_strings);
  bind_kernel(module, "hash_grams", hash_grams);
  bind_kernel(module, "least_of_bins", least_of_bins);
}

}  // namespace seqflow
