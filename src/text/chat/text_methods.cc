#include "text/chat/text_methods.h"

#include <algorithm>
#include <optional>

#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {
namespace {

using Bound = std::vector<Value>;

Value copy_of(Heap& heap, std::string_view part) { return heap.text(std::string(part)); }

StatusOr<Value> copies_of(Heap& heap, const std::vector<std::string_view>& parts) {
  RETURN_IF_ERROR(heap.charge(static_cast<int64_t>(parts.size())));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(copy_of(heap, part));
  return heap.list(std::move(items));
}

// Before a text is cut: a part takes more memory than a character.
Status charge_parts(Heap& heap, const Value& self) {
  return heap.charge(1 + static_cast<int64_t>(self.text->view.size() / 16));
}

// None or nothing: no text.
StatusOr<std::optional<std::string_view>> optional_text(const Value& value, std::string_view what) {
  if (value.missing() || value.is(Kind::kNone)) return std::optional<std::string_view>();
  ASSIGN_OR_RETURN(const std::string_view text, text_of(value, what));
  return std::optional(text);
}

// A method without arguments.
template <auto Function>
StatusOr<Value> plain(Heap& heap, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("the method", arguments, {}).status());
  RETURN_IF_ERROR(heap.charge_bytes(self.text->view.size()));
  return Function(heap, self.text->view);
}

template <Sides kSides>
StatusOr<Value> strip_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("strip", arguments, {{""}}));
  ASSIGN_OR_RETURN(const auto characters, optional_text(bound[0], "the argument of strip"));
  return strip_text(heap, *self.text, characters, kSides);
}

template <bool kFromRight>
StatusOr<Value> split_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("split", arguments, {{"sep"}, {"maxsplit"}}));
  ASSIGN_OR_RETURN(const auto separator, optional_text(bound[0], "the separator"));
  ASSIGN_OR_RETURN(const int64_t most, integer_or(bound[1], -1, "maxsplit"));
  if (separator.has_value() && separator->empty()) return invalid_argument("empty separator");
  RETURN_IF_ERROR(charge_parts(heap, self));
  return copies_of(heap, split_text(self.text->view, separator, most, kFromRight));
}

StatusOr<Value> splitlines(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("splitlines", arguments, {{"keepends"}}));
  RETURN_IF_ERROR(charge_parts(heap, self));
  return copies_of(heap, split_lines(self.text->view, !bound[0].missing() && truth(bound[0])));
}

template <bool kFromRight>
StatusOr<Value> partition(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("partition", arguments, {{"", true}}));
  ASSIGN_OR_RETURN(const std::string_view separator, text_of(bound[0], "the separator"));
  if (separator.empty()) return invalid_argument("empty separator");
  const std::string_view text = self.text->view;
  RETURN_IF_ERROR(heap.charge_bytes(text.size()));
  const size_t found = kFromRight ? find_last_text(text, separator) : find_text(text, separator);
  if (found == std::string_view::npos) {
    const Value nothing = heap.text("");
    const Value all = copy_of(heap, text);
    return kFromRight ? heap.tuple({nothing, nothing, all}) : heap.tuple({all, nothing, nothing});
  }
  return heap.tuple({copy_of(heap, text.substr(0, found)), copy_of(heap, separator),
                     copy_of(heap, text.substr(found + separator.size()))});
}

// startswith and endswith: one text, or a tuple of them.
template <bool kAtEnd>
StatusOr<Value> begins_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind(kAtEnd ? "endswith" : "startswith", arguments, {{"", true}, {""}, {""}}));
  ASSIGN_OR_RETURN(const Value part, slice(heap, self, bound[1], bound[2], Value()));
  const bool is_tuple = bound[0].is(Kind::kTuple);
  const std::vector<Value> candidates = is_tuple ? bound[0].list->items : std::vector<Value>{bound[0]};
  // A range that begins behind the end holds no text, not even an empty one.
  if (bound[1].is_integral() && bound[1].integer > *length_of(self)) return boolean(false);
  for (const Value& candidate : candidates) {
    RETURN_IF_ERROR(heap.charge());
    ASSIGN_OR_RETURN(const std::string_view wanted, text_of(candidate, "the argument"));
    if (kAtEnd ? part.text->view.ends_with(wanted) : part.text->view.starts_with(wanted)) return boolean(true);
  }
  return boolean(false);
}

