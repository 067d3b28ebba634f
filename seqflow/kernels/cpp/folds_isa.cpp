// Compiled once for each instruction set, as instruction_set.cpp is.
#include "folds.h"

namespace seqflow {
namespace SEQFLOW_ISA {

#define SEQFLOW_TYPES(f)                                                                                   \
  {f<int8_t>,  f<uint8_t>,  f<int16_t>, f<uint16_t>, f<int32_t>, f<uint32_t>, f<int64_t>, f<uint64_t>, \
   f<float>,   f<double>}

extern const FoldKernels fold_kernels = {
    SEQFLOW_TYPES(cumsum_segments), SEQFLOW_TYPES(prod_segments), SEQFLOW_TYPES(variance_segments),
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
