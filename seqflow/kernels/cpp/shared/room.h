// Memory for the intermediate results of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace seqflow {

// Memory that nothing has been written to; on Linux in large pages where it is large.
template <class T>
class Room {
 public:
  explicit Room(int64_t size) {
    const size_t bytes = std::max<size_t>(static_cast<size_t>(size) * sizeof(T), 1);
#if defined(__linux__)
    constexpr size_t PAGE = 1 << 21;
    void *const found =
        bytes < PAGE ? std::malloc(bytes) : std::aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (found != nullptr && bytes >= PAGE) madvise(found, bytes, MADV_HUGEPAGE);
#else
    void *const found = std::malloc(bytes);
#endif
    if (found == nullptr) throw std::bad_alloc();
    memory = static_cast<T *>(found);
  }
  ~Room() { std::free(memory); }
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;
  T &operator[](int64_t i) { return memory[i]; }
  const T &operator[](int64_t i) const { return memory[i]; }
  T *data() { return memory; }

 private:
  T *memory;
};

}  // namespace seqflow
