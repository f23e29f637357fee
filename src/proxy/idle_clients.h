// The connections of a proxy to its decode instances that no request uses, by the instances' URLs. Owns them.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/http_client.h"

namespace transept {

class IdleClients final {
 public:
  static constexpr size_t kMaxOfOne = 64;  // of one instance

  explicit IdleClients(const HttpClient::Options& options) : options_(options) {}

  struct Client {
    std::unique_ptr<HttpClient> http;
    std::string prefix;  // of paths: the URL's, without a '/' at its end
  };
  // One that is idle, or a new one, which connects with its first request. Errors: those of HttpUrl::parse().
  StatusOr<Client> take(const std::string& url);
  // Closes it if there are kMaxOfOne.
  void keep(const std::string& url, std::unique_ptr<HttpClient> client);
  // Closes those of URLs that are not in `urls`, and those that the instance has closed.
  void prune(const std::set<std::string>& urls);

 private:
  using Clients = std::vector<std::unique_ptr<HttpClient>>;

  const HttpClient::Options options_;
  Mutex mutex_;
  std::map<std::string, Clients> clients_ ABSL_GUARDED_BY(mutex_);  // no list is empty
};

}  // namespace transept
