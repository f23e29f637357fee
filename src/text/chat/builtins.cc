#include "text/chat/builtins.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "base/quoted.h"
#include "base/utf8.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

struct NamedFunction {
  std::string_view name;
  Function function;
};
constexpr NamedFunction kFunctions[] = {
    {"range", Function::kRange},
    {"dict", Function::kDict},
    {"namespace", Function::kNamespace},
    {"raise_exception", Function::kRaiseException},
    {"strftime_now", Function::kStrftimeNow},
    {"cycler", Function::kUnsupported},
    {"joiner", Function::kUnsupported},
    {"lipsum", Function::kUnsupported},
};

StatusOr<Value> make_range(Heap& heap, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("range", arguments, {{"", true}, {""}, {""}}));
  Range& range = heap.make<Range>();
  const bool has_start = !bound[1].missing();
  if (has_start) {
    ASSIGN_OR_RETURN(range.start, integer_or(bound[0], 0, "an argument of range"));
  }
  ASSIGN_OR_RETURN(range.stop, integer_or(bound[has_start ? 1 : 0], 0, "an argument of range"));
  ASSIGN_OR_RETURN(range.step, integer_or(bound[2], 1, "an argument of range"));
  if (range.step == 0) return invalid_argument("the step of range is 0");
  const bool up = range.step > 0;
  const int64_t low = up ? range.start : range.stop;
  const int64_t high = up ? range.stop : range.start;
  // Unsigned: the difference of two numbers of 64 bits, and the size of the least of them.
  const uint64_t step = up ? static_cast<uint64_t>(range.step) : uint64_t{0} - static_cast<uint64_t>(range.step);
  const uint64_t span = low < high ? static_cast<uint64_t>(high) - static_cast<uint64_t>(low) : 0;
  const uint64_t length = span == 0 ? 0 : (span - 1) / step + 1;
  if (length > kMaxRange) return invalid_argument("a range has more than ", kMaxRange, " numbers");
  range.length = static_cast<int64_t>(length);
  return point_to<const Range*>(Kind::kRange, &Value::range, &range);
}

Status add_pairs(Heap& heap, const Value& from, Dict& out) {
  ASSIGN_OR_RETURN(const std::vector<Value> pairs, items_of(heap, from));
  for (const Value& pair : pairs) {
    ASSIGN_OR_RETURN(const std::vector<Value> both, items_of(heap, pair));
    if (both.size() != 2) return invalid_argument("dict needs pairs");
    RETURN_IF_ERROR(set_key(heap, out, both[0], both[1]));
  }
  return ok_status();
}

// dict(mapping or pairs, **names).
StatusOr<Dict*> make_dict(Heap& heap, const Arguments& arguments) {
  Dict& made = *heap.dict({}).dict;
  if (arguments.places.size() > 1) return invalid_argument("dict takes at most one argument");
  if (!arguments.places.empty() && arguments.places[0].is(Kind::kDict)) {
    const Dict& from = *arguments.places[0].dict;
    RETURN_IF_ERROR(heap.charge(static_cast<int64_t>(from.items.size())));
    made.items = from.items;
  } else if (!arguments.places.empty()) {
    RETURN_IF_ERROR(add_pairs(heap, arguments.places[0], made));
  }
  for (const auto& [name, value] : arguments.names) {
    RETURN_IF_ERROR(set_key(heap, made, heap.text(std::string(name)), value));
  }
  return &made;
}

StatusOr<Value> make_namespace(Heap& heap, const Arguments& arguments) {
  ASSIGN_OR_RETURN(Dict* const members, make_dict(heap, arguments));
  for (const auto& [name, value] : members->items) {
    if (name.is(Kind::kText) && name.text->view.starts_with('_')) {
      return invalid_argument("a namespace cannot have the member ", in_quotes(name.text->view));
    }
  }
  return point_to(Kind::kNamespace, &Value::dict, members);
}

StatusOr<Value> format_time(Heap& heap, std::string_view format, std::chrono::system_clock::time_point now) {
  constexpr size_t kMaxFormatBytes = 1000;
  if (format.size() > kMaxFormatBytes || format.find('\0') != std::string_view::npos) {
    return unimplemented("such a format of strftime_now is not supported");
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now - seconds).count();
  std::string pattern;  // with what Python formats itself: the time has no zone, so %z and %Z are empty
  for (size_t i = 0; i < format.size(); ++i) {
    const char letter = format[i] == '%' && i + 1 < format.size() ? format[i + 1] : '\0';
    if (letter == 'f') {
      const std::string digits = str_cat(microseconds);
      pattern += std::string(6 - std::min<size_t>(digits.size(), 6), '0') + digits;
    } else if (letter != 'z' && letter != 'Z') {
      pattern += format[i];
      if (letter != '\0') pattern += letter;
    }
    if (letter != '\0') ++i;
  }
  if (pattern.empty()) return heap.text("");
  const std::time_t time = std::chrono::system_clock::to_time_t(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 16 * kMaxFormatBytes> text{};
  const size_t size = std::strftime(text.data(), text.size(), pattern.c_str(), &local);
  return heap.text(sanitize_utf8(std::string_view(text.data(), size)));
}

}  // namespace

std::optional<Function> find_function(std::string_view name) {
  for (const NamedFunction& candidate : kFunctions) {
    if (candidate.name == name) return candidate.function;
  }
  return std::nullopt;
}

StatusOr<Value> call_function(Heap& heap, Function function, const Arguments& arguments,
                              std::chrono::system_clock::time_point now) {
  switch (function) {
    case Function::kRange: return make_range(heap, arguments);
    case Function::kDict: {
      ASSIGN_OR_RETURN(Dict* const made, make_dict(heap, arguments));
      return point_to(Kind::kDict, &Value::dict, made);
    }
    case Function::kNamespace: return make_namespace(heap, arguments);
    case Function::kRaiseException: {
      ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("raise_exception", arguments, {{"message", true}}));
      ASSIGN_OR_RETURN(const std::string message, to_string(heap, bound[0]));
      constexpr size_t kMaxMessageBytes = 2000;
      return invalid_argument(sanitize_utf8(std::string_view(message).substr(0, kMaxMessageBytes)));
    }
    case Function::kStrftimeNow: {
      ASSIGN_OR_RETURN(const std::vector<Value> bound, bind("strftime_now", arguments, {{"format", true}}));
      ASSIGN_OR_RETURN(const std::string_view format, text_of(bound[0], "the format of strftime_now"));
      return format_time(heap, format, now);
    }
    case Function::kUnsupported: break;
  }
  return unimplemented("this function of Jinja is not supported");
}

}  // namespace transept::jinja
