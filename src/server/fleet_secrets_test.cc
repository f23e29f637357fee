// Encode and decode instances whose secrets differ: they leave each other alone, and clients hear which differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "disagg/instance_calls.h"
#include "server/fleet_testing.h"
#include "server/prometheus_testing.h"

namespace transept::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class FleetOfTwoSecretsTest : public FleetTest {
 protected:
  // Both instances of the fleet; null: no secret.
  void start_with(std::shared_ptr<const EcSecret> encoders, std::shared_ptr<const EcSecret> decoders) {
    secret_ = std::move(encoders);
    add_encoder();
    secret_ = std::move(decoders);
    add_decoder();
  }
  // A client is told within seconds, and what is in the bodies of both replies: of a completion, and of an encode that
  // is asked for directly.
  void expect_refused(const std::string& of_decoder, const std::string& of_encoder) {
    const auto begin = std::chrono::steady_clock::now();
    const auto reply = decoder_->client().post("/v1/completions", "application/json", completion(0));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(15));
    EXPECT_EQ(reply->status, 503);
    EXPECT_THAT(reply->body, HasSubstr(of_decoder));
    EXPECT_NE(find_header(reply->headers, "Retry-After"), nullptr);
    const std::string body = R"({"prompt": "word", "consumer": "p0"})";
    const EcSecret* const secret = encoders_[0]->server().context()->instance->secret();
    HttpHeaders code;
    if (secret != nullptr) code.emplace_back(kInstanceCodeHeader, instance_code(*secret, "POST", "/v1/encode", body));
    const auto direct = encoders_[0]->client().post("/v1/encode", "application/json", body, code);
    EXPECT_EQ(direct->status, 503);
    EXPECT_THAT(direct->body, HasSubstr(of_encoder));
    EXPECT_EQ(num_strangers(), 1);
    EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 0);
  }
  // Encode instances of another secret, as the decode instance counts them.
  double num_strangers() const {
    const auto text = PrometheusText::parse(decoder_->client().get("/metrics")->body);
    const auto served =
        text->families().at("transept:num_requests_running").samples.at("transept:num_requests_running");
    return text->value(
        "transept_ec_peers",
        {{"model_name", served.begin()->first.at("model_name")}, {"role", "encode"}, {"state", "other_secret"}});
  }

  const std::shared_ptr<const EcSecret> one_ = secret_;
};

TEST_F(FleetOfTwoSecretsTest, ADecodeInstanceWithoutTheSecretSaysSo) {
  start_with(one_, nullptr);
  expect_refused("e0 has an --ec-secret-file, and this instance has none",
                 "p0 has no --ec-secret-file, and this instance has one");
}

TEST_F(FleetOfTwoSecretsTest, AnEncodeInstanceWithoutTheSecretIsNamed) {
  start_with(nullptr, one_);
  expect_refused("e0 has no --ec-secret-file, and this instance has one",
                 "p0 has an --ec-secret-file, and this instance has none");
}

TEST_F(FleetOfTwoSecretsTest, AnotherSecretIsNamed) {
  start_with(std::make_shared<const EcSecret>(std::as_bytes(std::span("a secret of another fleet", 25))), one_);
  expect_refused("e0 has another --ec-secret-file than this instance",
                 "p0 has another --ec-secret-file than this instance");
  // One of the fleet beside it encodes everything.
  add_encoder();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(decoder_->client().post("/v1/completions", "application/json", completion(i))->status, 200);
  }
  EXPECT_EQ(encoders_[0]->snapshot().executor.num_encoder_runs, 0);
}

}  // namespace
}  // namespace transept::testing
