// Binds segment reductions (reductions.h, whole_segments.h) and embedding pooling (pooling.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "reductions/pooling.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "reductions/reductions.h"
#include "shared/segments.h"
#include "reductions/whole_segments.h"

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

// The bits of elements that are flipped so that an extreme of them is the largest signed integer, or float.
uint64_t flipped_bits(Kind kind, int type) {
  if (!is_extreme(kind)) return 0;
  const auto top = [](int bytes) { return uint64_t{1} << (8 * bytes - 1); };
  const bool is_min = kind == MIN;
  switch (type) {
    case UINT8: return top(1) ^ -uint64_t{is_min};
    case UINT16: return top(2) ^ -uint64_t{is_min};
    case UINT32: return top(4) ^ -uint64_t{is_min};
    case UINT64: return top(8) ^ -uint64_t{is_min};
    case FLOAT16:  // compared as float32
    case FLOAT32: return is_min ? top(4) : 0;
    case FLOAT64: return is_min ? top(8) : 0;
    default: return -uint64_t{is_min};
  }
}

// Blocks have at least MIN_BLOCK positions, and about BLOCK_ELEMENTS elements; so does each part of a segment that is
// longer than that. Where there is none, results do not depend on blocks, and each thread gets a few large ones.
constexpr int64_t BLOCK_ELEMENTS = 1 << 16;
constexpr int64_t MIN_BLOCK = 128;
constexpr int64_t BLOCKS_PER_THREAD = 8;

// Run all blocks, then join what they left. Only segments that are longer than a block leave anything.
void reduce(ReduceBlock block, CombineBlocks combine, Reduction &job, int64_t bytes) {
  const int64_t positions = job.offsets[job.num_segments];
  job.block_size = std::max(MIN_BLOCK, BLOCK_ELEMENTS / job.columns);
  bool parts = false;
  for (int64_t k = 0; k < job.num_segments; ++k) parts |= job.offsets[k + 1] - job.offsets[k] > job.block_size;
  if (!parts) job.block_size = std::max(job.block_size, positions / (BLOCKS_PER_THREAD * usable_threads()));
  job.num_blocks = std::max<int64_t>(1, (positions + job.block_size - 1) / job.block_size);
  const int64_t width = product(job.columns, MAX_ACCUMULATOR_BYTES);
  const int64_t half = parts ? product(job.num_blocks, width) : 0;
  const std::unique_ptr<uint8_t[]> memory(parts ? new uint8_t[product(2, half) + width] : nullptr);
  job.head = memory.get();
  job.tail = memory.get() + half;
  job.totals = memory.get() + 2 * half;
  Numbers counts(parts ? 2 * job.num_blocks : 1);
  job.head_count = counts.data();
  job.tail_count = counts.data() + job.num_blocks;
  parallel_for(job.num_blocks, bytes, [&](int64_t task) { block(job, task); });
  if (parts && !job.fault) combine(job);
}

// The sums of rows [first, last) in pieces, which are added up in order.
void sum_long(SumRows sum, const RowSums &job, int64_t first, int64_t last, double *sums) {
  const int64_t columns = job.columns, step = piece_rows(columns), count = (last - first + step - 1) / step;
  const std::unique_ptr<double[]> parts(new double[static_cast<size_t>(product(count, columns))]);
  parallel_pieces(first, last, columns, (last - first) * columns * 8,
                  [&](int64_t piece, int64_t from, int64_t to) { sum(job, from, to, parts.get() + piece * columns); });
  std::fill(sums, sums + columns, 0.0);
  for (int64_t i = 0; i < count * columns; ++i) sums[i % columns] += parts[i];
}

// The variance of a long segment, which has more rows than ddof.
void long_variance(const WholeSegments &job, int64_t k, Type type) {
  const auto &sums = SEQFLOW_SELECTED(whole_segment_kernels).sum_rows;
  const int64_t columns = job.columns, first = job.offsets[k], last = job.offsets[k + 1];
  std::vector<double> means(static_cast<size_t>(columns)), squares(static_cast<size_t>(columns));
  sum_long(sums[PLAIN][type], {job.data, columns, nullptr}, first, last, means.data());
  for (double &mean : means) mean /= static_cast<double>(last - first);
  sum_long(sums[DISTANCES][type], {job.data, columns, means.data()}, first, last, squares.data());
  for (int64_t c = 0; c < columns; ++c) {
    const double found = squares[static_cast<size_t>(c)] / static_cast<double>(last - first - job.ddof);
    if (mean_type(type) == FLOAT32)
      static_cast<float *>(job.out)[k * columns + c] = static_cast<float>(found);
    else
      static_cast<double *>(job.out)[k * columns + c] = found;
  }
}

