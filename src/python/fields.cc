#include "python/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "python/arguments.h"

namespace nb = nanobind;

namespace transept::python {
namespace {

template <typename Number>
void append_number(Number value, std::string& json) {
  char text[32];
  json.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// Whether `value` is of a kind that is written here.
bool append_value(PyObject* value, std::string& json) {
  if (value == Py_True || value == Py_False) {
    json += value == Py_True ? "true" : "false";
    return true;
  }
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) append_number(number, json);
    return overflow == 0;
  }
  const bool is_written = PyFloat_CheckExact(value) && std::isfinite(PyFloat_AsDouble(value));
  if (is_written) append_number(PyFloat_AsDouble(value), json);
  return is_written;
}

// A caller may set attributes of any name, and to_json() escapes them.
bool needs_no_escape(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
}

// As SamplingParams.to_json() has it. Of `members` it skips what is None, and what is no field of a request.
bool append_members(PyObject* members, std::string& json) {
  PyObject *name = nullptr, *value = nullptr;
  json += '{';
  for (Py_ssize_t at = 0; PyDict_Next(members, &at, &name, &value) != 0;) {
    if (value == Py_None) continue;
    const std::string_view key = utf8_of(name);
    if (key == "output_kind") continue;
    if (!needs_no_escape(key)) return false;
    if (json.size() > 1) json += ", ";
    json.append("\"").append(key).append("\": ");
    if (!append_value(value, json)) return false;
  }
  json += '}';
  return true;
}

}  // namespace

std::string fields_json(nb::handle params) {
  std::string json;
  const nb::object members = params.attr("__dict__");
  if (PyDict_CheckExact(members.ptr()) && append_members(members.ptr(), json)) return json;
  const nb::object text = params.attr("to_json")();
  return std::string(utf8_of(text));
}

}  // namespace transept::python
