// Binds attention.h.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>

#include "attention/attention.h"
#include "bindings/python.h"
#include "shared/processor.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

// Tasks of some sequences, the most expensive first; those of a sequence follow one another, of all key heads in turn.
class Tasks {
 public:
  Tasks(const Attention &job, const Numbers &offsets, const Numbers &kv_offsets, bool of_keys)
      : groups(job.groups), of_keys(of_keys), order(offsets.size - 1), firsts(offsets.size) {
    const auto sizes = [&](int64_t i) {
      return std::make_pair(offsets[i + 1] - offsets[i], kv_offsets[i + 1] - kv_offsets[i]);
    };
    const auto cost = [&](int64_t i) { return double(sizes(i).first) * double(sizes(i).second); };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cost(a) > cost(b); });
    const int64_t ratio = job.heads / job.groups;
    for (size_t place = 0; place < order.size(); ++place) {
      const auto [queries, keys] = sizes(order[place]);
      items.push_back(of_keys ? keys : (queries + QUERIES - 1) / QUERIES * ratio);
      firsts[place + 1] = firsts[place] + (items[place] + step() - 1) / step() * groups;
      work += cost(order[place]) * double(job.heads) * double(job.depth + job.width);
    }
  }
  int64_t size() const { return firsts.back(); }
  // What takes as long as copying so many bytes.
  int64_t bytes() const { return static_cast<int64_t>(std::min(work / 4, 1e15)); }

  AttentionTask operator[](int64_t number) const {
    const auto place = std::upper_bound(firsts.begin(), firsts.end(), number) - firsts.begin() - 1;
    const int64_t part = number - firsts[place], first = part / groups * step();
    return {order[place], part % groups, first, std::min(first + step(), items[place])};
  }

 private:
  int64_t step() const { return of_keys ? KEYS : UNITS; }
  int64_t groups;
  bool of_keys;
  std::vector<int64_t> order, firsts, items;
  double work = 0;
};

// Memory for each thread that runs tasks.
class Scratch {
 public:
  explicit Scratch(int64_t size) : bytes(static_cast<size_t>(size) + 64), taken(usable_threads()) {
    for (size_t i = 0; i < taken.size(); ++i) memory.emplace_back(new uint8_t[bytes]);
  }
  // More threads than there were: another Python thread has just set their number.
  template <class F>
  void with(F &&body) {
    size_t mine = 0;
    while (mine < taken.size() && taken[mine].exchange(true, std::memory_order_acquire)) ++mine;
    if (mine == taken.size()) return on(std::unique_ptr<uint8_t[]>(new uint8_t[bytes]).get(), body);
    on(memory[mine].get(), body);
    taken[mine].store(false, std::memory_order_release);
  }

 private:
  template <class F>
  static void on(uint8_t *from, F &body) {
    body(from + (64 - reinterpret_cast<uintptr_t>(from) % 64) % 64);
  }
  const size_t bytes;
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  std::vector<std::atomic<bool>> taken;
};

// The data of an array of this type and shape; all others are declined.
const void *data_of(const Buffer &array, Type type, std::initializer_list<int64_t> shape) {
  if (array.type() != type || array.is_half() || array.rank() != static_cast<int>(shape.size())) decline();
  int axis = 0;
  for (const int64_t extent : shape)
    if (array.extent(axis++) != extent) decline();
  return array.data();
}

// The arguments that both kernels share.
struct Given {
  const Buffer q, k, v, lengths, kv_lengths;
  const Type type;
  Attention job = {};
  std::optional<Buffer> slopes;
  std::unique_ptr<Numbers> offsets, kv_offsets;

  Given(nb::handle q, nb::handle lengths, nb::handle k, nb::handle v, nb::handle kv_lengths, nb::handle slopes,
        nb::handle form)
      : q(q), k(k), v(v), lengths(lengths), kv_lengths(kv_lengths), type(this->q.type()) {
    if ((type != FLOAT32 && type != FLOAT64) || this->q.is_half() || this->q.rank() != 3) decline();
    for (const Buffer *one : {&this->k, &this->v})
      if (one->type() != type || one->is_half() || one->rank() != 3 || one->extent(0) != this->k.extent(0)) decline();
    job.heads = this->q.extent(1), job.groups = this->k.extent(1);
    job.depth = this->q.extent(2), job.width = this->v.extent(2);
    if (job.heads == 0 || job.groups == 0 || job.heads % job.groups != 0) decline();
    if (this->k.extent(2) != job.depth || this->v.extent(1) != job.groups) decline();
    if (this->lengths.size() != this->kv_lengths.size()) decline();
    if (!slopes.is_none()) job.slopes = data_of(this->slopes.emplace(slopes), type, {job.heads});
    job.q = this->q.data(), job.k = this->k.data(), job.v = this->v.data();
    std::tuple<double, int64_t, int64_t, bool, double> fields;
    if (!nb::try_cast(form, fields)) decline();
    std::tie(job.scale, job.before, job.after, job.from_end, job.softcap) = fields;
    const int64_t all = this->q.extent(0) + this->k.extent(0);
    if (job.before < 0 || job.after < 0) decline();
    job.before = std::min(job.before, all), job.after = std::min(job.after, all);
  }
  bool wide() const { return type == FLOAT64; }
  int64_t item() const { return wide() ? 8 : 4; }
  void read_lengths() {
    offsets = std::make_unique<Numbers>(checked_offsets(lengths.counts(), "lengths"));
    check_sum((*offsets)[offsets->size - 1], q.extent(0), "lengths", "q");
    kv_offsets = std::make_unique<Numbers>(checked_offsets(kv_lengths.counts(), "kv_lengths"));
    check_sum((*kv_offsets)[kv_offsets->size - 1], k.extent(0), "kv_lengths", "k");
    job.offsets = offsets->data(), job.kv_offsets = kv_offsets->data();
  }
};

