// Compiled once for each instruction set, as instruction_set.cpp is.
#include "softmax.h"

namespace seqflow {
namespace SEQFLOW_ISA {

extern const SoftmaxKernels softmax_kernels = {{
    {softmax<SOFTMAX, float>, softmax<SOFTMAX, double>},
    {softmax<LOG_SOFTMAX, float>, softmax<LOG_SOFTMAX, double>},
    {softmax<LOGSUMEXP, float>, softmax<LOGSUMEXP, double>},
}};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
