#include "disagg/redis_url.h"

#include <charconv>
#include <optional>

#include "base/quoted.h"
#include "net/http.h"

namespace transept {
namespace {

constexpr std::string_view kTcp = "redis://", kUnix = "redis+unix://", kTls = "rediss://";
constexpr size_t kMaxUrlBytes = 4096;
constexpr int32_t kMaxDb = 1 << 20;  // more than any server is told to have

// The message names the field, too: it stands behind --broker.
Status wrong(std::string_view field, std::string_view what) { return field_error(field, str_cat(field, " ", what)); }

Status decode(std::string_view field, std::string_view from, std::string& to) {
  std::optional<std::string> decoded = percent_decoded(from);
  if (!decoded.has_value()) return wrong(field, "has a '%' without two hexadecimal digits, or a NUL");
  to = *std::move(decoded);
  return ok_status();
}

Status parse_number(std::string_view field, std::string_view text, int32_t min, int32_t max, int32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min && value <= max) return ok_status();
  return wrong(field, str_cat("is no number of ", min, " to ", max));
}

// `text`: USER:PASSWORD, or :PASSWORD.
Status parse_user(std::string_view text, RedisUrl& url) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return wrong("password", "is missing: write USER:PASSWORD@ or :PASSWORD@");
  RETURN_IF_ERROR(decode("user", text.substr(0, colon), url.user));
  RETURN_IF_ERROR(decode("password", text.substr(colon + 1), url.password));
  return url.password.empty() ? wrong("password", "is empty") : ok_status();
}

// `text`: HOST[:PORT].
Status parse_place(std::string_view text, RedisUrl& url) {
  size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) return wrong("host", "has a '[' without ']'");
    url.host = text.substr(1, end - 1);
    ++end;
  } else {
    url.host = text.substr(0, end);
  }
  const bool is_plain = url.host.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:%") == std::string::npos;
  if (url.host.empty()) return wrong("host", "is missing");
  if (!is_plain) return wrong("host", "is neither a name nor an address; IPv6 addresses stand in [ ]");
  if (end >= text.size()) return ok_status();
  if (text[end] != ':') return wrong("host", "has characters behind ']'");
  int32_t port = 0;
  RETURN_IF_ERROR(parse_number("port", text.substr(end + 1), 1, 65535, port));
  url.port = static_cast<uint16_t>(port);
  return ok_status();
}

Status parse_db(std::string_view text, RedisUrl& url) { return parse_number("db", text, 0, kMaxDb, url.db); }

Status parse_tcp(std::string_view place, std::string_view rest, RedisUrl& url) {
  RETURN_IF_ERROR(parse_place(place, url));
  return rest.size() <= 1 ? ok_status() : parse_db(rest.substr(1), url);  // "" or "/"
}

Status parse_unix(std::string_view place, std::string_view rest, RedisUrl& url) {
  if (!place.empty()) return wrong("path", "does not begin with '/'");
  const size_t query = rest.find('?');
  RETURN_IF_ERROR(decode("path", rest.substr(0, query), url.path));
  if (url.path.size() <= 1) return wrong("path", "is missing");
  if (query == std::string_view::npos) return ok_status();
  if (!rest.substr(query).starts_with("?db=")) return wrong("db", "is the only parameter: write ?db=NUMBER");
  return parse_db(rest.substr(query + 4), url);
}

}  // namespace

std::string RedisUrl::text() const {
  const std::string who = password.empty() ? "" : str_cat(printable(user), ":***@");
  if (!path.empty()) return str_cat(kUnix, who, printable(path), db == 0 ? "" : str_cat("?db=", db));
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return str_cat(kTcp, who, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", ":", port, "/", db);
}

StatusOr<RedisUrl> parse_redis_url(std::string_view text) {
  if (text.starts_with(kTls)) {
    return unimplemented("rediss://: TLS is not built in; use redis:// through WireGuard or stunnel");
  }
  const bool is_unix = text.starts_with(kUnix);
  if (!is_unix && !text.starts_with(kTcp)) return wrong("scheme", "is neither redis:// nor redis+unix://");
  if (text.size() > kMaxUrlBytes) return wrong("url", str_cat("has more than ", kMaxUrlBytes, " bytes"));
  text.remove_prefix(is_unix ? kUnix.size() : kTcp.size());
  // An address ends at the first '/'. An '@' behind it belongs to a password with a '/' in it, mostly.
  const size_t slash = std::min(text.find('/'), text.size());
  std::string_view place = text.substr(0, slash), rest = text.substr(slash);
  if (!is_unix && rest.find('@') != std::string_view::npos) {
    return wrong("password", "has a '/' or '@' that is not written %2F or %40");
  }
  RedisUrl url;
  if (const size_t at = place.rfind('@'); at != std::string_view::npos) {
    RETURN_IF_ERROR(parse_user(place.substr(0, at), url));
    place.remove_prefix(at + 1);
  }
  RETURN_IF_ERROR(is_unix ? parse_unix(place, rest, url) : parse_tcp(place, rest, url));
  return url;
}

}  // namespace transept
