// Splits segments among threads, in ranges with about equally many elements.
#pragma once

#include <algorithm>

#include "shared/checks.h"
#include "shared/threads.h"

namespace seqflow {

// Call `body(begin, end)` for ranges of segments that together are all of them. `work` is about how many bytes could
// be copied in the time it takes.
template <class F>
void parallel_segments(const Numbers &offsets, int64_t columns, int64_t work, F &&body) {
  constexpr int64_t elements_per_task = 1 << 15;
  const int64_t num_segments = offsets.size - 1, total = offsets[num_segments];
  if (usable_threads() == 1) {
    if (num_segments > 0) body(int64_t{0}, num_segments);
    return;
  }
  const int64_t step = std::max<int64_t>(1, elements_per_task / std::max<int64_t>(1, columns));
  const int64_t num_tasks = std::max<int64_t>(1, (total + step - 1) / step);
  const auto first_from = [&](int64_t task) {
    if (task == num_tasks) return num_segments;
    return std::lower_bound(offsets.data(), offsets.data() + num_segments, task * step) - offsets.data();
  };
  parallel_for(num_tasks, work, [&](int64_t task) {
    const int64_t begin = first_from(task), end = first_from(task + 1);
    if (begin < end) body(begin, end);
  });
}

// A segment of more than LONG elements is shared by threads, in pieces that depend on its length alone: results have the
// same bits on any number of threads.
constexpr int64_t LONG = 1 << 18, PIECE = 1 << 16;

inline int64_t piece_rows(int64_t columns) { return std::max<int64_t>(1, PIECE / columns); }
inline bool is_long(int64_t size, int64_t columns) { return size > LONG / columns && size > 1; }

// Call `body(first, last)` for runs of segments in [begin, end) that are not shared.
template <class Test, class F>
void others_of(int64_t begin, int64_t end, const Test &is_shared, const F &body) {
  for (int64_t first = begin, last; first < end; first = last) {
    last = first + 1;
    if (is_shared(first)) continue;
    while (last < end && !is_shared(last)) ++last;
    body(first, last);
  }
}

// Call `body(piece, from, to)` for the pieces of rows [first, last).
template <class F>
void parallel_pieces(int64_t first, int64_t last, int64_t columns, int64_t work, F &&body) {
  const int64_t step = piece_rows(columns);
  parallel_for((last - first + step - 1) / step, work, [&](int64_t piece) {
    const int64_t from = first + piece * step;
    body(piece, from, std::min(from + step, last));
  });
}

}  // namespace seqflow
