// What is kept for later requests, through a real server: counted, kept apart by keys and salts, and deleted by an
// admin key alone.
#include "server/cache_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/prometheus_testing.h"
#include "server/served_model_testing.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::at;
using testing::default_server_options;
using ::testing::HasSubstr;
using testing::ServedModel;

constexpr std::string_view kHello = R"({"prompt": "hello", "max_tokens": 4})";

HttpHeaders with_key(std::string_view key) { return {{"Authorization", str_cat("Bearer ", key)}}; }

// usage.prompt_tokens_details.cached_tokens of an answer.
int64_t num_cached(const HttpClient::Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return at(ServedModel::json(reply), "usage", "prompt_tokens_details", "cached_tokens").as_int();
}

std::string answer_of(const HttpClient::Reply& reply) {
  return std::string(at(ServedModel::json(reply), "choices", 0, "text").as_string());
}

// DELETE /v1/cache, with these headers.
HttpClient::Reply erase(const ServedModel& served, const HttpHeaders& headers) {
  HttpClient::Reply reply;
  HttpClient client = served.client();
  HttpHeaders all = {{"Host", "localhost"}};
  all.insert(all.end(), headers.begin(), headers.end());
  const HttpClient::Sink sink{.on_head = [&](int status, const HttpHeaders&) { return reply.status = status, true; },
                              .on_piece = [&](std::string_view piece) { return reply.body += piece, true; },
                              .is_wanted = [] { return true; }};
  const Status passed = client.pass("DELETE", "/v1/cache", all, "", sink);
  EXPECT_TRUE(passed.ok()) << passed;
  return reply;
}

int64_t num_encodes(ServedModel& served) {
  return served.server().context()->engine.snapshot().executor.num_encoder_runs;
}

TEST(CacheSalts, KeysAndSaltsAreKeptApartAndCannotBeForged) {
  const CacheSalts salts;
  const auto salt = [&](CacheScope scope, std::string_view key, std::optional<std::string> own = std::nullopt) {
    return salts.salt_of(scope, key, own);
  };
  EXPECT_EQ(salt(CacheScope::kGlobal, "a"), "");
  EXPECT_EQ(salt(CacheScope::kGlobal, "a", "s"), "s");
  EXPECT_EQ(salt(CacheScope::kKey, "a"), salt(CacheScope::kKey, "a"));
  EXPECT_NE(salt(CacheScope::kKey, "a"), salt(CacheScope::kKey, "b"));
  EXPECT_NE(salt(CacheScope::kKey, "a"), salt(CacheScope::kKey, "a", "s"));
  EXPECT_NE(salt(CacheScope::kKey, "ab", "c"), salt(CacheScope::kKey, "a", "bc")) << "where the key ends counts";
  EXPECT_NE(salt(CacheScope::kKey, "a"), CacheSalts().salt_of(CacheScope::kKey, "a", std::nullopt));
}

