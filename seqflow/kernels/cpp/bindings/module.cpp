// The extension: settings, and the bindings of each family of kernels.
#include "bindings/numpy.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/result_memory.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

void set_isa(const char *name) {
  if (!select_instruction_set(name)) {
    PyErr_Format(PyExc_RuntimeError, "there are no kernels with instruction set %s", name);
    throw nb::python_error();
  }
}

nb::list names(bool (*is_in)(int)) {
  nb::list found;
  for (int i = 0; i < NUM_INSTRUCTION_SETS; ++i)
    if (is_in(i)) found.append(INSTRUCTION_SETS[i]);
  return found;
}

}  // namespace
}  // namespace seqflow

NB_MODULE(_native, module) {
  using namespace seqflow;
  numpy::check_version();
  translate_faults();
  module.def("isa", selected_instruction_set);
  module.def("isas", [] { return names(is_available); });
  module.def("compiled_isas", [] { return names(is_compiled); });
  module.def("set_isa", set_isa);
  module.def("set_num_threads", set_num_threads);
  module.def("num_threads", num_threads);
  module.def("enter_single_thread", enter_single_thread);
  module.def("leave_single_thread", leave_single_thread);
  module.def("kept_bytes", kept_bytes);
  module.def("empty_bytes", empty_bytes);
  module.def("set_kept_limit", set_kept_limit);
  bind_attention(module);
  bind_bucketing(module);
  bind_chunks(module);
  bind_discounting(module);
  bind_distinct(module);
  bind_footers(module);
  bind_groups(module);
  bind_hashing(module);
  bind_lengths(module);
  bind_line_columns(module);
  bind_lines(module);
  bind_matching(module);
  bind_matrices(module);
  bind_moves(module);
  bind_ordering(module);
  bind_packing(module);
  bind_padding(module);
  bind_quantized(module);
  bind_recurrent(module);
  bind_reductions(module);
  bind_scans(module);
  bind_sharing(module);
  bind_softmax(module);
  bind_spreading(module);
  bind_tensors(module);
  bind_vocabulary(module);
}
