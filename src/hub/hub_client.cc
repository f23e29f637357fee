#include "hub/hub_client.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/quoted.h"
#include "hub/hub_errors.h"
#include "hub/hub_url.h"
#include "hub/retry.h"

namespace transept {
namespace {

constexpr int kMaxRedirects = 10;
constexpr std::chrono::minutes kMaxWait{5};
constexpr std::chrono::seconds kSaidWait{2};
constexpr int kMaxConnects = 3;  // where there is no network, two seconds are enough to know
constexpr size_t kMaxPages = 1000;
constexpr std::string_view kUserAgent = "transept/0.1";

bool is_redirect(const Transfer::Reply& reply) {
  return reply.status >= 300 && reply.status < 400 && find_header(reply.headers, "Location") != nullptr;
}

bool is_success(const Transfer::Reply& reply) { return reply.status >= 200 && reply.status < 300; }

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> size_header(const Transfer::Reply& reply, std::string_view name) {
  const std::string* value = find_header(reply.headers, name);
  return value == nullptr ? std::nullopt : whole_number(*value);
}

// Where the bytes of a 206 answer begin.
std::optional<int64_t> range_begin(const Transfer::Reply& reply) {
  const std::string* range = find_header(reply.headers, "Content-Range");
  if (range == nullptr || !range->starts_with("bytes ")) return std::nullopt;
  const std::string_view rest = std::string_view(*range).substr(6);
  return whole_number(rest.substr(0, rest.find('-')));
}

}  // namespace

HubClient::HubClient(const HubSettings& settings, FetchControl& control, int max_tries,
                     std::unique_ptr<Transfer> transfer)
    : settings_(settings), control_(control), max_tries_(max_tries), transfer_(std::move(transfer)) {}

StatusOr<std::unique_ptr<HubClient>> HubClient::create(const HubSettings& settings, FetchControl& control,
                                                       int max_tries) {
  ASSIGN_OR_RETURN(std::unique_ptr<Transfer> transfer, Transfer::create({.user_agent = std::string(kUserAgent),
                                                                         .ca_file = settings.ca_file,
                                                                         .connect_timeout = settings.head_timeout}));
  return std::unique_ptr<HubClient>(new HubClient(settings, control, max_tries, std::move(transfer)));
}

Transfer::Request HubClient::request_of(std::string url) const {
  Transfer::Request request;
  request.url = std::move(url);
  request.stall_timeout = settings_.stall_timeout;
  return request;
}

StatusOr<Transfer::Reply> HubClient::send(const RepoName& repo, std::string_view file, Transfer::Request request,
                                          Redirects redirects, Transfer::Sink sink) {
  ASSIGN_OR_RETURN(const std::string own, url_origin(settings_.endpoint));
  const HttpHeaders headers = request.headers;
  // Bodies of redirects and refusals are not the file's.
  const auto filtered = [&](const Transfer::Reply& reply, std::span<const std::byte> bytes) {
    if (control_.is_stopped()) return Status(absl::CancelledError("stopped"));
    return is_success(reply) ? sink(reply, bytes) : ok_status();
  };
  for (int i = 0; i <= kMaxRedirects; ++i) {
    ASSIGN_OR_RETURN(const std::string origin, url_origin(request.url));
    request.headers = headers;
    if (!settings_.token.empty() && origin == own) {
      request.headers.emplace_back("Authorization", str_cat("Bearer ", settings_.token));
    }
    last_headers_.clear();
    if (control_.is_stopped()) return absl::CancelledError("stopped");
    StatusOr<Transfer::Reply> reply = transfer_->run(request, filtered);
    if (!reply.ok()) return reply;
    last_headers_ = reply->headers;
    if (is_success(*reply) || is_missing_file(*reply)) return reply;
    if (!is_redirect(*reply)) {
      const bool is_hub = origin == own || has_hub_headers(*reply);
      return is_hub ? hub_error(settings_, repo, file, *reply)
                    : store_error(repo, file, origin.substr(origin.find("//") + 2), *reply);
    }
    StatusOr<std::string> target = redirect_target(request.url, *find_header(reply->headers, "Location"));
    if (!target.ok()) return with_prefix(target.status(), str_cat(repo.id, file.empty() ? "" : ": ", file));
    ASSIGN_OR_RETURN(const std::string target_origin, url_origin(*target));
    if (redirects == Redirects::kFollowOwn && target_origin != own) return reply;
    request.url = *std::move(target);
  }
  return absl::UnavailableError(str_cat(repo.id, ": ", file, ": more than ", kMaxRedirects, " redirects"));
}

StatusOr<Transfer::Reply> HubClient::send_again(const RepoName& repo, std::string_view file,
                                                const Transfer::Request& request, Redirects redirects,
                                                std::string* body) {
  for (int failures = 1;; ++failures) {
    if (body != nullptr) body->clear();
    const auto sink = [&](const Transfer::Reply&, std::span<const std::byte> bytes) -> Status {
      if (body == nullptr) return ok_status();
      if (bytes.size() > kMaxAnswerBytes - std::min(body->size(), kMaxAnswerBytes)) {
        return invalid_argument(repo.id, ": an answer of the hub is over the ", kMaxAnswerBytes, " bytes allowed");
      }
      body->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return ok_status();
    };
    StatusOr<Transfer::Reply> reply = send(repo, file, request, redirects, sink);
    const int tries = last_headers_.empty() ? std::min(max_tries_, kMaxConnects) : max_tries_;
    if (!absl::IsUnavailable(reply.status()) || failures >= tries) return reply;
    RETURN_IF_ERROR(wait_after(reply.status(), failures));
  }
}

Status HubClient::wait_after(const Status& error, int failures) {
  const std::optional<std::chrono::seconds> asked = requested_wait(last_headers_, std::time(nullptr));
  if (asked.has_value() && *asked > kMaxWait) {
    return absl::UnavailableError(str_cat(error_message(error), " (the hub asks to wait ", asked->count(), " s)"));
  }
  const std::chrono::milliseconds wait = asked.has_value() ? *asked : backoff(failures);
  if (wait >= kSaidWait) log_warning(error_message(error), ": trying again in ", wait.count() / 1000, " s");
  return control_.wait(wait) ? ok_status() : absl::CancelledError("stopped");
}

StatusOr<RepoInfo> HubClient::info(const RepoName& repo) {
  std::string body;
  RETURN_IF_ERROR(
      send_again(repo, "", request_of(info_url(settings_.endpoint, repo)), Redirects::kFollowAll, &body).status());
  StatusOr<RepoInfo> info = parse_repo_info(body);
  if (info.ok()) return info;
  return with_prefix(info.status(), str_cat(repo.id, ": the answer of ", settings_.endpoint,
                                            " is none of a hub (check HF_ENDPOINT and proxies)"));
}

StatusOr<std::optional<std::vector<ListedFile>>> HubClient::tree(const RepoName& repo, const std::string& commit) {
  std::vector<ListedFile> files;
  std::string url = tree_url(settings_.endpoint, repo, commit);
  for (size_t page = 0; page < kMaxPages; ++page) {
    std::string body;
    StatusOr<Transfer::Reply> reply = send_again(repo, "", request_of(url), Redirects::kFollowAll, &body);
    if (page == 0 && absl::IsNotFound(reply.status())) return std::optional<std::vector<ListedFile>>();
    RETURN_IF_ERROR(reply.status());
    StatusOr<std::vector<ListedFile>> more = parse_tree_page(body);
    if (!more.ok()) return with_prefix(more.status(), str_cat(repo.id, ": the hub's listing"));
    files.insert(files.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
    if (files.size() > kMaxListedFiles) break;
    const std::string* link = find_header(reply->headers, "Link");
    const std::string next = link == nullptr ? "" : next_link(*link);
    if (next.empty()) return std::optional(std::move(files));
    ASSIGN_OR_RETURN(url, redirect_target(url, next));
  }
  return invalid_argument(repo.id, ": the hub's listing has more than the ", kMaxListedFiles, " files allowed");
}

StatusOr<std::optional<RemoteFile>> HubClient::head(const RepoName& repo, const std::string& commit,
                                                    const std::string& file) {
  Transfer::Request request = request_of(file_url(settings_.endpoint, repo, commit, file));
  request.is_head = true;
  request.stall_timeout = settings_.head_timeout;
  request.headers.emplace_back("Accept-Encoding", "identity");  // Content-Length is the file's
  ASSIGN_OR_RETURN(const Transfer::Reply reply, send_again(repo, file, request, Redirects::kFollowOwn, nullptr));
  const std::string* said = find_header(reply.headers, "X-Repo-Commit");
  if (said != nullptr && *said != commit) {
    return invalid_argument(repo.id, ": ", file, ": the hub answers for the commit ", in_quotes(*said), " and not ",
                            commit);
  }
  if (is_missing_file(reply)) return std::optional<RemoteFile>();
  const std::string* etag = find_header(reply.headers, "X-Linked-Etag");
  if (etag == nullptr) etag = find_header(reply.headers, "ETag");
  if (said == nullptr || etag == nullptr) {
    return absl::UnavailableError(str_cat(repo.id, ": ", file, ": the answer of ", settings_.endpoint, " has no ",
                                          said == nullptr ? "X-Repo-Commit" : "ETag",
                                          ": it is none of a hub (check HF_ENDPOINT and proxies)"));
  }
  RemoteFile found;
  found.etag = normalized_etag(*etag);
  if (!is_blob_name(found.etag)) {
    return invalid_argument(repo.id, ": ", file, ": the ETag ", in_quotes(found.etag), " cannot name a file");
  }
  found.size = size_header(reply, "X-Linked-Size");
  if (!found.size.has_value() && !is_redirect(reply)) found.size = size_header(reply, "Content-Length");
  return std::optional(std::move(found));
}

Status HubClient::read(const RepoName& repo, const std::string& commit, const std::string& file, int64_t offset,
                       const Receiver& receiver) {
  Transfer::Request request = request_of(file_url(settings_.endpoint, repo, commit, file));
  if (offset > 0) request.headers.emplace_back("Range", str_cat("bytes=", offset, "-"));
  request.headers.emplace_back("Accept-Encoding", "identity");
  bool has_begun = false;
  const auto sink = [&](const Transfer::Reply& reply, std::span<const std::byte> bytes) -> Status {
    const bool is_resumed = offset > 0 && !std::exchange(has_begun, true);
    if (is_resumed && reply.status != 206) RETURN_IF_ERROR(receiver.on_restart());
    if (is_resumed && reply.status == 206 && range_begin(reply) != offset) {
      return absl::DataLossError(str_cat(repo.id, ": ", file, ": the server sends another range than it was asked"));
    }
    return receiver.on_bytes(bytes);
  };
  ASSIGN_OR_RETURN(const Transfer::Reply reply, send(repo, file, std::move(request), Redirects::kFollowAll, sink));
  return is_missing_file(reply) ? hub_error(settings_, repo, file, reply) : ok_status();
}

}  // namespace transept
