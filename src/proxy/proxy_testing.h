// For tests: a proxy before servers that are decode instances as far as it sees.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_server_testing.h"
#include "proxy/proxy_service.h"

namespace transept::testing {

// A decode instance, as far as a proxy sees it.
struct Upstream {
  explicit Upstream(std::string name, RecordingService::Handler handler = nullptr) {
    if (handler != nullptr) service.handler = std::move(handler);
    HttpServerOptions options;
    options.port = 0;
    options.max_unsent_bytes = size_t{128} << 20;  // an echo goes on while the client is late
    server = std::move(HttpServer::start(options, service)).value();
    record.id = {std::move(name), 1};
    record.role = InstanceRole::kDecode;
    record.load.num_free_slots = 1 << 20;
    record.url = "http://" + server->address();
  }

  RecordingService service;
  std::unique_ptr<HttpServer> server;
  InstanceRecord record;
};

class ProxyTest : public ::testing::Test {
 protected:
  void start(const std::vector<const Upstream*>& upstreams) {
    std::vector<InstanceRecord> records;
    records.reserve(upstreams.size());
    for (const Upstream* upstream : upstreams) records.push_back(upstream->record);
    pool_.set_records(records);
    service_ = std::make_unique<ProxyService>(options_, pool_);
    http_.port = 0;
    server_ = std::move(HttpServer::start(http_, *service_)).value();
  }
  ~ProxyTest() override {
    if (server_ != nullptr) server_->stop();
  }
  HttpClient client() const { return HttpClient("127.0.0.1", server_->port(), {}); }
  HttpClient::Reply post(std::string_view path, std::string_view body, const HttpHeaders& headers = {}) {
    auto reply = client().post(path, "application/json", body, headers);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : HttpClient::Reply{};
  }

  ProxyService::Options options_;
  HttpServer::Options http_;
  DecoderPool pool_{{.seed = 1}};
  std::unique_ptr<ProxyService> service_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace transept::testing
