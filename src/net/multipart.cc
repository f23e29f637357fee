#include "net/multipart.h"

#include <algorithm>
#include <utility>

#include "net/http_chars.h"

namespace transept {
namespace {

constexpr std::string_view kCrLf = "\r\n";
constexpr size_t kMaxBoundaryBytes = 70;  // RFC 2046, 5.1.1

bool is_boundary_char(char c) {
  return is_digit(c) || is_letter(c) || std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
}

// The value of one parameter, from its beginning; `rest` is left behind it. A backslash stands for what follows it only
// before a quote: browsers of old send the paths of Windows as they are.
std::optional<std::string> read_value(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) {
    const std::string_view bare = rest.substr(0, rest.find(';'));
    rest.remove_prefix(bare.size());
    return std::string(trim_spaces(bare));
  }
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    if (rest[i] == '\\' && i + 1 < rest.size() && rest[i + 1] == '"') ++i;
    value.push_back(rest[i]);
  }
  return std::nullopt;
}

struct Parameter {
  std::string_view name;
  std::string value;
};

// "; name=value; name="value"", what follows the first word of a header. nullopt: malformed.
std::optional<std::vector<Parameter>> read_parameters(std::string_view rest) {
  std::vector<Parameter> parameters;
  while (!(rest = trim_spaces(rest)).empty()) {
    if (rest.front() != ';') return std::nullopt;
    rest = trim_spaces(rest.substr(1));
    if (rest.empty() || rest.front() == ';') continue;  // "a; ; b" and "a;" are seen in the wild
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos || !is_token(trim_spaces(rest.substr(0, equals)))) return std::nullopt;
    const std::string_view name = trim_spaces(rest.substr(0, equals));
    rest = trim_spaces(rest.substr(equals + 1));
    auto value = read_value(rest);
    if (!value.has_value()) return std::nullopt;
    parameters.push_back({name, *std::move(value)});
  }
  return parameters;
}

// The three characters that the HTML standard has browsers escape in names (4.10.21.8); no other escape is one.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view escape = text.substr(i, 3);
    const char c = escape == "%22"                      ? '"'
                   : escape == "%0D" || escape == "%0d" ? '\r'
                   : escape == "%0A" || escape == "%0a" ? '\n'
                                                        : '\0';
    out.push_back(c == '\0' ? text[i] : c);
    if (c != '\0') i += 2;
  }
  return out;
}

struct OpenPart {
  MultipartPart part;
  bool has_disposition = false, has_name = false;
};

Status read_disposition(std::string_view value, OpenPart& open) {
  if (std::exchange(open.has_disposition, true)) return invalid_argument("a part has two Content-Dispositions");
  MultipartPart& part = open.part;
  const std::string_view kind = trim_spaces(value.substr(0, value.find(';')));
  if (!equals_ignoring_case(kind, "form-data")) return invalid_argument("a part of the form is not form-data");
  const auto parameters = read_parameters(value.substr(std::min(value.size(), value.find(';'))));
  if (!parameters.has_value()) return invalid_argument("a part's Content-Disposition is malformed");
  for (const Parameter& parameter : *parameters) {
    if (equals_ignoring_case(parameter.name, "name")) {
      if (std::exchange(open.has_name, true)) return invalid_argument("a part has two names");
      part.name = unescaped(parameter.value);
    } else if (equals_ignoring_case(parameter.name, "filename")) {
      if (part.filename.has_value()) return invalid_argument("a part has two file names");
      part.filename = unescaped(parameter.value);
    }
  }
  return ok_status();
}

// 7bit, 8bit and binary mean nothing (RFC 7578, 4.7, has none at all).
bool is_plain_encoding(std::string_view encoding) {
  return equals_ignoring_case(encoding, "7bit") || equals_ignoring_case(encoding, "8bit") ||
         equals_ignoring_case(encoding, "binary");
}

Status read_part_header(std::string_view line, OpenPart& open) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || !is_field_value(line)) {
    return invalid_argument("a part's header is malformed");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim_spaces(line.substr(colon + 1));
  if (equals_ignoring_case(name, "Content-Disposition")) return read_disposition(value, open);
  if (equals_ignoring_case(name, "Content-Type")) open.part.content_type = std::string(value);
  if (equals_ignoring_case(name, "Content-Transfer-Encoding") && !is_plain_encoding(value)) {
    return invalid_argument("a part has a Content-Transfer-Encoding");
  }
  return ok_status();
}

