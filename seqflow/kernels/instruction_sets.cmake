# Instruction sets by name, their flags, and which of them this processor has. A new one also goes into processor.h.
set(SEQFLOW_FLAGS_baseline "")
set(SEQFLOW_FLAGS_avx2 -march=x86-64-v3)
set(SEQFLOW_FLAGS_avx512 -march=x86-64-v4)

# The names of the sets that this compiler can compile for this target, in ascending order.
function(seqflow_possible_isas result)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS ${SEQFLOW_FLAGS_avx512}) # GCC before 11 and Clang before 12 don't know the levels
  check_cxx_source_compiles("#if !defined(__x86_64__)\n#error\n#endif\nint main() { return 0; }" SEQFLOW_HAS_LEVELS)
  set(found baseline)
  if(SEQFLOW_HAS_LEVELS)
    list(APPEND found avx2 avx512)
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The best set of the machine that compiles. Asked each time: a build folder may have come from another one.
function(seqflow_native_isa result)
  file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E ${CMAKE_BINARY_DIR}/empty.cpp
    OUTPUT_VARIABLE macros
    ERROR_QUIET)
  set(${result} baseline PARENT_SCOPE)
  if(macros MATCHES "__AVX2__" AND macros MATCHES "__F16C__" AND macros MATCHES "__LZCNT__")
    set(${result} avx2 PARENT_SCOPE)
    if(macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
      set(${result} avx512 PARENT_SCOPE)
    endif()
  endif()
endfunction()

# What SEQFLOW_ISAS asks for, as names of sets.
function(seqflow_resolve_isas requested result)
  seqflow_possible_isas(possible)
  string(REGEX REPLACE "[ ,]+" ";" names "${requested}")
  set(found baseline)
  foreach(name IN LISTS names)
    if(name STREQUAL "native")
      seqflow_native_isa(name)
    endif()
    if(name STREQUAL "all")
      set(found ${possible})
    elseif(name IN_LIST possible)
      list(APPEND found ${name})
    else()
      list(JOIN possible ", " valid)
      message(FATAL_ERROR "SEQFLOW_ISAS=${requested}: there is no instruction set ${name} for this compiler and "
                          "processor type; there are native, all, ${valid}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()
