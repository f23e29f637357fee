#include "text/chat/filters.h"

#include <algorithm>

#include "base/quoted.h"
#include "text/chat/filter_functions.h"

namespace transept::jinja {
namespace {

constexpr Filter kFilters[] = {
    {"abs", filter::abs},
    {"attr", filter::attr},
    {"capitalize", filter::capitalize},
    {"count", filter::length, true},
    {"d", filter::default_value, true},
    {"default", filter::default_value, true},
    {"dictsort", filter::dictsort},
    {"first", filter::first},
    {"float", filter::float_value},
    {"format", filter::format},
    {"indent", filter::indent},
    {"int", filter::int_value},
    {"items", filter::items},
    {"join", filter::join, true},
    {"last", filter::last},
    {"length", filter::length, true},
    {"list", filter::list, true},
    {"lower", filter::lower},
    {"map", filter::map, true},
    {"max", filter::max},
    {"min", filter::min},
    {"reject", filter::reject, true},
    {"rejectattr", filter::rejectattr, true},
    {"replace", filter::replace, true},
    {"reverse", filter::reverse},
    {"round", filter::round},
    {"safe", filter::safe, true},
    {"select", filter::select, true},
    {"selectattr", filter::selectattr, true},
    {"sort", filter::sort, true},
    {"string", filter::string, true},
    {"sum", filter::sum},
    {"title", filter::title},
    {"tojson", filter::tojson, true},
    {"trim", filter::trim, true},
    {"unique", filter::unique},
    {"upper", filter::upper},
};

constexpr std::string_view kOthersOfJinja[] = {
    "batch", "center",    "e",        "escape",    "filesizeformat", "forceescape", "groupby",  "pprint", "random",
    "slice", "striptags", "truncate", "urlencode", "urlize",         "wordcount",   "wordwrap", "xmlattr"};

}  // namespace

const Filter* find_filter(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

bool is_filter_of_jinja(std::string_view name) {
  return find_filter(name) != nullptr ||
         std::find(std::begin(kOthersOfJinja), std::end(kOthersOfJinja), name) != std::end(kOthersOfJinja);
}

Status unknown_filter(std::string_view name) {
  return is_filter_of_jinja(name) ? unimplemented("the filter ", in_quotes(name), " is not supported")
                                  : invalid_argument("there is no filter ", in_quotes(name));
}

StatusOr<Value> apply_filter(Heap& heap, const Filter& filter, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(heap.charge());
  if (value.is(Kind::kText) && value.text->safe && !filter.takes_safe) {
    return unimplemented("the filter ", in_quotes(filter.name), " of a text that `safe` made is not supported");
  }
  return filter.apply(heap, value, arguments);
}

}  // namespace transept::jinja
