// A recurrent cell along some sequences, longest first, so that those alive in a step are the first ones.
//
// What x gives to the gates of a few steps is one product with w_ih; each step adds its product with w_hh to that
// and applies the cell.
#pragma once

#include "recurrent/recurrent_steps.h"
#include "recurrent/recurrent_weights.h"

namespace seqflow {
namespace SEQFLOW_ISA {

inline int64_t rows_at_once(int64_t num_sequences) {
  return num_sequences > ROWS_AT_ONCE ? num_sequences : ROWS_AT_ONCE;
}

template <class T>
RecurrentSizes sizes(const Recurrence &job, int64_t num_sequences) {
  const Layout<T> layout(job);
  const int64_t rows = rows_at_once(num_sequences);
  const int64_t projection = layout.projected ? num_sequences * (layout.width + layout.projected) : 0;
  const int64_t scratch = (1 + num_sequences) * layout.width + rows * layout.columns + projection;
  return {layout.size, scratch, 2 * num_sequences + rows};
}

template <class T>
class Run {
 public:
  // Scratch memory and row pointers as `sizes` has them.
  Run(const Recurrence &job, const int64_t *sequences, int64_t num_sequences, T *scratch, const T **rows)
      : job(job),
        layout(job),
        sequences(sequences),
        num_sequences(num_sequences),
        w_ih(static_cast<const T *>(job.packed)),
        w_hh(w_ih + layout.w_hh_at),
        bias(w_ih + layout.bias_at),
        h(rows),
        resets(h + num_sequences),
        x(resets + num_sequences),
        zeros(scratch),
        states(zeros + layout.width),
        gates(states + num_sequences * layout.width),
        outputs(gates + rows_at_once(num_sequences) * layout.columns),
        projected(outputs + num_sequences * layout.width) {}

  void run() {
    start();
    int64_t first = 0, count = alive(num_sequences, 0);
    while (count > 0) {
      const int64_t end = read(first, count);
      for (T *at = gates; first < end; ++first) {
        count = alive(count, first);
        step(first, count, at);
        at += count * layout.columns;
      }
      count = alive(count, first);
    }
    finish();
  }

 private:
  const Recurrence &job;
  const Layout<T> layout;
  const int64_t *const sequences;
  const int64_t num_sequences;
  const T *const w_ih, *const w_hh, *const bias;
  const T **const h;       // [num_sequences]: the last state of each, a row of job.h or job.h0, or zeros
  const T **const resets;  // [num_sequences]: GRU_RESET_FIRST, the rows of states; projection, those of outputs
  const T **const x;       // [rows at once]
  T *const zeros;          // [width]
  T *const states;         // [num_sequences, width]: LSTM: c; GRU_RESET_FIRST: sigmoid(r) * h
  T *const gates;          // [rows at once, columns]
  T *const outputs;        // [num_sequences, width]: projection: what becomes h
  T *const projected;      // [num_sequences, layout.projected]

  int64_t length(int64_t i) const { return job.offsets[sequences[i] + 1] - job.offsets[sequences[i]]; }
  int64_t row(int64_t i, int64_t step) const {
    return job.reverse ? job.offsets[sequences[i] + 1] - 1 - step : job.offsets[sequences[i]] + step;
  }
  // How many of the first `count` sequences have a step of that number.
  int64_t alive(int64_t count, int64_t step) const {
    while (count > 0 && length(count - 1) <= step) --count;
    return count;
  }

  void start() {
    const T *h0 = static_cast<const T *>(job.h0), *c0 = static_cast<const T *>(job.c0);
    for (int64_t k = 0; k < layout.width; ++k) zeros[k] = 0;
    for (int64_t i = 0; i < num_sequences; ++i) {
      const int64_t from = sequences[i] * job.hidden;
      T *state = states + i * layout.width;
      h[i] = h0 ? h0 + sequences[i] * job.states : zeros;
      resets[i] = job.w_hr ? outputs + i * layout.width : state;
      for (int64_t k = 0; k < layout.width; ++k) state[k] = c0 && k < job.hidden ? c0[from + k] : T(0);
    }
  }