TEST(Cache, ARepeatedRequestIsCountedAndComputedOnce) {
  ServedModel served(default_server_options(), testing::bundled_model(), true);
  served.load();
  const HttpClient::Reply first = served.post("/v1/completions", kHello);
  EXPECT_EQ(num_cached(first), 0);
  const int64_t encodes = num_encodes(served);
  const HttpClient::Reply second = served.post("/v1/completions", kHello);
  EXPECT_EQ(num_cached(second),
            at(ServedModel::json(second), "usage", "prompt_tokens_details", "encoder_tokens").as_int());
  EXPECT_EQ(answer_of(first), answer_of(second));
  EXPECT_EQ(num_encodes(served), encodes);
  const std::string metrics = served.get("/metrics").body;
  for (const char* line : {"transept:encoder_cache_hits_total{model_name=", "transept:encoder_cache_misses_total{",
                           "transept:encoder_cache_evictions_total{", "transept:encoder_cache_expirations_total{",
                           "transept:encoder_cache_bytes{", "transept:encoder_cache_entries{",
                           "transept:prefix_cache_queries_total{", "transept:prefix_cache_hits_total{"}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST(Cache, AStreamsUsageSaysWhatWasFound) {
  ServedModel served(default_server_options(), testing::bundled_model(), true);
  served.load();
  const HttpClient::Reply whole = served.post("/v1/completions", kHello);
  const HttpClient::Reply again = served.post("/v1/completions", kHello);
  const HttpClient::Reply stream =
      served.post("/v1/completions",
                  R"({"prompt": "hello", "max_tokens": 4, "stream": true, "stream_options": {"include_usage": true}})");
  EXPECT_NE(num_cached(again), num_cached(whole));
  EXPECT_THAT(stream.body, HasSubstr(at(ServedModel::json(again), "usage").dump()));
}

TEST(Cache, EachKeyFindsItsOwnAlone) {
  ServerOptions options = default_server_options();
  options.api_keys = {"first-key", "second-key"};
  options.cache_scope = CacheScope::kKey;
  ServedModel served(options, testing::bundled_model(), true);
  served.load();
  EXPECT_EQ(num_cached(served.post("/v1/completions", kHello, with_key("first-key"))), 0);
  EXPECT_EQ(num_cached(served.post("/v1/completions", kHello, with_key("second-key"))), 0);
  EXPECT_GT(num_cached(served.post("/v1/completions", kHello, with_key("second-key"))), 0);
  EXPECT_GT(num_cached(served.post("/v1/completions", kHello, with_key("first-key"))), 0);
  EXPECT_EQ(num_encodes(served), 2);
}

TEST(Cache, ARequestsOwnSaltKeepsItApart) {
  ServedModel served(default_server_options(), testing::bundled_model(), true);
  served.load();
  const auto ask = [&](const std::string& salt) {
    Json body = Json::object();
    body.set("prompt", "hello");
    body.set("cache_salt", salt);
    return served.post("/v1/completions", body.dump());
  };
  EXPECT_EQ(num_cached(served.post("/v1/completions", kHello)), 0);
  EXPECT_EQ(num_cached(ask("mine")), 0);
  EXPECT_EQ(num_cached(ask(std::string("mine\0x", 6))), 0) << "bytes of any kind";
  EXPECT_EQ(num_cached(ask(std::string(1024, 's'))), 0);
  EXPECT_GT(num_cached(ask("mine")), 0);
  for (const std::string& bad : {std::string(), std::string(1 << 20, 's'), std::string(1025, 's')}) {
    const HttpClient::Reply reply = ask(bad);
    EXPECT_EQ(reply.status, 400) << bad.size();
    EXPECT_EQ(at(ServedModel::json(reply), "error", "param").as_string(), "cache_salt");
  }
  EXPECT_EQ(served.post("/v1/completions", R"({"prompt": "hello", "cache_salt": 7})").status, 400);
  EXPECT_GT(num_cached(served.post("/v1/completions", R"({"prompt": "hello", "cache_salt": null})")), 0);
}

TEST(Cache, AnAdminKeyDeletesItAndNoOther) {
  ServerOptions options = default_server_options();
  options.api_keys = {"key"};
  options.admin_keys = {"admin"};
  ServedModel served(options, testing::bundled_model(), true);
  served.load();
  EXPECT_EQ(num_cached(served.post("/v1/completions", kHello, with_key("admin"))), 0) << "good for other routes, too";
  for (const char* key : {"key", "", "admin2"}) EXPECT_EQ(erase(served, with_key(key)).status, 401) << key;
  EXPECT_GT(num_cached(served.post("/v1/completions", kHello, with_key("key"))), 0);
  const HttpClient::Reply deleted = erase(served, with_key("admin"));
  EXPECT_EQ(deleted.status, 200) << deleted.body;
  EXPECT_GT(at(ServedModel::json(deleted), "num_freed_blocks").as_int(), 0);
  EXPECT_EQ(at(ServedModel::json(erase(served, with_key("admin"))), "num_freed_blocks").as_int(), 0);
  EXPECT_EQ(num_cached(served.post("/v1/completions", kHello, with_key("key"))), 0);
  ServedModel open;
  open.load();
  const HttpClient::Reply refused = erase(open, {});
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("--admin-api-key"));
}

}  // namespace
}  // namespace transept
