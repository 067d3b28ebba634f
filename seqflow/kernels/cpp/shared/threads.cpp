// The thread pool: one call at a time, tasks handed out one by one.
#include "shared/threads.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace seqflow {
namespace {

constexpr int64_t WORTH_SHARING = 1 << 20;  // bytes
constexpr int SPINS = 2000;
constexpr int MAX_DEFAULT_THREADS = 8;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int available_cores() {
#if defined(__linux__)
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

// Which process this is, for those that fork; Windows does not.
int64_t this_process() {
#if defined(_WIN32)
  return 0;
#else
  return getpid();
#endif
}

int default_threads() {
  const int cores = available_cores();
  return cores < MAX_DEFAULT_THREADS ? cores : MAX_DEFAULT_THREADS;
}

// One call: tasks are handed out one by one, to the caller and to those workers that join in time.
struct Job {
  Task task;
  void *context;
  int64_t count;
  std::atomic<int64_t> next{0};

  void work() {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) task(context, i);
  }
};

class Pool {
 public:
  explicit Pool(int64_t process) : process(process) {}

  const int64_t process;
  std::mutex busy;  // held by the one call that uses the pool

  void run(Job &job, int helpers) {
    grow(helpers);
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = &job;
      seats = helpers;
      round.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
    job.work();
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = nullptr;  // nobody joins any more
      seats = 0;
    }
    for (int i = 0; i < SPINS && working.load(std::memory_order_acquire) != 0; ++i) pause();
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [this] { return working.load(std::memory_order_acquire) == 0; });
  }

 private:
  // Where no more threads are to be had, there are fewer.
  void grow(int helpers) try {
    for (; started < helpers; ++started) std::thread([this] { serve(); }).detach();
  } catch (const std::system_error &) {
  }

  void serve() {
    uint64_t seen = 0;
    while (true) {
      for (int i = 0; i < SPINS && round.load(std::memory_order_acquire) == seen; ++i) pause();
      Job *job;
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return round.load(std::memory_order_acquire) != seen; });
        seen = round.load(std::memory_order_acquire);
        if (seats == 0) continue;
        --seats;
        job = current;
        working.fetch_add(1, std::memory_order_acq_rel);
      }
      job->work();
      {
        std::lock_guard<std::mutex> lock(mutex);
        working.fetch_sub(1, std::memory_order_acq_rel);
      }
      done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<uint64_t> round{0};
  std::atomic<int> working{0};
  Job *current = nullptr;
  int seats = 0;
  int started = 0;
};

std::atomic<int> wanted_threads{0};
std::atomic<Pool *> shared_pool{nullptr};
thread_local int single_thread_depth = 0;

// The pool of this process. After a fork the child makes its own: the threads of the old one are gone, and so it
// is left as it is. Pools are never destroyed, since their threads may outlive everything else.
Pool &pool() {
  const int64_t process = this_process();
  Pool *found = shared_pool.load(std::memory_order_acquire);
  while (found == nullptr || found->process != process) {
    Pool *fresh = new Pool(process);
    if (shared_pool.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
  }
  return *found;
}

void run_alone(int64_t count, Task task, void *context) {
  for (int64_t i = 0; i < count; ++i) task(context, i);
}

}  // namespace

void set_num_threads(int count) { wanted_threads.store(count); }

int num_threads() {
  int count = wanted_threads.load();
  if (count == 0) wanted_threads.store(count = default_threads());
  return count;
}

void enter_single_thread() { ++single_thread_depth; }
void leave_single_thread() { --single_thread_depth; }

int usable_threads() { return single_thread_depth > 0 ? 1 : num_threads(); }

void run_tasks(int64_t count, int64_t bytes, Task task, void *context) {
  if (count < 2 || bytes < WORTH_SHARING || single_thread_depth > 0) return run_alone(count, task, context);
  const int threads = num_threads();
  if (threads < 2) return run_alone(count, task, context);
  Pool &shared = pool();
  std::unique_lock<std::mutex> lock(shared.busy, std::try_to_lock);
  if (!lock.owns_lock()) return run_alone(count, task, context);
  Job job{task, context, count};
  shared.run(job, static_cast<int>(threads - 1 < count - 1 ? threads - 1 : count - 1));
}

}  // namespace seqflow