  void finish() {
    for (int64_t i = 0; i < num_sequences; ++i) {
      memcpy(static_cast<T *>(job.h_last) + sequences[i] * job.states, h[i], job.states * sizeof(T));
      if (job.cell != LSTM) continue;
      T *const c_last = static_cast<T *>(job.c_last) + sequences[i] * job.hidden;
      memcpy(c_last, states + i * layout.width, job.hidden * sizeof(T));
    }
  }

  // What x gives to the gates of steps [first, the result).
  int64_t read(int64_t first, int64_t count) {
    int64_t num_rows = 0, step = first;
    for (; count > 0 && (num_rows == 0 || num_rows + count <= ROWS_AT_ONCE); count = alive(count, ++step))
      for (int64_t i = 0; i < count; ++i)
        x[num_rows++] = static_cast<const T *>(job.x) + row(i, step) * job.inputs;
    for (int64_t i = 0; i < num_rows; ++i)
      memcpy(gates + i * layout.columns, bias, layout.columns * sizeof(T));
    const int64_t panels = layout.gates * layout.panels();
    multiply<T>({x, num_rows, job.inputs, w_ih, panels, gates, layout.columns});
    return step;
  }

  void step(int64_t step, int64_t count, T *gates) {
    add_states(count, gates);
    for (int64_t i = 0; i < count; ++i) {
      T *to = state_after(i, step);
      apply(gates + i * layout.columns, h[i], states + i * layout.width, job.w_hr ? outputs + i * layout.width : to);
      h[i] = to;
    }
    if (job.w_hr) project(step, count);
  }

  T *state_after(int64_t i, int64_t step) const { return static_cast<T *>(job.h) + row(i, step) * job.states; }

  // The states of a step from its outputs.
  void project(int64_t step, int64_t count) {
    for (int64_t k = 0; k < count * layout.projected; ++k) projected[k] = 0;
    const T *const panels = w_ih + layout.w_hr_at;
    multiply<T>({resets, count, job.hidden, panels, layout.projected / PANEL<T>, projected, layout.projected});
    for (int64_t i = 0; i < count; ++i)
      memcpy(state_after(i, step), projected + i * layout.projected, job.states * sizeof(T));
  }

  // What h gives to the gates.
  void add_states(int64_t count, T *gates) {
    const int64_t width = layout.width, hidden = job.hidden, columns = layout.columns;
    const int64_t num_gates = job.cell == GRU_RESET_FIRST ? 2 : layout.gates;
    T *to = is_gru(job.cell) ? gates + width : gates;
    multiply<T>({h, count, job.states, w_hh, num_gates * layout.panels(), to, columns});
    if (job.cell != GRU_RESET_FIRST) return;
    for (int64_t i = 0; i < count; ++i)
      gru_reset(gates + i * columns, width, hidden, h[i], states + i * width);
    multiply<T>({resets, count, hidden, w_hh + 2 * width * hidden, layout.panels(), gates, columns});
  }

  void apply(const T *gates, const T *h, T *c, T *to) {
    switch (job.cell) {
      case LSTM: return lstm_step(gates, layout.width, job.hidden, c, to);
      case GRU: return gru_step(gates, layout.width, job.hidden, h, to);
      case GRU_RESET_FIRST: return gru_reset_first_step(gates, layout.width, job.hidden, h, to);
      default: return rnn_step(gates, job.hidden, job.cell == RNN_RELU, to);
    }
  }
};

template <class T>
void run(const Recurrence &job, const int64_t *sequences, int64_t num_sequences, void *scratch, const void **rows) {
  Run<T>(job, sequences, num_sequences, static_cast<T *>(scratch), reinterpret_cast<const T **>(rows)).run();
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
