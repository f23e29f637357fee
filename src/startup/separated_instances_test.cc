// An encode and a decode instance as two processes have them, on threads of their own: both engines, their connectors,
// the broker of one machine and ZeroMQ between them. For every checkpoint all answers are the whole model's to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "async/async_engine.h"
#include "base/folder_testing.h"
#include "disagg/ec_connector.h"
#include "disagg/local_broker.h"
#include "disagg/local_server.h"
#include "disagg/zmq_bulk.h"
#include "engine/family_requests_testing.h"
#include "rank/encoder_model_runner.h"
#include "rank/local_executor.h"
#include "rank/model_fingerprint.h"

namespace transept {
namespace {

using testing::Circumstances;
using testing::TestFolder;

// What an instance has beside its engine.
struct Post {
  Post(const TestFolder& folder, std::string name, uint64_t incarnation) {
    const InstanceId id{std::move(name), incarnation};
    auto writer = std::make_shared<FrameWriter>(incarnation, nullptr);
    broker = LocalBroker::connect(folder.path() + "/broker").value();
    std::shared_ptr<BulkTransport> bulk = ZmqBulk::create("ipc://" + folder.path() + "/" + id.name, writer).value();
    InstanceRecord record;
    record.id = id;
    record.bulk_address = bulk->address();
    const Status announced = broker->announce(record, std::chrono::minutes(10));
    CHECK(announced.ok(), error_message(announced));
    EcConnector::Options options;
    options.self = id;
    connector = std::make_unique<EcConnector>(options, broker, std::move(bulk), writer);
  }

  std::shared_ptr<Broker> broker;
  std::unique_ptr<EcConnector> connector;
};

struct Result {
  std::vector<int32_t> ids;
  double logprob = 0;
  bool operator==(const Result&) const = default;
};

class SeparatedInstances : public testing::FamilyRequests {
 protected:
  // The engines take it with them.
  std::unique_ptr<EncoderEngine> make_encoder(const Circumstances& setup, EcConnector& connector) const {
    std::shared_ptr<WeightMap> weights = WeightMap::open(config_.path).value();
    auto runner = EncoderModelRunner::create(config_, weights, options_of(setup));
    CHECK(runner.ok(), error_message(runner.status()));
    EncoderEngine::Options options = EncoderEngine::Options::of((*runner)->info());
    options.scheduler.max_output_bytes = uint64_t{8} << 20;
    options.model = model_fingerprint(config_, *weights, {}).value();
    return std::make_unique<EncoderEngine>(options, std::move(runner).value(), connector, clock_);
  }
  std::unique_ptr<LLMEngine> make_decoder(const Circumstances& setup, EcConnector& connector) const {
    ModelRunnerOptions rank = options_of(setup);
    rank.part = ModelPart::kDecoder;
    rank.takes_remote_rows = true;
    rank.ec_buffer_memory = setup.pool / 4;
    std::shared_ptr<WeightMap> weights = WeightMap::open(config_.path).value();
    auto runner = EncoderDecoderModelRunner::create(config_, weights, rank);
    CHECK(runner.ok(), error_message(runner.status()));
    auto executor = std::make_unique<LocalExecutor>(std::move(runner).value());
    LLMEngine::Options options = LLMEngine::Options::of(executor->info());
    options.blocks.watermark = 0;
    options.remote.connector = &connector;
    options.remote.model = model_fingerprint(config_, *weights, {}).value();
    CHECK(RemoteInputs::check(options.remote, *executor).ok());
    return std::make_unique<LLMEngine>(options, std::move(executor), nullptr, clock_);
  }

  static SamplingParams params(int32_t which) {
    SamplingParams params;
    params.max_tokens = 10;
    params.seed = static_cast<uint64_t>(which);
    params.temperature = which % 3 == 1 ? 1.0f : 0.0f;
    params.logprobs = 0;
    return params;
  }
  static Result result_of(const RequestOutput& output) {
    return {output.outputs.at(0).token_ids, output.outputs.at(0).cumulative_logprob};
  }

