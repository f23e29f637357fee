#include "text/chat/arguments.h"

#include <algorithm>

#include "base/quoted.h"

namespace transept::jinja {

StatusOr<std::vector<Value>> bind(std::string_view function, const Arguments& arguments,
                                  std::initializer_list<Parameter> parameters) {
  if (arguments.places.size() > parameters.size()) {
    return invalid_argument(function, " takes at most ", parameters.size(), " arguments, not ",
                            arguments.places.size());
  }
  std::vector<Value> bound = arguments.places;
  bound.resize(parameters.size());
  for (const auto& [name, value] : arguments.names) {
    const auto* const found =
        std::find_if(parameters.begin(), parameters.end(),
                     [&, wanted = name](const Parameter& p) { return !p.name.empty() && p.name == wanted; });
    if (found == parameters.end()) return invalid_argument(function, " has no argument ", in_quotes(name));
    Value& place = bound[static_cast<size_t>(found - parameters.begin())];
    if (!place.missing()) return invalid_argument(function, " has two values for the argument ", in_quotes(name));
    place = value;
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    const Parameter& parameter = *(parameters.begin() + i);
    if (parameter.required && bound[i].missing()) {
      return invalid_argument(function, " needs the argument ",
                              parameter.name.empty() ? str_cat(i + 1) : in_quotes(parameter.name));
    }
  }
  return bound;
}

StatusOr<int64_t> integer_or(const Value& value, int64_t fallback, std::string_view what) {
  if (value.missing()) return fallback;
  if (value.is(Kind::kBigInt)) return unimplemented(what, " beyond 64 bits is not supported");
  if (!value.is_integral()) return invalid_argument(what, " must be an integer, not ", type_name(value));
  return value.integer;
}

StatusOr<std::string_view> text_of(const Value& value, std::string_view what) {
  if (!value.is(Kind::kText)) return invalid_argument(what, " must be a str, not ", type_name(value));
  return value.text->view;
}

}  // namespace transept::jinja
