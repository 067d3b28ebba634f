// A small pool of threads for one call at a time; other calls meanwhile run on their own thread alone.
#pragma once

#include <cstdint>

namespace seqflow {

void set_num_threads(int count);
int num_threads();
int usable_threads();  // 1 for a thread that is inside enter_single_thread

// While a thread is inside at least once, its calls stay on it.
void enter_single_thread();
void leave_single_thread();

using Task = void (*)(void *context, int64_t task);

// Run tasks 0 .. count - 1, in any order, on several threads where `bytes` of work make it worth while.
void run_tasks(int64_t count, int64_t bytes, Task task, void *context);

template <class F>
void parallel_for(int64_t count, int64_t bytes, F &&body) {
  run_tasks(count, bytes, [](void *context, int64_t task) { (*static_cast<F *>(context))(task); }, &body);
}

// The same for [0, size) cut into ranges of about `bytes_per_task`.
template <class F>
void parallel_ranges(int64_t size, int64_t bytes, F &&body) {
  constexpr int64_t bytes_per_task = 1 << 18;
  int64_t count = bytes / bytes_per_task;
  count = count < 1 ? 1 : count > size ? size : count;
  const int64_t step = count == 0 ? 0 : (size + count - 1) / count;
  parallel_for(count, bytes, [&](int64_t task) {
    const int64_t begin = task * step, end = begin + step;
    if (begin < size) body(begin, end < size ? end : size);
  });
}

}  // namespace seqflow
