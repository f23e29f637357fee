#include "net/http_head.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/strings.h"
#include "base/utf8.h"
#include "net/http_chars.h"
#include "net/http_fields.h"

namespace transept {
namespace {

constexpr size_t kMaxLengthDigits = 18;  // below 2^63, and more than anybody sends

HttpError bad_request(std::string reason) { return {400, std::move(reason)}; }

// host [":" port]; "" is allowed (RFC 9112, 3.2). No userinfo, no list, nothing of a path.
bool is_authority(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || is_letter(c) || std::string_view("-._~!$&'()*+;=%:[]").find(c) != std::string_view::npos;
  });
}

std::optional<HttpError> read_version(std::string_view version, HttpHead& head) {
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7])) {
    return bad_request("the request line does not end with an HTTP version");
  }
  if (version[5] != '1') return HttpError{505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  head.minor_version = version[7] == '0' ? 0 : 1;
  return std::nullopt;
}

std::optional<HttpError> read_path(std::string_view target, HttpRequest& request) {
  const size_t question = target.find('?');
  request.query = question == std::string_view::npos ? "" : std::string(target.substr(question + 1));
  auto path = percent_decoded(target.substr(0, question));
  if (!path.has_value()) return bad_request("the path holds a malformed percent escape");
  if (!is_field_value(*path) || !is_valid_utf8(*path)) {
    return bad_request("the path holds control characters or is not UTF-8");
  }
  request.path = path->empty() ? "/" : *std::move(path);
  return std::nullopt;
}

// Origin form, or absolute form, whose authority goes before any Host (RFC 9112, 3.2.2): it is put into the headers as
// such, and finish_head makes it the only one.
std::optional<HttpError> read_target(std::string_view target, HttpHead& head) {
  const bool is_visible =
      std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '#'; });
  if (target.empty() || !is_visible) return bad_request("the request target holds characters that must be escaped");
  if (target.front() == '/') return read_path(target, head.request);
  const size_t scheme_end = target.find("://");
  const std::string_view scheme = target.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos ||
      !(equals_ignoring_case(scheme, "http") || equals_ignoring_case(scheme, "https"))) {
    return bad_request("the request target must begin with '/' or http://");
  }
  target.remove_prefix(scheme_end + 3);
  const size_t authority_end = std::min(target.size(), target.find_first_of("/?"));
  const std::string_view authority = target.substr(0, authority_end);
  if (authority.empty() || !is_authority(authority)) return bad_request("the request target's host is malformed");
  head.request.headers.emplace_back("Host", authority);
  head.has_absolute_target = true;
  return read_path(target.substr(authority_end), head.request);
}

std::optional<HttpError> check_host(HttpHead& head) {
  const bool target_has_host = head.has_absolute_target;
  const auto hosts = header_values(head.request.headers, "Host");
  const size_t num_sent = hosts.size() - (target_has_host ? 1 : 0);
  if (num_sent > 1) return bad_request("more than one Host header");
  if (num_sent == 0 && head.minor_version >= 1) return bad_request("the Host header is missing");
  for (const std::string_view host : hosts) {
    if (!is_authority(host)) return bad_request("the Host header is malformed");
  }
  if (target_has_host && num_sent == 1) {
    auto& headers = head.request.headers;
    const auto sent = std::find_if(headers.begin() + 1, headers.end(),
                                   [](const auto& header) { return equals_ignoring_case(header.first, "Host"); });
    headers.erase(sent);
  }
  return std::nullopt;
}

std::optional<HttpError> read_content_length(std::string_view value, uint64_t& length) {
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
    return bad_request("the Content-Length is not a number");
  }
  if (value.size() > kMaxLengthDigits) return HttpError{413, "the Content-Length is too large"};
  std::from_chars(value.data(), value.data() + value.size(), length);
  return std::nullopt;
}

// RFC 9112, 6.3, with every doubt resolved against the request.
std::optional<HttpError> read_framing(HttpHead& head) {
  const HttpHeaders& headers = head.request.headers;
  const auto lengths = header_values(headers, "Content-Length");
  if (find_header(headers, "Transfer-Encoding") == nullptr) {
    if (lengths.empty()) return std::nullopt;
    if (lengths.size() > 1) return bad_request("more than one Content-Length header");
    return read_content_length(lengths[0], head.content_length);
  }
  if (!lengths.empty()) return bad_request("both Content-Length and Transfer-Encoding");
  if (head.minor_version == 0) return bad_request("Transfer-Encoding in an HTTP/1.0 request");
  const auto codings = header_elements(headers, "Transfer-Encoding");
  const auto num_chunked = std::count_if(
      codings.begin(), codings.end(), [](std::string_view coding) { return equals_ignoring_case(coding, "chunked"); });
  if (num_chunked != 1 || !equals_ignoring_case(codings.back(), "chunked")) {
    return bad_request("the Transfer-Encoding is not chunked");
  }
  if (codings.size() > 1) return HttpError{501, "no other Transfer-Encoding than chunked is understood"};
  head.is_chunked = true;
  return std::nullopt;
}

}  // namespace

std::optional<HttpError> read_request_line(std::string_view line, HttpHead& head) {
  const auto words = split(line, ' ');
  if (words.size() != 3) return bad_request("the request line is not a method, a target and a version");
  if (!is_token(words[0])) return bad_request("the request's method is malformed");
  head.request.method = std::string(words[0]);
  if (auto error = read_version(words[2], head)) return error;
  return read_target(words[1], head);
}

std::optional<HttpError> read_header_line(std::string_view line, HttpHeaders& headers) {
  if (line.starts_with(' ') || line.starts_with('\t')) return bad_request("a header is folded over several lines");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_request("a header has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad_request("a header's name is malformed");
  const std::string_view value = trim_spaces(line.substr(colon + 1));
  if (!is_field_value(value)) return bad_request("a header's value holds control characters");
  headers.emplace_back(name, value);
  return std::nullopt;
}

std::optional<HttpError> finish_head(HttpHead& head) {
  const HttpHeaders& headers = head.request.headers;
  if (auto error = check_host(head)) return error;
  if (auto error = read_framing(head)) return error;
  const auto options = header_elements(headers, "Connection");
  head.keep_alive = !has_element(options, "close") && (head.minor_version >= 1 || has_element(options, "keep-alive"));
  if (head.minor_version == 0) return std::nullopt;  // RFC 9110, 10.1.1: expectations of HTTP/1.0 are passed over
  for (const std::string_view expectation : header_elements(headers, "Expect")) {
    if (!equals_ignoring_case(expectation, "100-continue")) {
      return HttpError{417, "no other expectation than 100-continue is understood"};
    }
    head.expects_continue = true;
  }
  return std::nullopt;
}

}  // namespace transept
