// Compiled once for each instruction set, as instruction_set.cpp is.
#include "extremes.h"
#include "ordering.h"

namespace seqflow {
namespace SEQFLOW_ISA {

#define SEQFLOW_TYPES(f)                                                                                   \
  {f<int8_t>,  f<uint8_t>,  f<int16_t>, f<uint16_t>, f<int32_t>, f<uint32_t>, f<int64_t>, f<uint64_t>, \
   f<float>,   f<double>}

extern const OrderingKernels ordering_kernels = {
    SEQFLOW_TYPES(sort_segments),
    SEQFLOW_TYPES(argsort_segments),
    SEQFLOW_TYPES(topk_segments),
    SEQFLOW_TYPES(arg_segments),
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
