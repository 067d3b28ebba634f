// The loops of one family for one instruction set; instruction_set.h says how.
#include SEQFLOW_FAMILY
