#include "text/pipeline/metaspace.h"

#include "text/unicode/unicode.h"

namespace transept {
namespace {

StatusOr<Metaspace::Scheme> parse_scheme(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string scheme, field.string_or("always"));
  if (scheme == "always") return Metaspace::Scheme::kAlways;
  if (scheme == "first") return Metaspace::Scheme::kFirst;
  if (scheme == "never") return Metaspace::Scheme::kNever;
  return field.error(str_cat("\"", scheme, "\" is none of always, first, never"));
}

}  // namespace

StatusOr<Metaspace> Metaspace::parse(const JsonField& field) {
  Metaspace metaspace;
  const JsonField replacement = field.member("replacement");
  ASSIGN_OR_RETURN(metaspace.replacement, replacement.as_string());
  size_t end = 0;
  if (!metaspace.replacement.empty()) next_code_point(metaspace.replacement, end);
  if (end == 0 || end != metaspace.replacement.size()) return replacement.error("expected one character");
  ASSIGN_OR_RETURN(metaspace.scheme, parse_scheme(field.member("prepend_scheme")));
  ASSIGN_OR_RETURN(const bool add_prefix_space, field.member("add_prefix_space").bool_or(true));
  if (!add_prefix_space) {
    // Before prepend_scheme there was only always and never.
    if (field.member("prepend_scheme").present() && metaspace.scheme != Scheme::kNever) {
      return field.member("add_prefix_space").error("contradicts prepend_scheme");
    }
    metaspace.scheme = Scheme::kNever;
  }
  ASSIGN_OR_RETURN(metaspace.split, field.member("split").bool_or(true));
  return metaspace;
}

}  // namespace transept