  std::map<std::string, Result> run_whole(const Circumstances& setup, int32_t count) {
    const std::unique_ptr<LLMEngine> whole = make_engine(setup);
    for (int32_t i = 0; i < count; ++i) {
      const EncoderDecoderInputs inputs = inputs_of(whole->executor().info().spec, i % 4);
      CHECK(whole->add_request(std::to_string(i), inputs, params(i)).ok());
    }
    std::vector<RequestOutput> outputs;
    while (whole->has_unfinished_requests()) CHECK(whole->step(outputs).ok());
    std::map<std::string, Result> results;
    for (const RequestOutput& output : outputs) results[output.request_id] = result_of(output);
    return results;
  }
};

TEST_P(SeparatedInstances, AnswerAsOneProcess) {
  constexpr int32_t kCount = 12;
  const Circumstances setup{.name = "cpu"};
  const std::map<std::string, Result> whole = run_whole(setup, kCount);

  const TestFolder folder;
  const auto server = LocalServer::start(folder.path() + "/broker", 1, {}).value();
  Post encode(folder, "e0", 11), decode(folder, "p0", 22);
  const ModelSpec spec = make_engine(setup)->executor().info().spec;
  std::map<std::string, Result> results;
  {
    AsyncEngine encoder(make_encoder(setup, *encode.connector), {}, clock_);
    AsyncEngine decoder(make_decoder(setup, *decode.connector), {}, clock_);
    std::vector<RequestStream> answers, encodes;
    const size_t num_items = inputs_of(spec, 0).items.size();
    for (int32_t i = 0; i < kCount; ++i) {
      EncoderDecoderInputs inputs = inputs_of(spec, i % 4);
      RequestSpec encoded{.id = std::to_string(i)};
      encoded.inputs.items = testing::take_elsewhere(inputs.items);
      RequestSpec asked{.id = std::to_string(i), .inputs = std::move(inputs), .params = params(i)};
      encoded.consumer = RowsConsumer{decode.connector->self(), 0, std::chrono::seconds(60)};
      // Either may be first.
      if (i % 2 == 0) encodes.push_back(encoder.add_request(encoded).value());
      answers.push_back(decoder.add_request(std::move(asked)).value());
      if (i % 2 == 1) encodes.push_back(encoder.add_request(encoded).value());
    }
    for (RequestStream& stream : encodes) {
      const StatusOr<RequestOutput> output = stream.next();
      ASSERT_TRUE(output.ok()) << stream.request_id() << ": " << error_message(output.status());
      EXPECT_EQ(output->encoded_items.size(), num_items);
      EXPECT_TRUE(output->outputs.empty());
    }
    for (RequestStream& stream : answers) {
      const StatusOr<RequestOutput> output = stream.next();
      ASSERT_TRUE(output.ok()) << stream.request_id() << ": " << error_message(output.status());
      results[stream.request_id()] = result_of(*output);
    }
    EXPECT_EQ(decoder.snapshot().executor.num_encoder_runs, 0);
    EXPECT_EQ(decoder.snapshot().stats.num_local_encodes, 0);
    EXPECT_LE(encoder.snapshot().executor.num_encoder_runs, kCount * static_cast<int64_t>(num_items));
  }
  EXPECT_EQ(results, whole);
}

TEST_P(SeparatedInstances, OfTwoModelsRefuseEachOther) {
  const Circumstances setup{.name = "cpu"};
  const TestFolder folder;
  const auto server = LocalServer::start(folder.path() + "/broker", 1, {}).value();
  Post encode(folder, "e0", 11), decode(folder, "p0", 22);
  std::unique_ptr<LLMEngine> other = make_decoder(setup, *decode.connector);
  const ModelSpec spec = other->executor().info().spec;
  auto runner = EncoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options_of(setup));
  EncoderEngine::Options options = EncoderEngine::Options::of((*runner)->info());
  options.scheduler.max_output_bytes = uint64_t{8} << 20;
  options.model.bytes[0] = std::byte{1};
  AsyncEngine encoder(std::make_unique<EncoderEngine>(options, std::move(runner).value(), *encode.connector, clock_),
                      {}, clock_);
  AsyncEngine decoder(std::move(other), {}, clock_);
  RequestSpec encoded{.id = "a"};
  encoded.inputs.items = inputs_of(spec, 0).items;
  encoded.consumer = RowsConsumer{decode.connector->self(), 0, std::chrono::seconds(60)};
  const Status refused = encoder.add_request(std::move(encoded)).value().next().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, SeparatedInstances, ::testing::ValuesIn(testing::in_turn(testing::folders(), 1)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