nb::object attention_within(nb::handle q, nb::handle lengths, nb::handle k, nb::handle v, nb::handle kv_lengths,
                            nb::handle slopes, nb::handle form) {
  Given given(q, lengths, k, v, kv_lengths, slopes, form);
  Attention &job = given.job;
  const int64_t num_rows = given.q.extent(0);
  const nb::object dtype = dtype_named(given.type);
  nb::object out = empty_array({num_rows, job.heads, job.width}, given.lengths, 1, dtype);
  nb::object lse = empty_array({num_rows, job.heads}, given.lengths, 1, dtype);
  job.out = Buffer(out, NUMERIC, true).data(), job.lse = Buffer(lse, NUMERIC, true).data();
  {
    const Unlocked unlocked(given.q.bytes());
    given.read_lengths();
    const AttentionKernels &kernels = SEQFLOW_SELECTED(attention_kernels);
    const Tasks tasks(job, *given.offsets, *given.kv_offsets, false);
    Scratch scratch(product(kernels.scratch[given.wide()](job, false), given.item()));
    parallel_for(tasks.size(), tasks.bytes(), [&](int64_t number) {
      scratch.with([&](void *memory) { kernels.forward[given.wide()](job, tasks[number], memory); });
    });
  }
  return nb::make_tuple(out, lse);
}

void await(const int64_t *turn, int64_t unit) {
  while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) <= unit) std::this_thread::yield();
}

void run_backward(const Given &given, double *d_slopes) {
  const Attention &job = given.job;
  const AttentionKernels &kernels = SEQFLOW_SELECTED(attention_kernels);
  const Tasks tasks(job, *given.offsets, *given.kv_offsets, true);
  Scratch scratch(product(kernels.scratch[given.wide()](job, true), given.item()));
  const int64_t ratio = job.heads / job.groups;
  std::vector<int64_t> turns(tasks.size());
  std::vector<double> slopes(job.slopes ? product(tasks.size(), ratio) : 0);
  parallel_for(tasks.size(), tasks.bytes(), [&](int64_t number) {
    const AttentionTask task = tasks[number];
    const Turns turn = {task.first == 0 ? nullptr : &turns[number - job.groups], &turns[number],
                        job.slopes ? &slopes[number * ratio] : nullptr};
    scratch.with([&](void *memory) { kernels.backward[given.wide()](job, task, turn, memory); });
  });
  for (int64_t number = 0; job.slopes && number < tasks.size(); ++number)
    for (int64_t r = 0; r < ratio; ++r) d_slopes[tasks[number].group * ratio + r] += slopes[number * ratio + r];
}

nb::object attention_within_backward(nb::handle q, nb::handle k, nb::handle v, nb::handle out, nb::handle lse,
                                     nb::handle d_out, nb::handle d_lse, nb::handle lengths, nb::handle kv_lengths,
                                     nb::handle slopes, nb::handle form) {
  Given given(q, lengths, k, v, kv_lengths, slopes, form);
  Attention &job = given.job;
  const Type type = given.type;
  const int64_t num_rows = given.q.extent(0);
  const Buffer result(out), arriving(d_out), logs(lse), at_logs(d_lse);
  job.out = const_cast<void *>(data_of(result, type, {num_rows, job.heads, job.width}));
  job.lse = const_cast<void *>(data_of(logs, type, {num_rows, job.heads}));
  job.d_out = data_of(arriving, type, {num_rows, job.heads, job.width});
  job.d_lse = data_of(at_logs, type, {num_rows, job.heads});
  job.await = await;
  nb::object d_q = empty_array({num_rows}, given.q, 1, dtype_named(type));
  nb::object d_k = empty_array({given.k.extent(0)}, given.k, 1, dtype_named(type));
  nb::object d_v = empty_array({given.v.extent(0)}, given.v, 1, dtype_named(type));
  Buffer to_q(d_q, NUMERIC, true);
  job.d_q = to_q.data(), job.d_k = Buffer(d_k, NUMERIC, true).data(), job.d_v = Buffer(d_v, NUMERIC, true).data();
  std::vector<double> found(static_cast<size_t>(job.heads));
  {
    const Unlocked unlocked(given.q.bytes());
    given.read_lengths();
    std::memset(to_q.data(), 0, static_cast<size_t>(to_q.bytes()));
    run_backward(given, found.data());
  }
  if (!job.slopes) return nb::make_tuple(d_q, d_k, d_v, nb::none());
  nb::object d_slopes = empty_array({job.heads}, given.lengths, 1, dtype_named(FLOAT64));
  std::memcpy(Buffer(d_slopes, NUMERIC, true).data(), found.data(), found.size() * sizeof(double));
  return nb::make_tuple(d_q, d_k, d_v, cast(d_slopes, dtype_named(type)));
}

}  // namespace

void bind_attention(nb::module_ &module) {
  bind_kernel(module, "attention_within", attention_within);
  bind_kernel(module, "attention_within_backward", attention_within_backward);
}

}  // namespace seqflow
