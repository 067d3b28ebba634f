// The loops of one unit for one instruction set: the compiler's command includes its families (instruction_set.h).
