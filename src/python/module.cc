// transept._core: what the faces of python/transept are made of. Not for programs; its functions change without notice.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "python/handles.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace transept::python;  // NOLINT: the module's own
  nb::set_leak_warnings(false);      // models that live until the process ends are no news
  module.attr("STREAM") = static_cast<unsigned>(TRANSEPT_REQUEST_STREAM);
  module.attr("SCORE") = static_cast<unsigned>(TRANSEPT_REQUEST_SCORE);
  module.attr("ENCODER_OUTPUT") = static_cast<unsigned>(TRANSEPT_REQUEST_ENCODER_OUTPUT);
  module.def("version", [] { return std::string(transept::version()); });
  module.def(
      "set_log_level",
      [](std::int32_t level) {
        transept::detail::call(transept_log_set, level, static_cast<transept_log_fn>(nullptr),
                               static_cast<void*>(nullptr));
      },
      nb::arg("level"));
  define_errors();
  define_results(module);
  define_streams(module);
  define_transcriptions(module);
  define_models(module);
}
