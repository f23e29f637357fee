#include "hub/hub_errors.h"

#include "base/quoted.h"
#include "hub/retry.h"

namespace transept {
namespace {

constexpr size_t kMaxServerMessage = 300;

std::string header(const Transfer::Reply& reply, std::string_view name) {
  const std::string* value = find_header(reply.headers, name);
  return value == nullptr ? std::string() : *value;
}

std::string token_advice(const HubSettings& settings) {
  return settings.token.empty()
             ? "if it is private, set HF_TOKEN to a token that may read it"
             : str_cat("if it is private, the token from ", settings.token_from, " must be allowed to read it");
}

}  // namespace

bool is_missing_file(const Transfer::Reply& reply) {
  return reply.status == 404 && header(reply, "X-Error-Code") == "EntryNotFound";
}

Status hub_error(const HubSettings& settings, const RepoName& repo, std::string_view file,
                 const Transfer::Reply& reply) {
  const std::string code = header(reply, "X-Error-Code"), said = header(reply, "X-Error-Message");
  const std::string where = str_cat(repo.id, " at ", settings.endpoint);
  if (code == "GatedRepo") {
    return absl::PermissionDeniedError(
        str_cat(where, ": the repository is gated: ask for access at ", settings.endpoint, "/", repo.id,
                settings.token.empty() ? ", then set HF_TOKEN to a token of the account that has it"
                                       : str_cat(" with the account of the token from ", settings.token_from)));
  }
  if (code == "RevisionNotFound") {
    return not_found(where, ": the repository has no revision ", in_quotes(repo.revision), ": ", settings.endpoint, "/",
                     repo.id, "/tree/main lists its branches and tags");
  }
  if (is_missing_file(reply)) return not_found(where, ": the revision ", repo.revision, " has no ", file);
  if (code == "DisabledRepo" || said == "Access to this resource is disabled.") {
    return absl::PermissionDeniedError(str_cat(where, ": the hub has disabled access to the repository"));
  }
  if (reply.status == 401 && said == "Invalid credentials in Authorization header") {
    return absl::UnauthenticatedError(str_cat(where, ": the token from ", settings.token_from,
                                              " is refused (401): make a new one, or take it away for public models"));
  }
  // The hub answers 401 for repositories that are not there, too: it does not tell which are private.
  // Some mirrors send no codes: then a refusal is of the repository only where that was asked for.
  if (code == "RepoNotFound" || (file.empty() && (reply.status == 401 || reply.status == 404))) {
    const std::string message =
        str_cat(where, ": no such repository (", reply.status, "): check the name; ", token_advice(settings));
    return reply.status == 401 ? absl::UnauthenticatedError(message) : absl::NotFoundError(message);
  }
  const std::string answer = str_cat(where, ": ", file, file.empty() ? "" : ": ", "the hub answers ", reply.status, " ",
                                     http_reason(reply.status), said.empty() ? "" : ": ",
                                     said.empty() ? "" : in_quotes(said, kMaxServerMessage));
  if (reply.status == 404) return absl::NotFoundError(answer);
  if (reply.status == 401) return absl::UnauthenticatedError(str_cat(answer, "; ", token_advice(settings)));
  if (reply.status == 403) {
    return absl::PermissionDeniedError(str_cat(answer, "; ", token_advice(settings)));
  }
  if (reply.status == 416) return absl::OutOfRangeError(answer);
  if (reply.status == 429) {
    return absl::UnavailableError(str_cat(answer, "; try again later",
                                          settings.token.empty() ? ", or set HF_TOKEN, which has a higher limit" : ""));
  }
  return is_retryable_status(reply.status) ? absl::UnavailableError(str_cat(answer, "; try again later"))
                                           : absl::UnknownError(answer);
}

Status store_error(const RepoName& repo, std::string_view file, std::string_view host, const Transfer::Reply& reply) {
  const std::string answer =
      str_cat(repo.id, file.empty() ? "" : ": ", file, ": ", host, ", to which the hub redirects, answers ",
              reply.status, " ", http_reason(reply.status));
  if (reply.status == 404) return not_found(answer, ": the file's bytes are not there");
  if (reply.status == 401 || reply.status == 403) {
    return absl::PermissionDeniedError(str_cat(answer, "; try again: its links hold for some minutes only"));
  }
  if (reply.status == 416) return absl::OutOfRangeError(answer);
  return is_retryable_status(reply.status) ? absl::UnavailableError(str_cat(answer, "; try again later"))
                                           : absl::UnknownError(answer);
}

bool has_hub_headers(const Transfer::Reply& reply) {
  return find_header(reply.headers, "X-Error-Code") != nullptr ||
         find_header(reply.headers, "X-Error-Message") != nullptr;
}

}  // namespace transept
