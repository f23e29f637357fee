#include "net/http_fields.h"

#include <algorithm>

#include "base/strings.h"
#include "net/http_chars.h"

namespace transept {

std::vector<std::string_view> header_values(const HttpHeaders& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers) {
    if (equals_ignoring_case(key, name)) values.emplace_back(value);
  }
  return values;
}

std::vector<std::string_view> header_elements(const HttpHeaders& headers, std::string_view name) {
  std::vector<std::string_view> elements;
  for (const std::string_view value : header_values(headers, name)) {
    for (const std::string_view element : split(value, ',')) elements.push_back(trim_spaces(element));
  }
  return elements;
}

bool has_element(const std::vector<std::string_view>& elements, std::string_view wanted) {
  return std::any_of(elements.begin(), elements.end(),
                     [wanted](std::string_view element) { return equals_ignoring_case(element, wanted); });
}

}  // namespace transept
