// Compiled once for each instruction set, each time with another SEQFLOW_ISA. No std templates in here: one
// compiled for AVX-512 could be what the linker keeps for everyone.
#include "by_time.h"
#include "gather.h"
#include "packed.h"
#include "pad.h"
#include "reduce.h"
#include "slices.h"

namespace seqflow {
namespace SEQFLOW_ISA {

#define SEQFLOW_TYPES(f, kind)                                                                          \
  {f<Rule<kind, int8_t>>,  f<Rule<kind, uint8_t>>,  f<Rule<kind, int16_t>>, f<Rule<kind, uint16_t>>,    \
   f<Rule<kind, int32_t>>, f<Rule<kind, uint32_t>>, f<Rule<kind, int64_t>>, f<Rule<kind, uint64_t>>,    \
   f<Rule<kind, float>>,   f<Rule<kind, double>>}
#define SEQFLOW_KINDS(f) \
  {SEQFLOW_TYPES(f, SUM), SEQFLOW_TYPES(f, MEAN), SEQFLOW_TYPES(f, MAX), SEQFLOW_TYPES(f, MIN)}

extern const Kernels kernels = {
    SEQFLOW_KINDS(reduce_block), SEQFLOW_KINDS(combine_blocks), gather, move_slices, pad, unpad, pack_by_time,
    unpack_by_time, fill_packed, segment_ids, positions,
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
