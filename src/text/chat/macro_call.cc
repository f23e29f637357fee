#include "text/chat/macro_call.h"

#include <algorithm>

#include "base/quoted.h"

namespace transept::jinja {
namespace {

// Removes and returns the argument of a name; kMissing: there is none.
Value take(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.names.begin(), arguments.names.end(),
                                  [name](const auto& named) { return named.first == name; });
  if (found == arguments.names.end()) return Value();
  const Value value = found->second;
  arguments.names.erase(found);
  return value;
}

Value dict_of_names(Heap& heap, const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, value] : arguments.names) items.emplace_back(heap.text(std::string(name)), value);
  return heap.dict(std::move(items));
}

}  // namespace

StatusOr<Frame*> bind_macro(Heap& heap, Variables& variables, const Macro& macro, Arguments arguments) {
  const MacroDefinition& d = *macro.definition;
  RETURN_IF_ERROR(heap.charge(1 + d.num_slots / 4));
  Frame& frame = variables.make_frame(d.num_slots, macro.closure);
  const auto slot = [&frame](int index) -> Value& { return frame.slots[static_cast<size_t>(index)]; };
  const size_t num_given = std::min(arguments.places.size(), d.parameters.size());
  bool found_caller = d.names_caller && num_given == d.parameters.size();
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    const Expr& parameter = *d.parameters[i];
    found_caller |= i >= num_given && parameter.name == "caller";
    slot(parameter.slot.index) = i < num_given ? arguments.places[i] : take(arguments, parameter.name);
  }
  if (d.uses_caller && !found_caller) {
    if (d.caller_index < 0) return invalid_argument("the macro has two values for \"caller\"");
    const Value caller = take(arguments, "caller");
    const bool is_given = !caller.missing() && !caller.is(Kind::kNone);
    slot(d.caller_index) = is_given ? caller : heap.undefined_because("No caller defined");
  }
  if (d.uses_kwargs) {
    slot(d.kwargs_index) = dict_of_names(heap, arguments);
  } else if (!arguments.names.empty()) {
    return invalid_argument("the macro ", in_quotes(d.name), " takes no argument ",
                            in_quotes(arguments.names[0].first));
  }
  if (d.uses_varargs) {
    slot(d.varargs_index) =
        heap.tuple({arguments.places.begin() + static_cast<ptrdiff_t>(num_given), arguments.places.end()});
  } else if (arguments.places.size() > num_given) {
    return invalid_argument("the macro ", in_quotes(d.name), " takes at most ", d.parameters.size(), " arguments");
  }
  return &frame;
}

}  // namespace transept::jinja
