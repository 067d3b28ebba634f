// What the kernels of recurrent cells of one instruction set offer. No std templates here, as in kernels.h.
#pragma once

#include <stdint.h>

namespace seqflow {

enum Cell { LSTM, GRU, GRU_RESET_FIRST, RNN_TANH, RNN_RELU, NUM_CELLS };

// A cell to be run along sequences. Arrays of T, float or double: weights [gates * hidden, …] as PyTorch has them;
// optional ones are null.
struct Recurrence {
  Cell cell;
  bool reverse;
  int64_t inputs, hidden;
  const void *x, *w_ih, *w_hh, *bias_ih, *bias_hh, *h0, *c0;
  const int64_t *offsets;  // [number of sequences + 1], checked
  void *h, *h_last, *c_last;
  void *packed;  // for `pack` to fill
};

// How much memory is needed.
struct RecurrentSizes {
  int64_t packed;   // elements
  int64_t scratch;  // elements, by a run of so many sequences
  int64_t rows;     // pointers, by the same
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

namespace baseline { extern const RecurrentKernels recurrent_kernels; }
namespace avx2 { extern const RecurrentKernels recurrent_kernels; }
namespace avx512 { extern const RecurrentKernels recurrent_kernels; }

}  // namespace seqflow
