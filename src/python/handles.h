// A loaded model and what its functions are given and give, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "capi/transept.hpp"

namespace transept::python {

// Streams, transcriptions and encoded inputs keep it, in whichever order Python frees them.
using ModelPointer = std::shared_ptr<transept::Model>;

// An input that is encoded once, with its model.
struct EncodedInput {
  ModelPointer model;
  transept::Encoded encoded;
};

// Each defines its classes in the module.
void define_errors();
void define_results(nanobind::module_& module);
void define_streams(nanobind::module_& module);
void define_models(nanobind::module_& module);
void define_transcriptions(nanobind::module_& module);

}  // namespace transept::python
