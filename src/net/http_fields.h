// Reads headers that are lists, over all lines of their name (RFC 9110, 5.6.1). The results refer to the headers. Pure
// functions: thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "net/http.h"

namespace transept {

// The values of all headers of this name, in order.
std::vector<std::string_view> header_values(const HttpHeaders& headers, std::string_view name);
// The elements of a list, without the spaces around them; empty ones stay.
std::vector<std::string_view> header_elements(const HttpHeaders& headers, std::string_view name);
// Whether `elements` has `wanted`, without regard to case.
bool has_element(const std::vector<std::string_view>& elements, std::string_view wanted);

}  // namespace transept
