#include <nanobind/nanobind.h>

NB_MODULE(_native, module) { module.attr("isa") = "baseline"; }
