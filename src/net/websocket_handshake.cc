#include "net/websocket_handshake.h"

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"
#include "net/http_chars.h"
#include "net/http_fields.h"

namespace transept {
namespace {

constexpr size_t kKeyBytes = 16;

std::optional<HttpError> check_upgrade(const HttpHead& head) {
  const HttpHeaders& headers = head.request.headers;
  const auto protocols = header_elements(headers, "Upgrade");
  if (!has_element(protocols, "websocket")) {
    return HttpError{426, "this path is a WebSocket's, and the request does not ask for an upgrade to one"};
  }
  // Which of several is meant could be read in two ways.
  if (protocols.size() > 1) return HttpError{400, "more than one protocol in Upgrade"};
  if (head.minor_version == 0) return HttpError{505, "WebSockets need HTTP/1.1"};
  if (!has_element(header_elements(headers, "Connection"), "upgrade")) {
    return HttpError{400, "the Connection header does not say upgrade"};
  }
  return std::nullopt;
}

std::optional<HttpError> check_version(const HttpHeaders& headers) {
  const auto versions = header_values(headers, "Sec-WebSocket-Version");
  if (versions.size() > 1) return HttpError{400, "more than one Sec-WebSocket-Version header"};
  if (versions.empty() || versions[0] != "13") {
    return HttpError{426, "no other Sec-WebSocket-Version than 13 is understood"};
  }
  return std::nullopt;
}

std::optional<HttpError> check_key(const HttpHeaders& headers) {
  const auto keys = header_values(headers, "Sec-WebSocket-Key");
  if (keys.empty()) return HttpError{400, "the Sec-WebSocket-Key header is missing"};
  if (keys.size() > 1) return HttpError{400, "more than one Sec-WebSocket-Key header"};
  const auto bytes = decode_base64(keys[0]);
  if (!bytes.has_value() || bytes->size() != kKeyBytes) {
    return HttpError{400, "the Sec-WebSocket-Key is not 16 bytes in base64"};
  }
  return std::nullopt;
}

std::optional<HttpError> check_subprotocols(const HttpRequest& request) {
  size_t num_bytes = 0;
  for (const std::string_view value : header_values(request.headers, "Sec-WebSocket-Protocol")) {
    num_bytes += value.size();
  }
  if (num_bytes > kMaxSubprotocolBytes) {
    return HttpError{431, str_cat("Sec-WebSocket-Protocol is longer than ", kMaxSubprotocolBytes, " bytes")};
  }
  auto offers = offered_subprotocols(request);
  if (!std::all_of(offers.begin(), offers.end(), is_token)) {
    return HttpError{400, "Sec-WebSocket-Protocol is no list of names"};
  }
  std::sort(offers.begin(), offers.end());
  if (std::adjacent_find(offers.begin(), offers.end()) != offers.end()) {
    return HttpError{400, "Sec-WebSocket-Protocol names a subprotocol twice"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HttpError> check_websocket_handshake(const HttpHead& head) {
  if (head.request.method != "GET") return HttpError{405, "a WebSocket is opened by GET"};
  if (head.is_chunked || head.content_length > 0) return HttpError{400, "a WebSocket's handshake has no body"};
  if (auto error = check_upgrade(head)) return error;
  if (auto error = check_version(head.request.headers)) return error;
  if (auto error = check_key(head.request.headers)) return error;
  return check_subprotocols(head.request);
}

HttpHeaders handshake_error_headers(int status) {
  if (status == 405) return {{"Allow", "GET"}};
  if (status == 426) return {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}};
  return {};
}

std::vector<std::string_view> offered_subprotocols(const HttpRequest& request) {
  return header_elements(request.headers, "Sec-WebSocket-Protocol");
}

std::optional<std::string> choose_subprotocol(const HttpRequest& request, std::span<const std::string_view> served) {
  const auto offers = offered_subprotocols(request);
  if (offers.empty()) return "";
  for (const std::string_view offer : offers) {
    if (std::find(served.begin(), served.end(), offer) != served.end()) return std::string(offer);
  }
  return std::nullopt;
}

}  // namespace transept