// find, rfind, index, rindex; the last two raise where the first two give -1.
template <bool kFromRight, bool kRaises>
StatusOr<Value> find_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("find", arguments, {{"", true}, {""}, {""}}));
  if (!bound[1].missing()) return unimplemented("find() from a place on is not supported");
  ASSIGN_OR_RETURN(const std::string_view wanted, text_of(bound[0], "the argument"));
  const std::string_view text = self.text->view;
  RETURN_IF_ERROR(heap.charge_bytes(text.size()));
  const size_t found = kFromRight ? find_last_text(text, wanted) : find_text(text, wanted);
  if (found != std::string_view::npos) return integer(static_cast<int64_t>(chars_before(text, found)));
  if (kRaises) return invalid_argument("substring not found");
  return integer(-1);
}

StatusOr<Value> count(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("count", arguments, {{"", true}, {""}, {""}}));
  if (!bound[1].missing()) return unimplemented("count() from a place on is not supported");
  ASSIGN_OR_RETURN(const std::string_view wanted, text_of(bound[0], "the argument"));
  const std::string_view text = self.text->view;
  RETURN_IF_ERROR(heap.charge_bytes(text.size()));
  if (wanted.empty()) return integer(static_cast<int64_t>(self.text->num_chars) + 1);
  int64_t found = 0;
  for (size_t i = find_text(text, wanted); i != std::string_view::npos;
       i = find_text(text, wanted, i + wanted.size())) {
    ++found;
  }
  return integer(found);
}

StatusOr<Value> replace(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("replace", arguments, {{"", true}, {"", true}, {""}}));
  ASSIGN_OR_RETURN(const std::string_view old, text_of(bound[0], "the argument"));
  ASSIGN_OR_RETURN(const std::string_view with, text_of(bound[1], "the argument"));
  ASSIGN_OR_RETURN(const int64_t most, integer_or(bound[2], -1, "the count"));
  return replace_text(heap, self.text->view, old, with, most);
}

template <bool kAtEnd>
StatusOr<Value> remove_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("removeprefix", arguments, {{"", true}}));
  ASSIGN_OR_RETURN(const std::string_view part, text_of(bound[0], "the argument"));
  std::string_view text = self.text->view;
  if (kAtEnd && text.ends_with(part)) text.remove_suffix(part.size());
  if (!kAtEnd && text.starts_with(part)) text.remove_prefix(part.size());
  return copy_of(heap, text);
}

StatusOr<Value> join_method(Heap& heap, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("join", arguments, {{"", true}}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, items_of(heap, bound[0]));
  TextBuilder out(heap);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) RETURN_IF_ERROR(out.append(self.text->view));
    ASSIGN_OR_RETURN(const std::string_view part, text_of(items[i], "an item of join()"));
    RETURN_IF_ERROR(out.append(part));
  }
  return heap.text(out.take());
}

StatusOr<Value> upper_of(Heap& heap, std::string_view text) { return heap.text(uppercase(text)); }
StatusOr<Value> lower_of(Heap& heap, std::string_view text) { return heap.text(lowercase_in_context(text)); }
StatusOr<Value> capital_of(Heap& heap, std::string_view text) { return heap.text(capitalize(text)); }
StatusOr<Value> title_of(Heap& heap, std::string_view text) { return heap.text(title(text)); }
StatusOr<Value> lower_is(Heap&, std::string_view text) { return boolean(all_lower(text)); }
StatusOr<Value> upper_is(Heap&, std::string_view text) { return boolean(all_upper(text)); }
StatusOr<Value> space_is(Heap&, std::string_view text) {
  return boolean(!text.empty() && leading_space(text) == text.size());
}

