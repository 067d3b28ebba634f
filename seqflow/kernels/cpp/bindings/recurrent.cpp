// Binds recurrent.h: RNN, GRU and LSTM over sequences of different lengths.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "shared/processor.h"
#include "bindings/python.h"
#include "recurrent/recurrent.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

// More sequences than this are run in turn: enough to be quick, and what a step needs stays in the caches.
constexpr int64_t TOGETHER = 128;

const char *const CELLS[NUM_CELLS] = {"lstm", "gru", "gru_reset_first", "rnn_tanh", "rnn_relu"};

Cell cell_named(const char *name) {
  for (int cell = 0; cell < NUM_CELLS; ++cell)
    if (std::strcmp(name, CELLS[cell]) == 0) return static_cast<Cell>(cell);
  decline();
}

// An argument that is declined unless it has that type and shape; null where it is None.
class Optional {
 public:
  Optional(nb::handle array, Type type, std::initializer_list<int64_t> shape) {
    if (array.is_none()) return;
    buffer.emplace(array);
    if (buffer->type() != type || buffer->rank() != static_cast<int>(shape.size())) decline();
    int axis = 0;
    for (const int64_t extent : shape)
      if (buffer->extent(axis++) != extent) decline();
  }
  const void *data() const { return buffer ? buffer->data() : nullptr; }

 private:
  std::optional<Buffer> buffer;
};

// The states after the last steps: at first, those before the first ones.
nb::object last_states(const Optional &first, const Buffer &lengths, int64_t size, int64_t hidden, Type type) {
  nb::object states = empty_array({size, hidden}, lengths, 1, dtype_named(type));
  Buffer to(states, NUMERIC, true);
  if (first.data())
    std::memcpy(to.data(), first.data(), to.bytes());
  else
    std::memset(to.data(), 0, to.bytes());
  return states;
}

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

// Sequences, longest first, each assigned to the share that has the fewest rows so far.
std::vector<Share> assign_sequences(const Numbers &offsets, int64_t num_shares) {
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

nb::object run_cell(const char *cell, nb::handle x, nb::handle lengths, nb::handle w_ih, nb::handle w_hh,
                    nb::handle bias_ih, nb::handle bias_hh, nb::handle h0, nb::handle c0, nb::handle w_hr, bool reverse) {
  Recurrence job = {};
  job.cell = cell_named(cell);
  job.reverse = reverse;
  const Buffer rows(x), counts(lengths), hidden_weights(w_hh);
  const Type type = rows.type();
  if ((type != FLOAT32 && type != FLOAT64) || rows.rank() != 2 || hidden_weights.rank() != 2) decline();
  const Integers sizes = counts.counts();
  const int64_t num_rows = rows.extent(0);
  job.inputs = rows.extent(1);
  job.states = job.hidden = hidden_weights.extent(1);
  if (!w_hr.is_none()) {
    const Buffer projection(w_hr);
    if (job.cell != LSTM || projection.rank() != 2 || projection.extent(1) < job.states) decline();
    job.hidden = projection.extent(1);
  }
  const int64_t gates = product(job.cell == LSTM ? 4 : job.cell <= GRU_RESET_FIRST ? 3 : 1, job.hidden);
  const Optional from_x(w_ih, type, {gates, job.inputs}), from_h(w_hh, type, {gates, job.states});
  const Optional projection(w_hr, type, {job.states, job.hidden});
  const Optional bias_of_x(bias_ih, type, {gates}), bias_of_h(bias_hh, type, {gates});
  const Optional first_h(h0, type, {sizes.size, job.states}), first_c(c0, type, {sizes.size, job.hidden});
  job.x = rows.data();
  job.w_ih = from_x.data();
  job.w_hh = from_h.data();
  if (!job.w_ih) decline();
  job.bias_ih = bias_of_x.data();
  job.bias_hh = bias_of_h.data();
  job.h0 = first_h.data();
  job.c0 = first_c.data();
  job.w_hr = projection.data();

  nb::object h = empty_array({num_rows, job.states}, counts, 1, dtype_named(type));
  nb::object h_last = last_states(first_h, counts, sizes.size, job.states, type);
  nb::object c_last = nb::none();
  if (job.cell == LSTM) {
    c_last = last_states(first_c, counts, sizes.size, job.hidden, type);
    job.c_last = Buffer(c_last, NUMERIC, true).data();
  }
  job.h = Buffer(h, NUMERIC, true).data();
  job.h_last = Buffer(h_last, NUMERIC, true).data();
  {
    const int64_t work = product(product(num_rows, gates), job.inputs + job.states);
    const Unlocked unlocked(work);
    const Numbers offsets = checked_offsets(sizes, "lengths");
    check_sum(offsets[offsets.size - 1], num_rows, "lengths", "x");
    job.offsets = offsets.data();
    const int64_t num_shares = std::min<int64_t>(usable_threads(), std::max<int64_t>(offsets.size - 1, 1));
    run_shares(job, assign_sequences(offsets, num_shares), type == FLOAT64, work);
  }
  return nb::make_tuple(h, h_last, c_last);
}

}  // namespace

void bind_recurrent(nb::module_ &module) { bind_kernel(module, "run_cell", run_cell); }

}  // namespace seqflow
