#include "shared/result_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

// Sanitizers must see where the memory of an array ends.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SEQFLOW_KEEPS_MEMORY
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace seqflow {

#if !defined(SEQFLOW_KEEPS_MEMORY)

ResultMemory::ResultMemory(int64_t) : before(nullptr) {}
ResultMemory::~ResultMemory() {}
int64_t kept_bytes() { return 0; }
void set_kept_limit(int64_t) {}

#else

namespace {

constexpr size_t MANY = 1 << 20;     // bytes from which an array is large
constexpr size_t PAGE = 1 << 12, LARGE_PAGE = 1 << 21;
constexpr size_t FRONT = 64;         // before the data: the size of the block
constexpr size_t MOST_BLOCKS = 256;  // so that a look for one is short
constexpr size_t RECENT_BYTES = size_t{32} << 20;  // of the latest blocks of small pages, which the system must leave

struct Block {
  char *start;
  size_t size;
  bool lent = false;  // the system may take its pages
};

std::mutex guard;
std::vector<Block> kept;  // the oldest first
size_t kept_size = 0, limit = size_t{256} << 20;

void unmap(Block block) { munmap(block.start, block.size); }

// The oldest blocks go until no more than `most` bytes are kept. With the guard.
void shrink(size_t most) {
  size_t number = 0;
  for (; number < kept.size() && (kept_size > most || kept.size() - number > MOST_BLOCKS); ++number) {
    kept_size -= kept[number].size;
    unmap(kept[number]);
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(number));
}

// Let the system take the pages of all blocks but the latest of small pages. Writing to small pages again takes four times
// as long after MADV_FREE, since each is marked as written again; large pages cost nothing. With the guard.
void lend_older() {
  size_t recent = 0;
  for (size_t i = kept.size(); i-- > 0;) {
    if (kept[i].lent) continue;
    if (kept[i].size < 2 * LARGE_PAGE && (recent += kept[i].size) <= RECENT_BYTES) continue;
    madvise(kept[i].start, kept[i].size, MADV_FREE);
    kept[i].lent = true;
  }
}

// The smallest block that is kept and large enough, but not twice as large; none where there is none.
Block take(size_t size) {
  const std::lock_guard<std::mutex> held(guard);
  size_t best = kept.size();
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i].size >= size && kept[i].size / 2 < size && (best == kept.size() || kept[i].size <= kept[best].size)) best = i;
  if (best == kept.size()) return {nullptr, 0};
  const Block found = kept[best];
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(best));
  kept_size -= found.size;
  return found;
}

Block map(size_t size) {
  const bool large = size >= 2 * LARGE_PAGE;
  const size_t page = large ? LARGE_PAGE : PAGE, rounded = (size + page - 1) / page * page;
  const size_t more = large ? LARGE_PAGE : 0;
  char *start = static_cast<char *>(
      mmap(nullptr, rounded + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (start == MAP_FAILED) return {nullptr, 0};
  if (large) {
    char *const aligned = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(start) + more - 1) / more * more);
    if (aligned != start) munmap(start, static_cast<size_t>(aligned - start));
    if (const size_t behind = static_cast<size_t>(start + more - aligned)) munmap(aligned + rounded, behind);
    start = aligned;
    madvise(start, rounded, MADV_HUGEPAGE);
  }
  return {start, rounded};
}

void *allocate(void *, size_t bytes) {
  if (bytes > SIZE_MAX / 4) return nullptr;
  const size_t size = bytes + FRONT;
  Block block = take(size);
  if (!block.start) block = map(size);
  if (!block.start) {
    {
      const std::lock_guard<std::mutex> held(guard);
      shrink(0);
    }
    block = map(size);
  }
  if (!block.start) return nullptr;
  std::memcpy(block.start, &block.size, sizeof block.size);
  return block.start + FRONT;
}

Block block_of(void *data) {
  Block block = {static_cast<char *>(data) - FRONT, 0};
  std::memcpy(&block.size, block.start, sizeof block.size);
  return block;
}

void give_back(void *, void *data, size_t) {
  if (!data) return;
  const Block block = block_of(data);
  {
    const std::lock_guard<std::mutex> held(guard);
    if (block.size <= limit) {
      kept.push_back(block);
      kept_size += block.size;
      shrink(limit);
      lend_older();
      return;
    }
  }
  unmap(block);
}

void *allocate_zeros(void *, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void *const data = allocate(nullptr, bytes);
  if (data) std::memset(data, 0, bytes);
  return data;
}

void *reallocate(void *, void *data, size_t bytes) {
  if (!data) return allocate(nullptr, bytes);
  void *const other = allocate(nullptr, bytes);
  if (!other) return nullptr;
  std::memcpy(other, data, std::min(block_of(data).size - FRONT, bytes));
  give_back(nullptr, data, bytes);
  return other;
}

// NumPy's own interface for such memory (NEP 49), as it is in its header ndarraytypes.h.
struct Allocator {
  void *context;
  void *(*malloc)(void *, size_t);
  void *(*calloc)(void *, size_t, size_t);
  void *(*realloc)(void *, void *, size_t);
  void (*free)(void *, void *, size_t);
};

struct Handler {
  char name[127];
  uint8_t version;
  Allocator allocator;
};

Handler handler = {"seqflow", 1, {nullptr, allocate, allocate_zeros, reallocate, give_back}};

using SetHandler = PyObject *(*)(PyObject *);

// PyDataMem_SetHandler: number 304 of the functions that NumPy exports, since 1.22.
SetHandler find_set_handler() {
  nb::object api = nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
  void *const table = PyCapsule_GetPointer(api.ptr(), nullptr);
  if (!table) throw nb::python_error();
  return reinterpret_cast<SetHandler>(static_cast<void **>(table)[304]);
}

// A child has no other threads: whoever holds the guard is gone.
void own_guard() { guard.lock(); }
void leave_guard() { guard.unlock(); }

PyObject *make_capsule() {
  pthread_atfork(own_guard, leave_guard, leave_guard);
  PyObject *const capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  if (!capsule) throw nb::python_error();
  return capsule;
}

PyObject *set_handler(PyObject *which) {
  static const SetHandler set = find_set_handler();
  PyObject *const before = set(which);
  if (!before) throw nb::python_error();
  return before;
}

}  // namespace

ResultMemory::ResultMemory(int64_t bytes) : before(nullptr) {
  if (bytes < static_cast<int64_t>(MANY)) return;
  static PyObject *const capsule = make_capsule();
  before = set_handler(capsule);
}

ResultMemory::~ResultMemory() {
  if (!before) return;
  PyObject *type, *value, *trace;  // of an array that could not be made
  PyErr_Fetch(&type, &value, &trace);
  Py_XDECREF(set_handler(before));
  Py_DECREF(before);
  PyErr_Restore(type, value, trace);
}

int64_t kept_bytes() {
  const std::lock_guard<std::mutex> held(guard);
  return static_cast<int64_t>(kept_size);
}

void set_kept_limit(int64_t bytes) {
  const std::lock_guard<std::mutex> held(guard);
  limit = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  shrink(limit);
}

#endif

}  // namespace seqflow
