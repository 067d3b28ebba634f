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

// More sequences than this are run in turn: enough to be quick, and what a step needs stays in the caches.
constexpr int64_t TOGETHER = 128;

[[noreturn]] void wrong_shape() { throw nb::value_error("weights or states have another shape than expected"); }

class Optional {
 public:
  explicit Optional(nb::handle array, bool writable = false) {
    if (!array.is_none()) buffer.emplace(array, writable);
  }
  // The elements, or null; they are of that type and of that number.
  void *elements(Type type, int64_t size) {
    if (!buffer) return nullptr;
    if (buffer->type() != type) not_plain();
    if (buffer->size() != size) wrong_shape();
    return buffer->data();
  }

 private:
  std::optional<Buffer> buffer;
};

// Memory that starts at a multiple of 64 bytes.
class Aligned {
 public:
  explicit Aligned(int64_t bytes) : memory(new uint8_t[static_cast<size_t>(bytes) + 64]) {}
  void *data() const { return memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64); }

 private:
  std::unique_ptr<uint8_t[]> memory;
};

// What one task runs: some sequences, longest first.
struct Share {
  std::vector<int64_t> sequences;
  int64_t rows = 0;
};

// Sequences dealt longest first, each to the share that has the fewest rows so far.
std::vector<Share> deal(const Numbers &offsets, int64_t num_shares) {
  const auto length = [&](int64_t i) { return offsets[i + 1] - offsets[i]; };
  std::vector<int64_t> order(offsets.size - 1);
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

// All memory is had before the threads start: there, nothing may be thrown.
void run_shares(Recurrence &job, const std::vector<Share> &shares, bool wide, int64_t work) {
  const RecurrentKernels &kernels = SEQFLOW_SELECTED(recurrent_kernels);
  const int64_t item = wide ? sizeof(double) : sizeof(float);
  const Aligned packed(product(kernels.sizes[wide](job, 0).packed, item));
  job.packed = packed.data();
  std::vector<Aligned> scratch;
  std::vector<std::vector<const void *>> rows;
  for (const Share &share : shares) {
    const int64_t count = std::min<int64_t>(share.sequences.size(), TOGETHER);
    const RecurrentSizes sizes = kernels.sizes[wide](job, count);
    scratch.emplace_back(product(sizes.scratch, item));
    rows.emplace_back(sizes.rows);
  }
  kernels.pack[wide](job);
  parallel_for(static_cast<int64_t>(shares.size()), work, [&](int64_t task) {
    const std::vector<int64_t> &mine = shares[task].sequences;
    const int64_t size = static_cast<int64_t>(mine.size());
    for (int64_t begin = 0; begin < size; begin += TOGETHER)
      kernels.run[wide](job, mine.data() + begin, std::min(size - begin, TOGETHER), scratch[task].data(),
                        rows[task].data());
  });
}

// Into outputs that native/recurrent.py has made, for arguments that it has checked.
void run_cell(int cell, nb::handle x, nb::handle lengths, nb::handle w_ih, nb::handle w_hh, nb::handle bias_ih,
              nb::handle bias_hh, nb::handle h0, nb::handle c0, bool reverse, nb::handle h, nb::handle h_last,
              nb::handle c_last) {
  const Buffer data(x), counts(lengths), input_weights(w_ih), hidden_weights(w_hh);
  Optional input_bias(bias_ih), hidden_bias(bias_hh), first_h(h0), first_c(c0);
  Optional states(h, true), last_h(h_last, true), last_c(c_last, true);
  const Type type = data.type();
  if ((type != FLOAT32 && type != FLOAT64) || input_weights.type() != type || hidden_weights.type() != type)
    not_plain();
  if (cell < 0 || cell >= NUM_CELLS || data.rank() != 2 || input_weights.rank() != 2 || hidden_weights.rank() != 2)
    wrong_shape();

  Recurrence job = {};
  job.cell = static_cast<Cell>(cell);
  job.reverse = reverse;
  job.inputs = data.extent(1);
  job.hidden = hidden_weights.extent(1);
  const int64_t num_rows = data.extent(0), num_states = product(counts.counts().size, job.hidden);
  const int64_t gates = product(job.cell == LSTM ? 4 : job.cell <= GRU_RESET_FIRST ? 3 : 1, job.hidden);
  if (input_weights.extent(0) != gates || hidden_weights.extent(0) != gates || input_weights.extent(1) != job.inputs)
    wrong_shape();
  job.x = data.data();
  job.w_ih = input_weights.data();
  job.w_hh = hidden_weights.data();
  job.bias_ih = input_bias.elements(type, gates);
  job.bias_hh = hidden_bias.elements(type, gates);
  job.h0 = first_h.elements(type, num_states);
  job.c0 = first_c.elements(type, num_states);
  job.h = states.elements(type, product(num_rows, job.hidden));
  job.h_last = last_h.elements(type, num_states);
  job.c_last = last_c.elements(type, num_states);
  if (!job.h || !job.h_last || (job.cell == LSTM && !job.c_last)) wrong_shape();

  const int64_t work = product(product(num_rows, gates), job.inputs + job.hidden);
  const Unlocked unlocked(work);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[offsets.size - 1], num_rows, "lengths", "x");
  job.offsets = offsets.data();
  const int64_t num_shares = std::min<int64_t>(usable_threads(), std::max<int64_t>(offsets.size - 1, 1));
  run_shares(job, deal(offsets, num_shares), type == FLOAT64, work);
}

}  // namespace

void bind_recurrent(nb::module_ &module) {
  module.def("run_cell", run_cell, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none());
}

}  // namespace seqflow
