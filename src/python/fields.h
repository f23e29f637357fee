// A request's parameters as JSON, without Python's code where they are numbers, flags and names.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace transept::python {

// Of a SamplingParams. Throws what its to_json() throws. REQUIRES: the GIL.
std::string fields_json(nanobind::handle params);

}  // namespace transept::python
