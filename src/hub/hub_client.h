// The hub's interface, as huggingface_hub uses it: what a repository holds, what a file is, and its bytes. Sends the
// token to the endpoint's own scheme, host and port alone. Failed requests are sent again (hub/retry.h). Not
// thread-safe: each thread has its own, and its own connection. Borrows settings and control.
//
// Errors of all calls: those of hub_error() and Transfer::run, naming the repository; kCancelled after stop().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/fetch_control.h"
#include "hub/hub_settings.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"
#include "hub/transfer.h"

namespace transept {

// What a HEAD request says of a file.
struct RemoteFile {
  std::string etag;             // a blob's name: X-Linked-Etag, else ETag
  std::optional<int64_t> size;  // X-Linked-Size, else Content-Length
};

class HubClient final {
 public:
  // `max_tries`: of a request (at most 3 where no answer comes at all); also of a body's, without a byte between them.
  static StatusOr<std::unique_ptr<HubClient>> create(const HubSettings& settings, FetchControl& control, int max_tries);

  StatusOr<RepoInfo> info(const RepoName& repo);
  // All pages. Unset: the hub has no such interface (some mirrors).
  StatusOr<std::optional<std::vector<ListedFile>>> tree(const RepoName& repo, const std::string& commit);
  // Unset: there is no such file. Errors: also kUnavailable for an answer without a commit or an ETag, and
  // kInvalidArgument for an ETag that names no blob, or another commit's answer.
  StatusOr<std::optional<RemoteFile>> head(const RepoName& repo, const std::string& commit, const std::string& file);

  // Passes the file's bytes from `offset` on to `on_bytes`: all that come. `on_restart` is called first if the server
  // sends the file from its beginning though `offset` is not 0. One try: the caller knows what has come.
  struct Receiver {
    FunctionRef<Status()> on_restart;
    FunctionRef<Status(std::span<const std::byte>)> on_bytes;
  };
  Status read(const RepoName& repo, const std::string& commit, const std::string& file, int64_t offset,
              const Receiver& receiver);

  // Waits as long as the last answer asks, else by backoff(); warns of waits of two seconds or more. Returns `error`
  // instead if the wait would be over five minutes, and kCancelled after stop().
  Status wait_after(const Status& error, int failures);

  int max_tries() const { return max_tries_; }
  const HubSettings& settings() const { return settings_; }
  FetchControl& control() const { return control_; }

 private:
  HubClient(const HubSettings& settings, FetchControl& control, int max_tries, std::unique_ptr<Transfer> transfer);

  enum class Redirects { kFollowAll, kFollowOwn };  // kFollowOwn: one to another host is the answer
  // One request, with its redirects. An answer that is neither 2xx nor 404 nor (kFollowOwn) a redirect is an error.
  StatusOr<Transfer::Reply> send(const RepoName& repo, std::string_view file, Transfer::Request request,
                                 Redirects redirects, Transfer::Sink sink);
  StatusOr<Transfer::Reply> send_again(const RepoName& repo, std::string_view file, const Transfer::Request& request,
                                       Redirects redirects, std::string* body);
  Transfer::Request request_of(std::string url) const;

  const HubSettings& settings_;
  FetchControl& control_;
  const int max_tries_;
  std::unique_ptr<Transfer> transfer_;
  HttpHeaders last_headers_;  // of the last answer
};

}  // namespace transept
