// One step of one sequence (recurrent.py says what it is): from gates of `width` columns each, the state
// `h` before and the state `to` after it, both of `hidden` elements.
#pragma once

#include "recurrent/activations.h"
#include "recurrent/rows_by_panels.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// A vector of columns; those beyond the end of a row read 0 and are not written.
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

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
