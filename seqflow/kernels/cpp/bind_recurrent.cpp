#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "processor.h"
#include "python.h"
#include "recurrent.h"
#include "threads.h"

namespace seqflow {
namespace {

const RecurrentKernels *const ALL[NUM_INSTRUCTION_SETS] = {
    &baseline::recurrent_kernels,
#if defined(SEQFLOW_X86_LEVELS)
    &avx2::recurrent_kernels,
    &avx512::recurrent_kernels,
#endif
};

// Memory that starts at a multiple of 64 bytes.
class Aligned {
 public:
  explicit Aligned(int64_t bytes) : memory(new uint8_t[static_cast<size_t>(bytes) + 64]) {}
  void *data() const { return memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64); }

 private:
  std::unique_ptr<uint8_t[]> memory;
};

// The sequences of one task, longest first.
struct Share {
  std::vector<int64_t> sequences;
  int64_t rows = 0;
};

// Sequences dealt longest first, each to the share that has the fewest rows so far.
std::vector<Share> deal(const Numbers &offsets, int64_t num_sequences, int num_shares) {
  const auto length = [&](int64_t i) { return offsets[i + 1] - offsets[i]; };
  std::vector<int64_t> order(num_sequences);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<Share> shares(num_shares);
  for (const int64_t sequence : order) {
    Share &least = *std::min_element(shares.begin(), shares.end(),
                                     [](const Share &a, const Share &b) { return a.rows < b.rows; });
    least.sequences.push_back(sequence);
    least.rows += length(sequence);
  }
  return shares;
}

class Optional {
 public:
  explicit Optional(nb::handle array) {
    if (!array.is_none()) buffer.emplace(array);
  }
  // The elements, or null; they are of that type and of that number.
  const void *elements(Type type, int64_t size) const {
    if (!buffer) return nullptr;
    if (buffer->type() != type) not_plain();
    if (buffer->size() != size) throw nb::value_error("weights or states have another shape than expected");
    return buffer->data();
  }

 private:
  std::optional<Buffer> buffer;
};

// Into outputs that native/recurrent.py has made, for arguments that it has checked.
void run_cell(int cell, nb::handle x, nb::handle lengths, nb::handle w_ih, nb::handle w_hh, nb::handle bias_ih,
              nb::handle bias_hh, nb::handle h0, nb::handle c0, bool reverse, nb::handle h, nb::handle h_last,
              nb::handle c_last) {
  const Buffer data(x), counts(lengths), input_weights(w_ih), hidden_weights(w_hh);
  const Optional input_bias(bias_ih), hidden_bias(bias_hh), first_h(h0), first_c(c0), last_c(c_last);
  Buffer states(h, true), last_h(h_last, true);
  const Type type = data.type();
  if ((type != FLOAT32 && type != FLOAT64) || input_weights.type() != type || hidden_weights.type() != type ||
      states.type() != type || last_h.type() != type)
    not_plain();
  if (cell < 0 || cell >= NUM_CELLS || data.rank() != 2 || input_weights.rank() != 2 || hidden_weights.rank() != 2)
    throw nb::value_error("not a cell, or not matrices");
  const int64_t num_rows = data.extent(0), num_sequences = counts.counts().size;

  Recurrence job = {};
  job.cell = static_cast<Cell>(cell);
  job.reverse = reverse;
  job.inputs = data.extent(1);
  job.hidden = hidden_weights.extent(1);
  const int64_t gates = product(job.cell == LSTM ? 4 : job.cell <= GRU_RESET_FIRST ? 3 : 1, job.hidden);
  const int64_t num_states = product(num_sequences, job.hidden);
  if (input_weights.extent(0) != gates || hidden_weights.extent(0) != gates ||
      input_weights.extent(1) != job.inputs || states.size() != product(num_rows, job.hidden) ||
      last_h.size() != num_states)
    throw nb::value_error("weights or states have another shape than expected");
  job.x = data.data();
  job.w_ih = input_weights.data();
  job.w_hh = hidden_weights.data();
  job.bias_ih = input_bias.elements(type, gates);
  job.bias_hh = hidden_bias.elements(type, gates);
  job.h0 = first_h.elements(type, num_states);
  job.c0 = first_c.elements(type, num_states);
  job.h = states.data();
  job.h_last = last_h.data();
  job.c_last = const_cast<void *>(last_c.elements(type, num_states));
  if (job.cell == LSTM && job.c_last == nullptr) throw nb::value_error("an LSTM has a last c");

  const int64_t work = product(product(num_rows, gates), job.inputs + job.hidden);
  const Unlocked unlocked(work);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_sequences], num_rows, "lengths", "x");
  job.offsets = offsets.data();

  const RecurrentKernels &kernels = *ALL[selected_index()];
  const int wide = type == FLOAT64;
  const int64_t item = wide ? 8 : 4;
  const int shares_wanted = static_cast<int>(std::min<int64_t>(usable_threads(), std::max<int64_t>(num_sequences, 1)));
  const std::vector<Share> shares = deal(offsets, num_sequences, shares_wanted);
  const Aligned packed(product(kernels.sizes[wide](job, 0).packed, item));
  job.packed = packed.data();
  std::vector<Aligned> scratch;
  std::vector<std::vector<const void *>> rows;
  for (const Share &share : shares) {
    const int64_t size = share.sequences.size();
    scratch.emplace_back(product(kernels.sizes[wide](job, size).scratch, item));
    rows.emplace_back(2 * size + std::max(size, ROWS_AT_ONCE));
  }
  kernels.pack[wide](job);
  parallel_for(static_cast<int64_t>(shares.size()), work, [&](int64_t i) {
    const std::vector<int64_t> &mine = shares[i].sequences;
    kernels.run[wide](job, mine.data(), static_cast<int64_t>(mine.size()), scratch[i].data(), rows[i].data());
  });
}

}  // namespace

void bind_recurrent(nb::module_ &module) {
  module.def("run_cell", run_cell, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none());
}

}  // namespace seqflow
