// Recurrent cells along sequences. In NumPy: recurrent.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

enum Cell { LSTM, GRU, GRU_RESET_FIRST, RNN_TANH, RNN_RELU, NUM_CELLS };

// A cell to be run along sequences. Arrays of T, float or double: weights [gates * hidden, …] as PyTorch has them;
// optional ones are null. An LSTM's state h may be a projection of what it gives, by w_hr [states, hidden].
struct Recurrence {
  Cell cell;
  bool reverse;
  int64_t inputs, hidden, states;  // states: of h, as many as `hidden` but for a projection
  const void *x, *w_ih, *w_hh, *bias_ih, *bias_hh, *h0, *c0, *w_hr;
  const int64_t *offsets;  // [number of sequences + 1], checked
  void *h, *h_last, *c_last;
  void *packed;  // for `pack` to fill
};

// The memory that a run needs.
struct RecurrentSizes {
  int64_t packed;   // elements
  int64_t scratch;  // elements, for a given number of sequences
  int64_t rows;     // pointers, for the same number
};

// For float and for double.
struct RecurrentKernels {
  RecurrentSizes (*sizes[2])(const Recurrence &, int64_t num_sequences);
  void (*pack[2])(const Recurrence &);
  // Along some of the sequences, longest first.
  void (*run[2])(const Recurrence &, const int64_t *sequences, int64_t num_sequences, void *scratch,
                 const void **rows);
};

// Rows of x that are multiplied with w_ih in one go, unless one step alone has more.
constexpr int64_t ROWS_AT_ONCE = 64;

SEQFLOW_TABLE(RecurrentKernels, recurrent_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "recurrent/recurrent_run.h"

namespace seqflow {
namespace SEQFLOW_ISA {

extern const RecurrentKernels recurrent_kernels = {
    {sizes<float>, sizes<double>},
    {pack<float>, pack<double>},
    {run<float>, run<double>},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
