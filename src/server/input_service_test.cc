// The service of its own that answers the inputs of a decode instance without a server. The routes of the server's API
// are the fleets' tests'.
#include "server/input_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/content_digest_testing.h"
#include "disagg/inproc_broker.h"
#include "disagg/instance_calls.h"
#include "server/transcription_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

HttpRequest request_of(std::string path, std::string method = "GET") {
  HttpRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.peer_is_loopback = true;
  return request;
}

HttpResponse answer_of(InputService& service, HttpRequest request) {
  const auto client = std::make_shared<testing::Client>();
  service.on_request(std::move(request), nullptr, client);
  return client->answer();
}

TEST(InputService, AnswersOnceItsAskerIsThere) {
  InputService service(nullptr);
  const EcInput input{"r1", 3};
  EXPECT_EQ(answer_of(service, request_of(inputs_path(input))).status, 503);
  TicketAsker::Options options;
  options.self = {"p0", 22};
  TicketAsker asker(options, std::make_shared<InprocBroker>(std::make_shared<InprocHub>(InprocHub::Options())));
  asker.start(std::make_shared<EcInbox>(10, nullptr));
  service.set_asker(&asker);
  EXPECT_EQ(answer_of(service, request_of(inputs_path(input))).status, 404) << "nothing is asked for";
  asker.ask({input,
             testing::digest_of(5),
             {},
             3,
             std::make_shared<EncoderItem>(std::vector<int32_t>{7, 8, 9}),
             std::chrono::seconds(100)});
  const HttpResponse found = answer_of(service, request_of(inputs_path(input)));
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(found.content_type, "application/x-transept-features");
  EXPECT_FALSE(found.body.empty());
  HttpRequest stranger = request_of(inputs_path(input));
  stranger.peer_is_loopback = false;
  EXPECT_EQ(answer_of(service, stranger).status, 401);
  EXPECT_EQ(answer_of(service, request_of(inputs_path({"r1", 2}))).status, 404);
}

TEST(InputService, KnowsItsPathAndThreeMethods) {
  InputService service(nullptr);
  for (const char* const method : {"GET", "HEAD", "POST"}) {
    const HttpService::Decision decision = service.on_head(request_of(inputs_path({"r1", 3}), method));
    EXPECT_FALSE(decision.refusal.has_value()) << method;
    EXPECT_EQ(decision.max_body_bytes, size_t{64} << 10);
  }
  EXPECT_EQ(service.on_head(request_of(inputs_path({"r1", 3}), "PUT")).refusal->status, 404);
  EXPECT_EQ(service.on_head(request_of("/v1/input")).refusal->status, 404);
  const HttpResponse error = service.on_error(413, "too long", "id");
  EXPECT_EQ(error.status, 413);
  EXPECT_THAT(error.body, HasSubstr("too long"));
}

}  // namespace
}  // namespace transept
