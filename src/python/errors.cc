// Failed calls as Python exceptions: transept.errors has the classes, one a code.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "python/handles.h"

namespace nb = nanobind;

namespace transept::python {
namespace {

// Raises errors.of_code(name, message, field). Falls back to RuntimeError where that module cannot be imported.
void raise(const transept::Error& error) {
  try {
    const nb::object make = nb::module_::import_("transept.errors").attr("of_code");
    const nb::object exception =
        make(transept_code_name(error.code()), nb::str(error.what()), nb::str(error.field().c_str()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

}  // namespace

void define_errors() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const transept::Error& error) {
      raise(error);
    }
  });
}

}  // namespace transept::python