nb::object reduce_whole(const WholeSegmentKernel (&kernels)[NUM_TYPES], Type out_type, const Buffer &rows,
                        const Buffer &counts, nb::handle empty, int64_t ddof, bool shares) {
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
  const auto is_shared = [&](int64_t k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    return shares && size > ddof && is_long(size, job.columns);
  };
  parallel_segments(offsets, job.columns, rows.bytes(), [&](int64_t begin, int64_t end) {
    others_of(begin, end, is_shared, [&](int64_t first, int64_t last) { kernels[type](job, first, last); });
  });
  for (int64_t k = 0; k + 1 < offsets.size; ++k)
    if (is_shared(k)) long_variance(job, k, type);
  return result;
}

nb::object normalize_within(nb::handle data, nb::handle lengths, bool l1) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) decline();
  const Type type = rows.type();
  const WholeSegmentKernels &kernels = SEQFLOW_SELECTED(whole_segment_kernels);
  const DivideRows divide = type == FLOAT32 ? kernels.divide_float32 : kernels.divide_float64;
  const SumRows sum = kernels.sum_rows[l1 ? MAGNITUDES : SQUARES][type];
  const int64_t columns = rows.row_elements(), bytes = rows.bytes();
  if ((type != FLOAT32 && type != FLOAT64) || columns == 0) decline();
  const Integers sizes = counts.counts();
  nb::object result = empty_array({rows.extent(0)}, rows, 1, dtype_of(data));
  uint8_t *const out = Buffer(result, NUMERIC, true).data();
  const RowSums job = {rows.data(), columns, nullptr};
  const Unlocked unlocked(bytes);
  const Numbers offsets = checked_offsets(sizes, "lengths");
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  const auto norms_of = [&](double *sums) {
    for (int64_t c = 0; c < columns; ++c) {
      const double norm = l1 ? sums[c] : std::sqrt(sums[c]);
      sums[c] = norm == 0 ? 1 : norm;
    }
  };
  parallel_segments(offsets, columns, bytes, [&](int64_t begin, int64_t end) {
    std::vector<double> norms(static_cast<size_t>(columns));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = offsets[k], last = offsets[k + 1];
      if (first == last || is_long(last - first, columns)) continue;
      sum(job, first, last, norms.data());
      norms_of(norms.data());
      divide(job, first, last, norms.data(), out);
    }
  });
  for (int64_t k = 0; k + 1 < offsets.size; ++k) {
    const int64_t first = offsets[k], last = offsets[k + 1];
    if (!is_long(last - first, columns)) continue;
    std::vector<double> norms(static_cast<size_t>(columns));
    sum_long(sum, job, first, last, norms.data());
    norms_of(norms.data());
    parallel_pieces(first, last, columns, bytes,
                    [&](int64_t, int64_t from, int64_t to) { divide(job, from, to, norms.data(), out); });
  }
  return result;
}

nb::object segment_prod(nb::handle data, nb::handle lengths, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return segment_prod(cast(data, dtype_named(FLOAT32)), lengths, empty);
  return reduce_whole(SEQFLOW_SELECTED(whole_segment_kernels).prod, sum_type(rows.type()), rows, counts, empty, 0, false);
}

nb::object segment_variance(nb::handle data, nb::handle lengths, Index ddof, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return segment_variance(cast(data, dtype_named(FLOAT64)), lengths, ddof, empty);
  return reduce_whole(SEQFLOW_SELECTED(whole_segment_kernels).variance, mean_type(rows.type()), rows, counts, empty, ddof,
                      true);
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
  job.mean = kind == MEAN;
  job.flipped = flipped_bits(kind, type);
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.out = Buffer(result, NUMERIC, true).data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.num_rows, "lengths", "data");
  const ReductionKernels &selected = SEQFLOW_SELECTED(reduction_kernels);
  reduce(selected.reduce_block[kind][type], selected.combine[kind][type], job, rows.bytes());
  return result;
}

// A table that indices pick from; float16 is pooled as it is.
int table_type(const Buffer &rows) { return rows.is_half() ? FLOAT16 : rows.type(); }

