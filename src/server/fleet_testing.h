// For tests: encode and decode instances as servers of their own, over the broker of one machine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_testing.h"
#include "disagg/local_server.h"
#include "server/served_model_testing.h"

namespace transept::testing {

class Member final {
 public:
  Member(const TestFolder& folder, InstanceRole role, std::string name, const std::string& model,
         std::shared_ptr<const EcSecret> secret = nullptr, EngineConfig config = {},
         const AccessLog::Options& log = {.is_on = false}) {
    config.caches_inputs = config.caches_prefixes = false;  // usage does not depend on what was asked before
    ServerOptions options = default_server_options();
    options.http.port = 0;
    options.role = role;
    server_ = std::move(Server::start(std::move(options), log, clock_)).value();
    Instance::Options instance;
    instance.role = role;
    instance.name = std::move(name);
    instance.broker = str_cat("local:", folder.path(), "/broker");
    instance.secret = std::move(secret);
    instance.url = str_cat("http://", server_->http().address());
    auto connected = Instance::connect(instance);
    CHECK(connected.ok(), error_message(connected.status()));
    config.model = model;
    config.threads = 1;
    config.kv_cache_memory = uint64_t{32} << 20;
    auto loaded = load_engine(config, clock_, (*connected)->links());
    CHECK(loaded.ok(), error_message(loaded.status()));
    server_->serve(std::move(loaded).value(), std::move(connected).value());
  }

  Server& server() { return *server_; }
  HttpClient client() const { return HttpClient("127.0.0.1", server_->http().port(), {}); }
  std::string url() const { return str_cat("http://", server_->http().address()); }
  EngineSnapshot snapshot() const { return server_->context()->engine.snapshot(); }

 private:
  SteadyClock clock_;
  std::unique_ptr<Server> server_;
};

class FleetTest : public ::testing::Test {
 protected:
  void add_encoder(const std::string& model = bundled_model(), const EngineConfig& config = {}) {
    encoders_.push_back(std::make_unique<Member>(folder_, InstanceRole::kEncode, str_cat("e", encoders_.size()), model,
                                                 secret_, config, log_));
  }
  void add_decoder(const std::string& model = bundled_model(), const EngineConfig& config = {}) {
    decoder_ = decoder("p0", model, config);
  }
  std::unique_ptr<Member> decoder(const std::string& name, const std::string& model = bundled_model(),
                                  const EngineConfig& config = {}) {
    return std::make_unique<Member>(folder_, InstanceRole::kDecode, name, model, secret_, config, log_);
  }
  void start(const std::string& model = bundled_model(), int num_encoders = 1) {
    for (int i = 0; i < num_encoders; ++i) add_encoder(model);
    add_decoder(model);
  }

  static std::string completion(int which) {
    const std::string more = which % 3 == 1   ? R"(, "temperature": 0.9, "seed": 5, "n": 2)"
                             : which % 3 == 2 ? R"(, "num_beams": 3, "logprobs": 2)"
                                              : R"(, "logprobs": 1)";
    return str_cat(R"({"prompt": ")", "word",
                   std::string(static_cast<size_t>(1 + which % 9), static_cast<char>('a' + which % 26)),
                   R"(", "max_tokens": 12)", more, "}");
  }
  // Of completions 0 to count - 1, asked for at once: the choices.
  template <typename MakeClient>
  static std::vector<std::string> answers(const MakeClient& make_client, int count) {
    std::vector<std::string> texts(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        HttpClient client = make_client();
        const auto reply = client.post("/v1/completions", "application/json", completion(i));
        if (!reply.ok()) return;
        const auto body = Json::parse(reply->body);
        texts[static_cast<size_t>(i)] = reply->status == 200 ? at(*body, "choices").dump() : reply->body;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return texts;
  }

  AccessLog::Options log_ = {.is_on = false};
  const TestFolder folder_;
  std::shared_ptr<const EcSecret> secret_ =
      std::make_shared<const EcSecret>(std::as_bytes(std::span("a secret of the fleet", 21)));
  std::unique_ptr<LocalServer> broker_ = LocalServer::start(folder_.path() + "/broker", 1, {}).value();
  std::vector<std::unique_ptr<Member>> encoders_;
  std::unique_ptr<Member> decoder_;
};

}  // namespace transept::testing
