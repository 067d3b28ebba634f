#include <algorithm>
#include <cstring>

#include "processor.h"
#include "python.h"
#include "reductions.h"
#include "segments.h"
#include "whole_segments.h"

namespace seqflow {
namespace {

Kind kind_named(const char *name) {
  static const char *const names[NUM_KINDS] = {"sum", "mean", "max", "min"};
  for (int kind = 0; kind < NUM_KINDS; ++kind)
    if (std::strcmp(name, names[kind]) == 0) return static_cast<Kind>(kind);
  decline();
}

bool is_extreme(Kind kind) { return kind == MAX || kind == MIN; }

nb::object result_dtype(Kind kind, Type type, nb::handle data) {
  if (is_extreme(kind)) return dtype_of(data);
  return dtype_named(kind == MEAN ? mean_type(type) : sum_type(type));
}

// float16 in a dtype to compute with, and an extreme of them as float16 again.
nb::object widened(Kind kind, nb::handle data) { return cast(data, dtype_named(kind == MEAN ? FLOAT64 : FLOAT32)); }
nb::object narrowed(Kind kind, nb::object result, nb::handle data) {
  return is_extreme(kind) ? cast(result, dtype_of(data)) : result;
}

// Blocks have at least MIN_BLOCK positions, and about BLOCK_ELEMENTS elements.
constexpr int64_t BLOCK_ELEMENTS = 1 << 16;
constexpr int64_t MIN_BLOCK = 128;

// Run all blocks, then join what they left. Only more than one block leaves anything.
void reduce(Kind kind, Type type, Reduction &job, int64_t bytes) {
  const int64_t positions = job.offsets[job.num_segments];
  job.block_size = std::max(MIN_BLOCK, BLOCK_ELEMENTS / job.columns);
  job.num_blocks = std::max<int64_t>(1, (positions + job.block_size - 1) / job.block_size);
  const int64_t width = product(job.num_blocks, product(job.columns, MAX_ACCUMULATOR_BYTES));
  alignas(64) uint8_t few[1024];
  std::unique_ptr<uint8_t[]> many;
  uint8_t *memory = few;
  if (job.num_blocks > 1 || width > static_cast<int64_t>(sizeof few)) {
    many.reset(new uint8_t[product(3, width)]);
    memory = many.get();
    job.head = memory + width;
    job.tail = memory + 2 * width;
  }
  job.scratch = memory;
  Numbers counts(job.num_blocks > 1 ? 2 * job.num_blocks : 1);
  job.head_count = counts.data();
  job.tail_count = counts.data() + job.num_blocks;
  const ReductionKernels &selected = SEQFLOW_SELECTED(reduction_kernels);
  const auto block = selected.reduce_block[kind][type];
  if (job.num_blocks == 1) return block(job, 0);
  parallel_for(job.num_blocks, bytes, [&](int64_t task) { block(job, task); });
  if (!job.fault) selected.combine[kind][type](job);
}

nb::object reduce_whole(const WholeSegmentKernel (&kernels)[NUM_TYPES], Type out_type, const Buffer &rows,
                        const Buffer &counts, nb::handle empty, int64_t ddof) {
  const Type type = rows.type();
  const Integers sizes = counts.counts();
  WholeSegments job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  const nb::object dtype = dtype_named(out_type);
  nb::object result = empty_array({sizes.size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.empty = fill.data();
  job.data = rows.data();
  job.out = Buffer(result, NUMERIC, true).data();
  job.ddof = ddof;
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  parallel_segments(offsets, job.columns, rows.bytes(),
                    [&](int64_t begin, int64_t end) { kernels[type](job, begin, end); });
  return result;
}

nb::object segment_prod(nb::handle data, nb::handle lengths, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return segment_prod(cast(data, dtype_named(FLOAT32)), lengths, empty);
  return reduce_whole(SEQFLOW_SELECTED(whole_segment_kernels).prod, sum_type(rows.type()), rows, counts, empty, 0);
}

nb::object segment_variance(nb::handle data, nb::handle lengths, Index ddof, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return segment_variance(cast(data, dtype_named(FLOAT64)), lengths, ddof, empty);
  return reduce_whole(SEQFLOW_SELECTED(whole_segment_kernels).variance, mean_type(rows.type()), rows, counts, empty, ddof);
}

nb::object segment_reduce(const char *kind_name, nb::handle data, nb::handle lengths, nb::handle empty) {
  if (std::strcmp(kind_name, "prod") == 0) return segment_prod(data, lengths, empty);
  const Kind kind = kind_named(kind_name);
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return narrowed(kind, segment_reduce(kind_name, widened(kind, data), lengths, empty), data);
  const Type type = rows.type();
  const Integers sizes = counts.counts();
  Reduction job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  const nb::object dtype = result_dtype(kind, type, data);
  nb::object result = empty_array({sizes.size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.empty = fill.data();
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.out = Buffer(result, NUMERIC, true).data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.num_rows, "lengths", "data");
  reduce(kind, type, job, rows.bytes());
  return result;
}

nb::object gather_segment_reduce(const char *kind_name, nb::handle table, nb::handle indices, nb::handle lengths,
                                 nb::handle empty, nb::handle ignore_index) {
  const Kind kind = kind_named(kind_name);
  const Buffer rows(table), picks(indices), counts(lengths);
  if (rows.is_half())
    return narrowed(kind, gather_segment_reduce(kind_name, widened(kind, table), indices, lengths, empty, ignore_index),
                    table);
  const Type type = rows.type();
  const Integers sizes = counts.counts();
  const Ignored ignored(ignore_index);
  Reduction job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  const nb::object dtype = result_dtype(kind, type, table);
  nb::object result = empty_array({sizes.size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.empty = fill.data();
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.gathered = true;
  job.indices = picks.counts();
  job.ignores = ignored.any;
  job.ignored = ignored.index;
  job.out = Buffer(result, NUMERIC, true).data();
  const int64_t bytes = product(job.indices.size, rows.row_bytes());
  const Unlocked unlocked(bytes);
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.indices.size, "lengths", "indices");
  reduce(kind, type, job, bytes);
  if (job.fault) blame_index(job.indices, 0, job.num_rows, job.ignores, job.ignored, "indices");
  return result;
}

}  // namespace

void bind_reductions(nb::module_ &module) {
  bind_kernel(module, "segment_reduce", segment_reduce);
  bind_kernel(module, "segment_variance", segment_variance);
  bind_kernel(module, "gather_segment_reduce", gather_segment_reduce);
}

}  // namespace seqflow
