#include "proxy/idle_clients.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace transept {

StatusOr<IdleClients::Client> IdleClients::take(const std::string& url) {
  ASSIGN_OR_RETURN(HttpUrl parsed, HttpUrl::parse(url));
  Client client{nullptr, std::move(parsed.path)};
  while (client.prefix.ends_with('/')) client.prefix.pop_back();
  {
    const MutexLock lock(mutex_);
    if (const auto idle = clients_.find(url); idle != clients_.end()) {
      client.http = std::move(idle->second.back());
      idle->second.pop_back();
      if (idle->second.empty()) clients_.erase(idle);
    }
  }
  if (client.http == nullptr) client.http = std::make_unique<HttpClient>(std::move(parsed.host), parsed.port, options_);
  return client;
}

void IdleClients::keep(const std::string& url, std::unique_ptr<HttpClient> client) {
  if (!client->is_connected()) return;
  const MutexLock lock(mutex_);
  Clients& idle = clients_[url];
  if (idle.size() < kMaxOfOne) idle.push_back(std::move(client));
}

void IdleClients::prune(const std::set<std::string>& urls) {
  std::vector<std::string> known;
  {
    const MutexLock lock(mutex_);
    for (const auto& [url, clients] : clients_) known.push_back(url);
  }
  for (const std::string& url : known) {
    Clients closed;                // outside the lock
    const MutexLock lock(mutex_);  // for one instance at a time
    const auto found = clients_.find(url);
    if (found == clients_.end()) continue;
    Clients& idle = found->second;
    const auto is_kept = [&](const auto& client) { return urls.contains(url) && client->is_connected(); };
    const auto rest = std::stable_partition(idle.begin(), idle.end(), is_kept);
    std::move(rest, idle.end(), std::back_inserter(closed));
    idle.erase(rest, idle.end());
    if (idle.empty()) clients_.erase(found);
  }
}

}  // namespace transept