// `text`: from behind the boundary's line; is left at the empty line's CRLF, which can belong to a delimiter.
Status read_part_headers(std::string_view& text, const MultipartLimits& limits, OpenPart& open) {
  for (size_t bytes_left = limits.max_part_header_bytes; !text.starts_with(kCrLf);) {
    const std::string_view room = text.substr(0, bytes_left);
    const size_t size = std::min(room.size(), room.find('\n'));
    if (size == room.size() && room.size() < text.size()) {
      return resource_exhausted("a part's headers are larger than ", limits.max_part_header_bytes, " bytes");
    }
    const std::string_view line = room.substr(0, size);
    if (size == room.size() || !line.ends_with('\r')) return invalid_argument("a part's header does not end with CRLF");
    RETURN_IF_ERROR(read_part_header(line.substr(0, size - 1), open));
    text.remove_prefix(size + 1);
    bytes_left -= size + 1;
  }
  return open.has_name ? ok_status() : invalid_argument("a part of the form has no name");
}

struct Delimiter {
  size_t begin = std::string_view::npos;  // npos: there is none
  size_t end = 0;                         // behind its line
  bool is_last = false;
};

// The first line of `text` that is the boundary: `delimiter` (CRLF "--" boundary), "--" in the last, padding, CRLF.
Delimiter find_delimiter(std::string_view text, std::string_view delimiter) {
  for (size_t begin = text.find(delimiter); begin != std::string_view::npos; begin = text.find(delimiter, begin + 1)) {
    std::string_view rest = text.substr(begin + delimiter.size());
    const bool is_last = rest.starts_with("--");
    if (is_last) rest.remove_prefix(2);
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t")));
    if (rest.starts_with(kCrLf)) return {begin, text.size() - rest.size() + kCrLf.size(), is_last};
    if (is_last && rest.empty()) return {begin, text.size(), true};
  }
  return {};
}

Delimiter find_first_delimiter(std::string_view body, std::string_view delimiter) {
  // At the very beginning it has no CRLF of its own.
  const std::string_view bare = delimiter.substr(kCrLf.size());
  if (body.starts_with(bare)) {
    const Delimiter found = find_delimiter(body, bare);
    if (found.begin == 0) return found;
  }
  return find_delimiter(body, delimiter);
}

Status with_name(Status status, const MultipartPart& part) {
  return part.name.empty() ? std::move(status) : with_param(std::move(status), part.name);
}

Status check_size(const MultipartPart& part, const MultipartLimits& limits) {
  if (part.filename.has_value() || part.content.size() <= limits.max_field_bytes) return ok_status();
  return resource_exhausted("the field has ", part.content.size(), " bytes, more than ", limits.max_field_bytes);
}

}  // namespace

StatusOr<std::string> multipart_boundary(std::string_view content_type) {
  const size_t end = std::min(content_type.size(), content_type.find(';'));
  if (!equals_ignoring_case(trim_spaces(content_type.substr(0, end)), "multipart/form-data")) {
    return invalid_argument("the Content-Type is not multipart/form-data");
  }
  const auto parameters = read_parameters(content_type.substr(end));
  if (!parameters.has_value()) return invalid_argument("the Content-Type's parameters are malformed");
  std::optional<std::string> boundary;
  for (const Parameter& parameter : *parameters) {
    if (!equals_ignoring_case(parameter.name, "boundary")) continue;
    if (boundary.has_value()) return invalid_argument("the Content-Type has two boundaries");
    boundary = parameter.value;
  }
  if (!boundary.has_value() || boundary->empty()) return invalid_argument("the Content-Type has no boundary");
  if (boundary->size() > kMaxBoundaryBytes || boundary->back() == ' ' ||
      !std::all_of(boundary->begin(), boundary->end(), is_boundary_char)) {
    return invalid_argument("the Content-Type's boundary is longer than ", kMaxBoundaryBytes,
                            " characters or holds others than RFC 2046 allows");
  }
  return *std::move(boundary);
}

StatusOr<std::vector<MultipartPart>> parse_multipart(std::string_view body, std::string_view boundary,
                                                     const MultipartLimits& limits) {
  const std::string delimiter = str_cat("\r\n--", boundary);
  std::vector<MultipartPart> parts;
  Delimiter found = find_first_delimiter(body, delimiter);
  while (found.begin != std::string_view::npos) {
    if (found.is_last) return parts;
    if (parts.size() == limits.max_parts) {
      return resource_exhausted("the form has ", parts.size() + 1, " parts or more, more than ", limits.max_parts);
    }
    body.remove_prefix(found.end);
    OpenPart open;
    MultipartPart& part = open.part;
    RETURN_IF_ERROR(with_name(read_part_headers(body, limits, open), part));
    found = find_delimiter(body, delimiter);
    if (found.begin == std::string_view::npos) break;
    // The empty line's CRLF is the delimiter's where there is no content at all (RFC 2046, 5.1.1).
    part.content = body.substr(0, found.begin);
    if (!part.content.empty()) part.content.remove_prefix(kCrLf.size());
    RETURN_IF_ERROR(with_name(check_size(part, limits), part));
    parts.push_back(std::move(part));
  }
  return invalid_argument("the form's closing boundary is missing");
}

}  // namespace transept
