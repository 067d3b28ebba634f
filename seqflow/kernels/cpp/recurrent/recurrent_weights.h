// The weights of a recurrent cell in the order they are used, and the biases.
//
// Gates have columns of their own, filled up to whole panels (rows_by_panels.h):
//
//   LSTM            i f g o        x and h go into all of them
//   GRU             n r z m        x goes into n r z, h into r z m; the new gate is tanh(n + sigmoid(r) * m)
//   GRU_RESET_FIRST n r z          x goes into n r z, h into r z, then sigmoid(r) * h into n
//   RNN             n
#pragma once

#include "recurrent/recurrent.h"
#include "recurrent/rows_by_panels.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t NUM_GATES[NUM_CELLS] = {4, 3, 3, 1, 1};
constexpr int64_t NUM_GATE_COLUMNS[NUM_CELLS] = {4, 4, 3, 1, 1};
constexpr bool is_gru(Cell cell) { return cell == GRU || cell == GRU_RESET_FIRST; }

template <class T>
struct Layout {
  int64_t width;    // columns of one gate
  int64_t columns;  // of all gates
  int64_t gates;
  int64_t projected;  // columns of a projection
  int64_t w_hh_at, w_hr_at, bias_at, size;  // where these start behind w_ih, and where they end

  explicit Layout(const Recurrence &job)
      : width((job.hidden + PANEL<T> - 1) / PANEL<T> * PANEL<T>),
        columns(NUM_GATE_COLUMNS[job.cell] * width),
        gates(NUM_GATES[job.cell]),
        projected(job.w_hr ? (job.states + PANEL<T> - 1) / PANEL<T> * PANEL<T> : 0),
        w_hh_at(gates * width * job.inputs),
        w_hr_at(w_hh_at + gates * width * job.states),
        bias_at(w_hr_at + projected * job.hidden),
        size(bias_at + columns) {}

  int64_t panels() const { return width / PANEL<T>; }  // of one gate
};

// Rows [first, first + hidden) of weights[gates * hidden, depth] as panels; columns without a row are 0.
template <class T>
T *pack_gate(const void *weights, int64_t first, int64_t hidden, int64_t depth, T *panels) {
  for (int64_t column = 0; column < hidden; column += PANEL<T>, panels += depth * PANEL<T>) {
    const int64_t filled = hidden - column < PANEL<T> ? hidden - column : PANEL<T>;
    const T *rows = static_cast<const T *>(weights) + (first + column) * depth;
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t c = 0; c < filled; ++c) panels[k * PANEL<T> + c] = rows[c * depth + k];
      for (int64_t c = filled; c < PANEL<T>; ++c) panels[k * PANEL<T> + c] = 0;
    }
  }
  return panels;
}

template <class T>
void add_bias(const void *bias, int64_t gate, int64_t hidden, T *to) {
  if (bias == nullptr) return;
  const T *from = static_cast<const T *>(bias) + gate * hidden;
  for (int64_t i = 0; i < hidden; ++i) to[i] += from[i];
}

template <class T>
void pack(const Recurrence &job) {
  const Layout<T> layout(job);
  T *ih = static_cast<T *>(job.packed), *hh = ih + layout.w_hh_at, *const bias = ih + layout.bias_at;
  for (int64_t i = 0; i < layout.columns; ++i) bias[i] = 0;
  for (int64_t gate = 0; gate < layout.gates; ++gate) {
    const int64_t source = is_gru(job.cell) ? (gate + 2) % 3 : gate;  // r z n becomes n r z for x
    ih = pack_gate(job.w_ih, source * job.hidden, job.hidden, job.inputs, ih);
    hh = pack_gate(job.w_hh, gate * job.hidden, job.hidden, job.states, hh);
    const int64_t m = job.cell == GRU && gate == 0 ? 3 : gate;
    add_bias(job.bias_ih, source, job.hidden, bias + gate * layout.width);
    add_bias(job.bias_hh, source, job.hidden, bias + m * layout.width);
  }
  if (job.w_hr) pack_gate(job.w_hr, 0, job.states, job.hidden, hh);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
