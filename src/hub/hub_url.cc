#include "hub/hub_url.h"

#include "base/ascii.h"
#include "base/quoted.h"

namespace transept {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

constexpr std::string_view kHttp = "http://", kHttps = "https://";

bool starts_with_scheme(std::string_view url, std::string_view scheme) {
  return url.size() >= scheme.size() && ascii_lower(url.substr(0, scheme.size())) == scheme;
}

// For messages: a user name may have a password with it. URLs that are none are cut at their last '@', too.
std::string without_user(std::string_view url) {
  const size_t end = url.rfind('@');
  if (end == std::string_view::npos) return std::string(url);
  const size_t scheme = url.find(':');
  const size_t begin = scheme < end ? std::min(url.find_first_not_of('/', scheme + 1), end) : 0;
  return str_cat(url.substr(0, begin), "***", url.substr(end));
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view safe) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || safe.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string file_url(std::string_view endpoint, const RepoName& repo, std::string_view commit, std::string_view file) {
  return str_cat(endpoint, "/", repo.id, "/resolve/", percent_encoded(commit), "/", percent_encoded(file, "/"));
}

std::string info_url(std::string_view endpoint, const RepoName& repo) {
  return str_cat(endpoint, "/api/models/", repo.id, "/revision/", percent_encoded(repo.revision));
}

std::string tree_url(std::string_view endpoint, const RepoName& repo, std::string_view commit) {
  return str_cat(endpoint, "/api/models/", repo.id, "/tree/", percent_encoded(commit), "?recursive=true&expand=false");
}

StatusOr<std::string> url_origin(std::string_view url) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument("the URL ", in_quotes(without_user(url)), ": ", why);
  };
  const bool is_secure = starts_with_scheme(url, kHttps);
  if (!is_secure && !starts_with_scheme(url, kHttp)) return refused("expected http:// or https://");
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F) return refused("it holds a space or a control character");
  }
  std::string_view rest = url.substr(is_secure ? kHttps.size() : kHttp.size());
  rest = rest.substr(0, rest.find_first_of("/?#\\"));
  if (rest.find('@') != std::string_view::npos) return refused("it holds a user name");
  if (rest.empty() || rest.front() == ':') return refused("it has no host");
  std::string host = ascii_lower(rest);
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  if (!has_port) host += is_secure ? ":443" : ":80";
  const std::string_view port = std::string_view(host).substr(host.rfind(':') + 1);
  const bool is_port = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
  if (!is_port) return refused("its port is no number");
  return str_cat(is_secure ? kHttps : kHttp, host);
}

StatusOr<std::string> redirect_target(std::string_view url, std::string_view location) {
  ASSIGN_OR_RETURN(const std::string origin, url_origin(url));
  std::string target;
  const size_t colon = url.find(':');
  const size_t path = std::min(url.find_first_of("/?#", colon + 3), url.size());
  if (starts_with_scheme(location, kHttp) || starts_with_scheme(location, kHttps)) {
    target = location;
  } else if (location.starts_with("//")) {
    target = str_cat(url.substr(0, colon + 1), location);
  } else if (location.starts_with('/')) {
    target = str_cat(url.substr(0, path), location);
  } else if (location.find(':') < location.find('/')) {
    return invalid_argument("a redirect to ", in_quotes(location), ": expected http:// or https://");
  } else {
    const std::string_view whole = url.substr(0, std::min(url.find_first_of("?#"), url.size()));
    const size_t folder = whole.rfind('/');
    target = folder < path ? str_cat(whole, "/", location) : str_cat(whole.substr(0, folder + 1), location);
  }
  ASSIGN_OR_RETURN(const std::string target_origin, url_origin(target));
  if (origin.starts_with(kHttps) && !target_origin.starts_with(kHttps)) {
    return invalid_argument("a redirect from https to ", in_quotes(target), " is refused");
  }
  return target;
}

std::string next_link(std::string_view header) {
  while (!header.empty()) {
    const size_t begin = header.find('<'), end = header.find('>');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
    const std::string_view target = header.substr(begin + 1, end - begin - 1);
    header.remove_prefix(end + 1);
    const std::string_view parameters = header.substr(0, header.find('<'));
    const std::string lower = ascii_lower(parameters);
    if (lower.find("rel=\"next\"") != std::string::npos || lower.find("rel=next") != std::string::npos) {
      return std::string(target);
    }
    header.remove_prefix(parameters.size());
  }
  return "";
}

}  // namespace transept
