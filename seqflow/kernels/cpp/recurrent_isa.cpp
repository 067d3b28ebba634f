// Compiled once for each instruction set, each time with another SEQFLOW_ISA; see instruction_set.cpp.
#include "recurrent_run.h"

namespace seqflow {
namespace SEQFLOW_ISA {

extern const RecurrentKernels recurrent_kernels = {
    {sizes<float>, sizes<double>},
    {pack<float>, pack<double>},
    {run<float>, run<double>},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
