// Memory of large results, which later results take again.
//
// Memory that the system hands out for the first time costs more than what kernels write to it: each page is zeroed
// and mapped when it is touched. So blocks of results that are gone are kept, up to a limit, and the system is told
// that it may have them (MADV_FREE): what it does not need comes back as it is.
#pragma once

#include <cstdint>

#include "bindings/python.h"

namespace seqflow {

// While one is there, NumPy takes the memory of an array of so many bytes from here, where they are many.
class ResultMemory {
 public:
  explicit ResultMemory(int64_t bytes);
  ~ResultMemory();
  ResultMemory(const ResultMemory &) = delete;
  ResultMemory &operator=(const ResultMemory &) = delete;

 private:
  PyObject *before;
};

int64_t kept_bytes();
void set_kept_limit(int64_t bytes);

}  // namespace seqflow