StatusOr<Value> alpha_is(Heap&, std::string_view text) {
  bool all = !text.empty();
  for (size_t i = 0; i < text.size() && all;) all = char_class(next_code_point(text, i)) == CharClass::kLetter;
  return boolean(all);
}

template <bool kLetters>
StatusOr<Value> digits_are(Heap&, std::string_view text) {
  bool all = !text.empty();
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) return unimplemented("isdigit() beyond ASCII is not supported");
    const CharClass found = char_class(static_cast<uint32_t>(c));
    all &= found == CharClass::kNumber || (kLetters && found == CharClass::kLetter);
  }
  return boolean(all);
}

constexpr MethodEntry kTextMethods[] = {
    {"capitalize", plain<capital_of>},
    {"casefold", nullptr},
    {"center", nullptr},
    {"count", count},
    {"encode", nullptr},
    {"endswith", begins_method<true>},
    {"expandtabs", nullptr},
    {"find", find_method<false, false>},
    {"format", nullptr},
    {"format_map", nullptr},
    {"index", find_method<false, true>},
    {"isalnum", plain<digits_are<true>>},
    {"isalpha", plain<alpha_is>},
    {"isascii", nullptr},
    {"isdecimal", nullptr},
    {"isdigit", plain<digits_are<false>>},
    {"isidentifier", nullptr},
    {"islower", plain<lower_is>},
    {"isnumeric", nullptr},
    {"isprintable", nullptr},
    {"isspace", plain<space_is>},
    {"istitle", nullptr},
    {"isupper", plain<upper_is>},
    {"join", join_method},
    {"ljust", nullptr},
    {"lower", plain<lower_of>},
    {"lstrip", strip_method<Sides::kLeft>},
    {"maketrans", nullptr},
    {"partition", partition<false>},
    {"removeprefix", remove_method<false>},
    {"removesuffix", remove_method<true>},
    {"replace", replace},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", nullptr},
    {"rpartition", partition<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<Sides::kRight>},
    {"split", split_method<false>},
    {"splitlines", splitlines},
    {"startswith", begins_method<false>},
    {"strip", strip_method<Sides::kBoth>},
    {"swapcase", nullptr},
    {"title", plain<title_of>},
    {"translate", nullptr},
    {"upper", plain<upper_of>},
    {"zfill", nullptr},
};

}  // namespace

std::span<const MethodEntry> text_methods() { return kTextMethods; }

StatusOr<Value> strip_text(Heap& heap, const Text& text, std::optional<std::string_view> characters, Sides sides) {
  const size_t num_characters = characters.has_value() ? characters->size() : 1;
  RETURN_IF_ERROR(heap.charge(1 + static_cast<int64_t>(text.view.size() * (num_characters + 63) / 4096)));
  return heap.text(std::string(strip(text.view, characters, sides)), text.safe);
}

StatusOr<Value> replace_text(Heap& heap, std::string_view text, std::string_view old, std::string_view with,
                             int64_t count) {
  TextBuilder out(heap);
  size_t i = 0;
  if (old.empty()) {  // before each character, and at the end
    while (count-- != 0) {
      RETURN_IF_ERROR(out.append(with));
      if (i == text.size()) break;
      const size_t begin = i;
      next_code_point(text, i);
      RETURN_IF_ERROR(out.append(text.substr(begin, i - begin)));
    }
  } else {
    while (count-- != 0) {
      const size_t found = find_text(text, old, i);
      if (found == std::string_view::npos) break;
      RETURN_IF_ERROR(out.append(text.substr(i, found - i)));
      RETURN_IF_ERROR(out.append(with));
      i = found + old.size();
    }
  }
  RETURN_IF_ERROR(out.append(text.substr(i)));
  return heap.text(out.take());
}

}  // namespace transept::jinja
