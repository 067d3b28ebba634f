#include <algorithm>
#include <cstring>

#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

Kind kind_named(const char *name) {
  static const char *const names[NUM_KINDS] = {"sum", "mean", "max", "min"};
  for (int kind = 0; kind < NUM_KINDS; ++kind)
    if (std::strcmp(name, names[kind]) == 0) return static_cast<Kind>(kind);
  not_plain();
}

Type result_type(Kind kind, Type type) {
  if (kind == MAX || kind == MIN || type == FLOAT32 || type == FLOAT64) return type;
  if (kind == MEAN) return FLOAT64;
  return type == UINT64 ? UINT64 : INT64;
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
  const Kernels &selected = kernels();
  const auto block = selected.reduce_block[kind][type];
  if (job.num_blocks == 1) return block(job, 0);
  parallel_for(job.num_blocks, bytes, [&](int64_t task) { block(job, task); });
  if (!job.fault) selected.combine[kind][type](job);
}

nb::object segment_reduce(const char *kind_name, nb::handle data, nb::handle lengths, nb::handle empty) {
  const Kind kind = kind_named(kind_name);
  const Buffer rows(data), counts(lengths);
  const Type type = rows.type(), out_type = result_type(kind, type);
  Reduction job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) not_plain();
  nb::object dtype = kind == MAX || kind == MIN ? dtype_of(data) : dtype_named(out_type);
  nb::object result = empty_array({counts.counts().size}, rows, 1, dtype);
  Buffer out(result, true);
  job.empty = fill_bytes(empty, out.item_bytes());
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.out = out.data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.num_rows, "lengths", "data");
  reduce(kind, type, job, rows.bytes());
  return result;
}

nb::object gather_segment_reduce(const char *kind_name, nb::handle table, nb::handle indices,
                                 nb::handle lengths, nb::handle empty, nb::handle ignore_index) {
  const Kind kind = kind_named(kind_name);
  const Buffer rows(table), picks(indices), counts(lengths);
  const Type type = rows.type(), out_type = result_type(kind, type);
  const Ignored ignored(ignore_index);
  Reduction job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) not_plain();
  nb::object dtype = kind == MAX || kind == MIN ? dtype_of(table) : dtype_named(out_type);
  nb::object result = empty_array({counts.counts().size}, rows, 1, dtype);
  Buffer out(result, true);
  job.empty = fill_bytes(empty, out.item_bytes());
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.gathered = true;
  job.indices = picks.counts();
  job.ignores = ignored.any;
  job.ignored = ignored.index;
  job.out = out.data();
  const int64_t bytes = product(job.indices.size, rows.row_bytes());
  const Unlocked unlocked(bytes);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.indices.size, "lengths", "indices");
  reduce(kind, type, job, bytes);
  if (job.fault) blame_index(job.indices, 0, job.num_rows, job.ignores, job.ignored, "indices");
  return result;
}

}  // namespace

void bind_reductions(nb::module_ &module) {
  module.def("segment_reduce", segment_reduce, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("gather_segment_reduce", gather_segment_reduce, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg().none());
}

}  // namespace seqflow
