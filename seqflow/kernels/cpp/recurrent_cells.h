// Recurrent cells (reference/recurrent.py says what they are): the steps of some sequences, longest first.
//
// What x gives to the gates of a few steps is one product with w_ih; each step then adds its product with w_hh and
// applies the cell. Gates have columns of their own, filled up to whole panels:
//
//   LSTM            i f g o        x and h go into all of them
//   GRU             n r z m        x goes into n r z, h into r z m; the new gate is tanh(n + sigmoid(r) * m)
//   GRU_RESET_FIRST n r z          x goes into n r z, h into r z, then sigmoid(r) * h into n
//   RNN             n
#pragma once

#include "activations.h"
#include "recurrent.h"
#include "rows_by_panels.h"

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
  T *w_ih, *w_hh, *bias;  // packed
  int64_t size;

  explicit Layout(const Recurrence &job)
      : width((job.hidden + PANEL<T> - 1) / PANEL<T> * PANEL<T>),
        columns(NUM_GATE_COLUMNS[job.cell] * width),
        gates(NUM_GATES[job.cell]),
        w_ih(static_cast<T *>(job.packed)),
        w_hh(w_ih + gates * width * job.inputs),
        bias(w_hh + gates * width * job.hidden),
        size(gates * width * (job.inputs + job.hidden) + columns) {}
};

