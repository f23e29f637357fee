// What a hub's refusals mean, and what to do about each. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"
#include "hub/transfer.h"

namespace transept {

// The error of an answer that is neither 2xx nor a redirect, by its status and the headers X-Error-Code and
// X-Error-Message. `file` is "" for requests about the repository. Codes: kUnauthenticated (401), kPermissionDenied
// (403, gated), kNotFound (404: no such repository, revision or file), kOutOfRange (416), kUnavailable
// (is_retryable_status), else kUnknown.
Status hub_error(const HubSettings& settings, const RepoName& repo, std::string_view file,
                 const Transfer::Reply& reply);

// The error of such an answer of a host that the hub redirects to ("cdn.example:443"): a store of large files. A token
// would not help there. Codes: kNotFound (404), kPermissionDenied (401, 403), kOutOfRange (416), kUnavailable
// (is_retryable_status), else kUnknown.
Status store_error(const RepoName& repo, std::string_view file, std::string_view host, const Transfer::Reply& reply);

// Whether the answer has the headers of a hub's refusals. An endpoint may be a redirect to another hub.
bool has_hub_headers(const Transfer::Reply& reply);

// Whether the answer says that the repository is there and has no such file.
bool is_missing_file(const Transfer::Reply& reply);

}  // namespace transept
