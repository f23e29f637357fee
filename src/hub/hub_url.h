// URLs of a hub: of its files and its interface, and where redirects lead. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/repo_name.h"

namespace transept {

// Percent-encodes (RFC 3986, 2.1) everything but letters, digits, "-._~" and the characters of `safe`.
std::string percent_encoded(std::string_view text, std::string_view safe = "");

// `endpoint` has no slash at its end. `commit` is a revision, too.
std::string file_url(std::string_view endpoint, const RepoName& repo, std::string_view commit, std::string_view file);
std::string info_url(std::string_view endpoint, const RepoName& repo);
std::string tree_url(std::string_view endpoint, const RepoName& repo, std::string_view commit);

// Scheme, host and port of an http:// or https:// URL, in lower case: "https://host:443". Errors (kInvalidArgument):
// another scheme, no host, a user name, a
// port that is no number, a control character or a space.
StatusOr<std::string> url_origin(std::string_view url);

// Resolves the Location header of a redirect against the URL that gave it (RFC 3986, 5.2; without dot segments, which
// the server resolves). Errors: url_origin's; from https to http.
StatusOr<std::string> redirect_target(std::string_view url, std::string_view location);

// The target of rel="next" in a Link header (RFC 8288), "" if there is none.
std::string next_link(std::string_view header);

}  // namespace transept