// Rows [first, first + hidden) of weights[gates * hidden, depth] as panels; columns without a row are 0.
template <class T>
T *pack_gate(const T *weights, int64_t first, int64_t hidden, int64_t depth, T *panels) {
  for (int64_t column = 0; column < hidden; column += PANEL<T>, panels += depth * PANEL<T>) {
    const int64_t filled = hidden - column < PANEL<T> ? hidden - column : PANEL<T>;
    const T *rows = weights + (first + column) * depth;
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
  const bool gru = is_gru(job.cell);
  T *ih = layout.w_ih, *hh = layout.w_hh;
  for (int64_t i = 0; i < layout.columns; ++i) layout.bias[i] = 0;
  for (int64_t gate = 0; gate < layout.gates; ++gate) {
    const int64_t source = gru ? (gate + 2) % 3 : gate;  // r z n becomes n r z for x
    T *bias = layout.bias + gate * layout.width;
    ih = pack_gate(static_cast<const T *>(job.w_ih), source * job.hidden, job.hidden, job.inputs, ih);
    hh = pack_gate(static_cast<const T *>(job.w_hh), gate * job.hidden, job.hidden, job.hidden, hh);
    add_bias(job.bias_ih, source, job.hidden, bias);
    if (job.cell == GRU && gate == 0) bias = layout.bias + 3 * layout.width;
    add_bias(job.bias_hh, source, job.hidden, bias);
  }
}

// Some columns of a row of hidden elements; those beyond the end read 0 and are not written.
template <class T>
struct Columns {
  int64_t at, count;
  bool whole() const { return count >= LANES<T>; }
  Vector<T, LANES<T>> of(const T *row) const {
    return whole() ? load<T, T, LANES<T>>(row + at) : load_some<T, T, LANES<T>>(row + at, count);
  }
  void put(T *row, Vector<T, LANES<T>> lanes) const {
    if (whole())
      store<T, LANES<T>>(row + at, lanes);
    else
      store_some<T, LANES<T>>(row + at, lanes, count);
  }
};

// One step of one sequence: gates of `width` columns each; h is the state before, `to` gets the one after.
template <class T, class F>
inline void for_columns(int64_t hidden, F body) {
  for (int64_t at = 0; at < hidden; at += LANES<T>) body(Columns<T>{at, hidden - at});
}

template <class T>
void lstm_step(const T *gates, int64_t width, int64_t hidden, T *c, T *to) {
  constexpr int N = LANES<T>;
  for_columns<T>(hidden, [&](Columns<T> columns) {
    const T *gate = gates + columns.at;
    const Vector<T, N> i = inverse_sigmoid<T, N>(load<T, T, N>(gate));
    const Vector<T, N> f = sigmoid<T, N>(load<T, T, N>(gate + width));
    const Vector<T, N> g = tanh_numerator<T, N>(load<T, T, N>(gate + 2 * width));
    const Vector<T, N> o = inverse_sigmoid<T, N>(load<T, T, N>(gate + 3 * width));
    const Vector<T, N> state = f * load<T, T, N>(c + columns.at) + g / ((g + T(2)) * i);
    store<T, N>(c + columns.at, state);
    const Vector<T, N> m = tanh_numerator<T, N>(state);
    columns.put(to, m / ((m + T(2)) * o));
  });
}

template <class T>
void gru_step(const T *gates, int64_t width, int64_t hidden, const T *h, T *to) {
  constexpr int N = LANES<T>;
  for_columns<T>(hidden, [&](Columns<T> columns) {
    const T *gate = gates + columns.at;
    const Vector<T, N> r = sigmoid<T, N>(load<T, T, N>(gate + width));
    const Vector<T, N> z = sigmoid<T, N>(load<T, T, N>(gate + 2 * width));
    const Vector<T, N> n = tanh<T, N>(load<T, T, N>(gate) + r * load<T, T, N>(gate + 3 * width));
    columns.put(to, n + z * (columns.of(h) - n));
  });
}

template <class T>
void gru_reset(const T *gates, int64_t width, int64_t hidden, const T *h, T *reset) {
  constexpr int N = LANES<T>;
  for_columns<T>(hidden, [&](Columns<T> columns) {
    const Vector<T, N> r = sigmoid<T, N>(load<T, T, N>(gates + width + columns.at));
    store<T, N>(reset + columns.at, r * columns.of(h));
  });
}

template <class T>
void gru_reset_first_step(const T *gates, int64_t width, int64_t hidden, const T *h, T *to) {
  constexpr int N = LANES<T>;
  for_columns<T>(hidden, [&](Columns<T> columns) {
    const Vector<T, N> z = sigmoid<T, N>(load<T, T, N>(gates + 2 * width + columns.at));
    const Vector<T, N> n = tanh<T, N>(load<T, T, N>(gates + columns.at));
    columns.put(to, n + z * (columns.of(h) - n));
  });
}

template <class T>
void rnn_step(const T *gates, int64_t hidden, bool relu, T *to) {
  constexpr int N = LANES<T>;
  for_columns<T>(hidden, [&](Columns<T> columns) {
    const Vector<T, N> n = load<T, T, N>(gates + columns.at);
    columns.put(to, relu ? (n < T(0) ? Vector<T, N>{} : n) : tanh<T, N>(n));
  });
}

// The state of a run over some sequences; all memory is the caller's.
template <class T>
struct Run {
  const Recurrence &job;
  const Layout<T> layout;
  const int64_t *sequences;
  const int64_t num_sequences;
  const T **h;         // [num_sequences]: the last state of each, a row of job.h, job.h0 or zeros
  const T **x;         // [rows at once]
  T *zeros;            // [width]
  T *c;                // [num_sequences, width]: LSTM
  const T **resets;    // [num_sequences]: GRU_RESET_FIRST, the rows of
  T *reset;            // [num_sequences, width]
  T *gates;            // [rows at once, columns]

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
    for (int64_t k = 0; k < layout.width; ++k) zeros[k] = 0;
    const T *h0 = static_cast<const T *>(job.h0), *c0 = static_cast<const T *>(job.c0);
    for (int64_t i = 0; i < num_sequences; ++i) {
      h[i] = h0 ? h0 + sequences[i] * job.hidden : zeros;
      if (job.cell == GRU_RESET_FIRST) resets[i] = reset + i * layout.width;
      if (job.cell != LSTM) continue;
      T *to = c + i * layout.width;
      for (int64_t k = 0; k < layout.width; ++k)
        to[k] = c0 && k < job.hidden ? c0[sequences[i] * job.hidden + k] : T(0);
    }
  }

  void finish() {
    for (int64_t i = 0; i < num_sequences; ++i) {
      const int64_t at = sequences[i] * job.hidden, bytes = job.hidden * sizeof(T);
      memcpy(static_cast<T *>(job.h_last) + at, h[i], bytes);
      if (job.cell == LSTM) memcpy(static_cast<T *>(job.c_last) + at, c + i * layout.width, bytes);
    }
  }

  void run() {
    start();
    int64_t first = 0, count = alive(num_sequences, 0);
    while (count > 0) {
      const int64_t end = read(first, count);
      T *at = gates;
      for (; first < end; ++first) {
        count = alive(count, first);
        step(first, count, at);
        at += count * layout.columns;
      }
      count = alive(count, first);
    }
    finish();
  }

  // What x gives to the gates of steps [first, the result).
  int64_t read(int64_t first, int64_t count) {
    int64_t num_rows = 0, step = first;
    for (; count > 0 && (num_rows == 0 || num_rows + count <= ROWS_AT_ONCE); count = alive(count, ++step))
      for (int64_t i = 0; i < count; ++i)
        x[num_rows++] = static_cast<const T *>(job.x) + row(i, step) * job.inputs;
    for (int64_t i = 0; i < num_rows; ++i)
      memcpy(gates + i * layout.columns, layout.bias, layout.columns * sizeof(T));
    const int64_t num_panels = layout.gates * layout.width / PANEL<T>;
    multiply<T>({x, num_rows, job.inputs, layout.w_ih, num_panels, gates, layout.columns});
    return step;
  }

  void step(int64_t step, int64_t count, T *gates) {
    const int64_t width = layout.width, panels = width / PANEL<T>, columns = layout.columns, hidden = job.hidden;
    const bool gru = is_gru(job.cell);
    const int64_t num_gates = job.cell == GRU_RESET_FIRST ? 2 : layout.gates;
    multiply<T>({h, count, hidden, layout.w_hh, num_gates * panels, gates + (gru ? width : 0), columns});
    if (job.cell == GRU_RESET_FIRST) {
      for (int64_t i = 0; i < count; ++i) gru_reset(gates + i * columns, width, hidden, h[i], reset + i * width);
      const T *weights = layout.w_hh + 2 * width * hidden;
      multiply<T>({resets, count, hidden, weights, panels, gates, columns});
    }
    for (int64_t i = 0; i < count; ++i) {
      T *to = static_cast<T *>(job.h) + row(i, step) * hidden;
      apply(gates + i * columns, h[i], c + i * width, to);
      h[i] = to;
    }
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

inline int64_t rows_at_once(int64_t num_sequences) {
  return num_sequences > ROWS_AT_ONCE ? num_sequences : ROWS_AT_ONCE;
}

template <class T>
RecurrentSizes sizes(const Recurrence &job, int64_t num_sequences) {
  const Layout<T> layout(job);
  const int64_t states = job.cell == LSTM || job.cell == GRU_RESET_FIRST ? num_sequences : 0;
  return {layout.size, (1 + states) * layout.width + rows_at_once(num_sequences) * layout.columns};
}

template <class T>
void run(const Recurrence &job, const int64_t *sequences, int64_t num_sequences, void *scratch, const void **rows) {
  const Layout<T> layout(job);
  T *zeros = static_cast<T *>(scratch), *states = zeros + layout.width;
  const bool has_states = job.cell == LSTM || job.cell == GRU_RESET_FIRST;
  T *gates = has_states ? states + num_sequences * layout.width : states;
  const T **h = reinterpret_cast<const T **>(rows), **resets = h + num_sequences;
  Run<T>{job, layout, sequences, num_sequences, h, resets + num_sequences, zeros, states, resets, states, gates}
      .run();
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