nb::object pool(ReduceBlock block, CombineBlocks combine, Reduction &job, const Buffer &rows, const Buffer &picks,
                nb::handle lengths, nb::handle empty, nb::handle dtype, const Ignored &ignored) {
  const Buffer counts(lengths);
  const Integers sizes = counts.counts();
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  nb::object result = empty_array({sizes.size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.empty = fill.data();
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.gathered = true;
  job.indices = picks.counts();
  job.rows_ahead = SEQFLOW_SELECTED(pooling_kernels).rows_ahead(rows.row_bytes());
  job.ignores = ignored.any;
  job.ignored = ignored.index;
  job.out = Buffer(result, NUMERIC, true).data();
  const int64_t bytes = product(job.indices.size, rows.row_bytes());
  const Unlocked unlocked(bytes);
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.num_segments = offsets.size - 1;
  job.offsets = offsets.data();
  check_sum(offsets[job.num_segments], job.indices.size, "lengths", "indices");
  reduce(block, combine, job, bytes);
  if (job.fault) blame_index(job.indices, 0, job.num_rows, job.ignores, job.ignored, "indices");
  return result;
}

// Indices as int64, and int32 where the kernel takes them.
nb::object int64_indices(nb::handle indices, bool takes_int32) {
  if (takes_int32 || Buffer(indices).counts().wide) return nb::borrow(indices);
  return cast(indices, dtype_named(INT64));
}

nb::object gather_segment_reduce(const char *kind_name, nb::handle table, nb::handle indices, nb::handle lengths,
                                 nb::handle empty, nb::handle ignore_index) {
  const Kind kind = kind_named(kind_name);
  const Buffer rows(table);
  const int type = table_type(rows);
  const nb::object wide_indices = int64_indices(indices, type == FLOAT32 && !is_extreme(kind));
  const Buffer picks(wide_indices);
  const PoolingKernels &selected = SEQFLOW_SELECTED(pooling_kernels);
  Reduction job = {};
  job.mean = kind == MEAN;
  job.flipped = flipped_bits(kind, type);
  const bool is_half = type == FLOAT16;
  const nb::object dtype = is_half ? dtype_named(kind == MEAN ? FLOAT64 : FLOAT32)
                                   : result_dtype(kind, static_cast<Type>(type), table);
  nb::object result = pool(selected.pool_block[kind][type], selected.combine[kind][type], job, rows, picks, lengths,
                           empty, dtype, Ignored(ignore_index));
  return is_half ? narrowed(kind, result, table) : result;
}

nb::object gather_segment_weigh(nb::handle table, nb::handle weights, nb::handle indices, nb::handle lengths,
                                bool positional, nb::handle empty, nb::handle ignore_index) {
  const Buffer rows(table), factors(weights), counts(lengths);
  const int type = table_type(rows);
  const Type weight_type = factors.type();
  if (weight_type != FLOAT32 && weight_type != FLOAT64) decline();
  const bool narrow = weight_type == FLOAT32;
  if (narrow && type != FLOAT32 && type != FLOAT16) decline();
  const nb::object wide_indices = int64_indices(indices, narrow && type == FLOAT32);
  const Buffer picks(wide_indices);
  const PoolingKernels &selected = SEQFLOW_SELECTED(pooling_kernels);
  const int64_t needed = positional ? check_max(counts.counts(), "lengths") : picks.counts().size;
  if (factors.rank() != 1 || (positional ? factors.size() < needed : factors.size() != needed)) decline();
  Reduction job = {};
  job.weights = factors.data();
  job.positional = positional;
  const ReduceBlock block = !narrow            ? selected.weigh_block[type]
                            : type == FLOAT16 ? selected.weigh_float16
                                              : selected.weigh_float32;
  return pool(block, narrow ? selected.combine_float32 : selected.combine_float64, job, rows, picks, lengths, empty,
              dtype_named(weight_type), Ignored(ignore_index));
}

}  // namespace

void bind_reductions(nb::module_ &module) {
  bind_kernel(module, "normalize_within", normalize_within);
  bind_kernel(module, "segment_reduce", segment_reduce);
  bind_kernel(module, "segment_variance", segment_variance);
  bind_kernel(module, "gather_segment_reduce", gather_segment_reduce);
  bind_kernel(module, "gather_segment_weigh", gather_segment_weigh);
}

}  // namespace seqflow
