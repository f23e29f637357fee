#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/log.h"
#include "capi/capi_testing.h"

namespace transept::testing {
namespace {

class RequestFunctions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = load_model(model_dir("bart-float32")).release();
    set_log_level(LogLevel::kError);
  }
  static void TearDownTestSuite() { FreeHandle()(model_); }

  transept_code fails(const transept_request& request) {
    transept_result* result = nullptr;
    const transept_code code = transept_generate(model_, &request, &result, error_.out());
    EXPECT_EQ(result, nullptr);
    return code;
  }
  transept_code fails(const std::string& fields) { return fails(request_of(fields)); }

  static transept_model* model_;
  CallError error_;
};
transept_model* RequestFunctions::model_ = nullptr;

TEST_F(RequestFunctions, AnswersAreTheReferences) {
  const std::vector<Json> requests = golden_lines("bart-float32/requests.jsonl");
  const std::vector<Json> expected = golden_lines("bart-float32/expected.jsonl");
  ASSERT_EQ(requests.size(), expected.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const Owned<transept_result> result = generate(model_, requests[i].dump());
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(our_ids(result.get()), wanted_ids(expected[i])) << requests[i].dump();
    const Json& output = expected[i].find("outputs")->as_array().front();
    EXPECT_EQ(to_string(transept_result_text(result.get())), output.find("text")->as_string());
    const Json json = json_of(result.get());
    EXPECT_EQ(json.find("id")->dump(), expected[i].find("id")->dump());
    EXPECT_EQ(json.find("prompt_token_ids")->dump(), expected[i].find("prompt_token_ids")->dump());
  }
}

TEST_F(RequestFunctions, TheStructSaysTheSameAsTheFields) {
  const Owned<transept_result> wanted =
      generate(model_, std::string(R"({"prompt": "Some text.", "decoder_prompt": "and", "max_tokens": 9})"));
  const std::string rest = R"({"max_tokens": 9, "id": "mine"})";
  transept_request request = request_of(rest);
  request.prompt = {"Some text. But not this", 10};
  request.decoder_prompt = transept_str("and");
  const Owned<transept_result> texts = generate(model_, request);
  EXPECT_EQ(token_ids(texts.get()), token_ids(wanted.get()));
  EXPECT_EQ(json_of(texts.get()).find("id")->as_string(), "mine");

  transept_result_info info = {sizeof info};
  ASSERT_EQ(transept_result_get_info(wanted.get(), &info, nullptr), TRANSEPT_OK);
  EXPECT_EQ(info.is_finished, 1);
  EXPECT_EQ(info.num_outputs, 1u);
  EXPECT_TRUE(std::isnan(info.score));
  EXPECT_GE(info.total_seconds, info.first_token_seconds);
  const std::vector<int32_t> encoder_ids(info.encoder_ids, info.encoder_ids + info.num_encoder_ids);
  const std::vector<int32_t> decoder_ids(info.decoder_ids, info.decoder_ids + info.num_decoder_ids);
  request = request_of(rest);
  request.prompt_ids = encoder_ids.data();
  request.num_prompt_ids = encoder_ids.size();
  request.decoder_ids = decoder_ids.data();
  request.num_decoder_ids = decoder_ids.size();
  EXPECT_EQ(token_ids(generate(model_, request).get()), token_ids(wanted.get()));
}

TEST_F(RequestFunctions, ScoresAreTheReferences) {
  const std::vector<Json> requests = golden_lines("bart-float32/score.jsonl");
  const std::vector<Json> expected = golden_lines("bart-float32/score_expected.jsonl");
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string fields = requests[i].dump();
    transept_request request = request_of(fields);
    request.flags = TRANSEPT_REQUEST_SCORE;
    const Owned<transept_result> result = generate(model_, request);
    transept_result_info info = {sizeof info};
    ASSERT_EQ(transept_result_get_info(result.get(), &info, nullptr), TRANSEPT_OK);
    EXPECT_NEAR(info.score, expected[i].find("score")->as_double(), 1e-3);
    EXPECT_EQ(info.num_outputs, 0u);
    EXPECT_EQ(to_string(transept_result_text(result.get())), "");
  }
}

TEST_F(RequestFunctions, ErrorsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "prompt"},
      {R"({"prompt": "a", "max_tokens": 0})", "max_tokens"},
      {R"({"prompt": "a", "temperature": "hot"})", "temperature"},
      {R"({"prompt": [1, 420]})", "prompt"},
      {R"({"prompt": "a", "stop": [""]})", "stop"},
      {"[]", "fields_json"},
      {"{\"prompt\": \"\xff\"}", "fields_json"},
      {"{", "fields_json"},
  };
  for (const auto& [fields, field] : cases) {
    EXPECT_EQ(fails(std::string(fields)), TRANSEPT_INVALID_ARGUMENT) << fields;
    EXPECT_EQ(error_.field(), field) << fields << ": " << error_.message();
  }
  const std::string long_prompt(2000, 'x');
  transept_request request = {sizeof request};
  request.prompt = to_text(long_prompt);
  EXPECT_EQ(fails(request), TRANSEPT_OUT_OF_RANGE);
}

TEST_F(RequestFunctions, ErrorsNameTheMember) {
  const int32_t ids[] = {5, 2};
  const auto refused = [&](auto change) {
    transept_request request = {sizeof request};
    request.prompt = transept_str("a");
    change(request);
    EXPECT_EQ(fails(request), TRANSEPT_INVALID_ARGUMENT) << error_.message();
    return error_.field();
  };
  EXPECT_EQ(refused([](auto& r) { r.struct_size = 8; }), "request.struct_size");
  EXPECT_EQ(refused([](auto& r) { r.prompt.data = nullptr; }), "prompt");
  EXPECT_EQ(refused([&](auto& r) {
              r.prompt_ids = ids;
              r.num_prompt_ids = 2;
            }),
            "prompt");
  EXPECT_EQ(refused([](auto& r) { r.num_prompt_ids = 2; }), "prompt_ids");
  EXPECT_EQ(refused([&](auto& r) {
              r.prompt = {};
              r.prompt_ids = ids;
            }),
            "prompt");
  EXPECT_EQ(refused([](auto& r) { r.fields_json = transept_str(R"({"prompt": "b"})"); }), "prompt");
  EXPECT_EQ(refused([](auto& r) { r.fields_json = {nullptr, 4}; }), "fields_json");
  EXPECT_EQ(refused([](auto& r) { r.num_decoder_ids = 1; }), "decoder_ids");
  EXPECT_EQ(refused([&](auto& r) {
              r.decoder_prompt = transept_str("b");
              r.decoder_ids = ids;
              r.num_decoder_ids = 2;
            }),
            "decoder_prompt");
  EXPECT_EQ(refused([](auto& r) { r.flags = 8; }), "flags");
  EXPECT_EQ(refused([](auto& r) { r.flags = TRANSEPT_REQUEST_STREAM; }), "flags");
  EXPECT_EQ(refused([](auto& r) { r.timeout_seconds = -1; }), "timeout_seconds");
  EXPECT_EQ(refused([](auto& r) { r.timeout_seconds = NAN; }), "timeout_seconds");
  EXPECT_EQ(refused([](auto& r) {
              r.prompt = {};
              r.num_samples = 3;
            }),
            "samples");
  const float sample = 0;
  EXPECT_EQ(refused([&](auto& r) {
              r.prompt = {};
              r.samples = &sample;
              r.num_samples = 1;
            }),
            "multi_modal_data");
}

TEST_F(RequestFunctions, NullPointersAreRefused) {
  const transept_request request = request_of(R"({"prompt": "a"})");
  transept_result* result = nullptr;
  transept_stream* stream = nullptr;
  transept_encoded* encoded = nullptr;
  const auto on_delta = [](void*, const transept_result*) { return 0; };
  EXPECT_EQ(transept_generate(nullptr, &request, &result, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_generate(model_, nullptr, &result, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_generate(model_, &request, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_generate_stream(model_, &request, nullptr, nullptr, &result, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_generate_stream(nullptr, &request, on_delta, nullptr, &result, nullptr),
            TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_submit(nullptr, &request, &stream, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_submit(model_, &request, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_encode(model_, nullptr, &encoded, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_encode(model_, &request, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_stream_next(nullptr, 0, &result, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_stream_abort(nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_stream_has_ended(nullptr), 1);
  EXPECT_EQ(transept_result_get_info(nullptr, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_result_json(nullptr, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(to_string(transept_result_text(nullptr)), "");
  EXPECT_EQ(transept_encoded_num_positions(nullptr), 0);
  transept_stream_free(nullptr);
  transept_result_free(nullptr);
  transept_encoded_free(nullptr);

  const Owned<transept_result> whole = generate(model_, request);
  transept_output output = {sizeof output};
  EXPECT_EQ(transept_result_get_output(whole.get(), 1, &output, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "index");
  EXPECT_EQ(transept_result_get_output(whole.get(), 0, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
}

struct Pieces {
  std::string text = {};
  std::vector<int32_t> ids = {};
  int num_pieces = 0, num_finished = 0;
  int stop_at = INT32_MAX;

  static int32_t take(void* data, const transept_result* delta) {
    auto& self = *static_cast<Pieces*>(data);
    self.text += to_string(transept_result_text(delta));
    for (const int32_t id : token_ids(delta)) self.ids.push_back(id);
    transept_result_info info = {sizeof info};
    EXPECT_EQ(transept_result_get_info(delta, &info, nullptr), TRANSEPT_OK);
    self.num_finished += info.is_finished;
    return ++self.num_pieces >= self.stop_at ? 1 : 0;
  }
};

TEST_F(RequestFunctions, PiecesAreTheWhole) {
  const Owned<transept_result> wanted = generate(model_, std::string(kLong));
  Pieces pieces;
  const transept_request request = request_of(kLong);
  transept_result* result = nullptr;
  ASSERT_EQ(transept_generate_stream(model_, &request, Pieces::take, &pieces, &result, error_.out()), TRANSEPT_OK);
  const Owned<transept_result> whole(result);
  EXPECT_EQ(pieces.text, to_string(transept_result_text(wanted.get())));
  EXPECT_EQ(pieces.ids, token_ids(wanted.get()));
  EXPECT_EQ(token_ids(whole.get()), token_ids(wanted.get()));
  EXPECT_EQ(to_string(transept_result_text(whole.get())), pieces.text);
  EXPECT_EQ(pieces.num_finished, 1);
  EXPECT_EQ(transept_generate_stream(model_, &request, Pieces::take, &pieces, nullptr, error_.out()), TRANSEPT_OK);
}

// T5 has no longest answer: the engine is not at its end when the first piece comes, however late the caller wakes.
TEST_F(RequestFunctions, ACallbackStopsItsStream) {
  const Owned<transept_model> model = load_model(model_dir("t5-float32"), R"({"max_model_len": 65536})");
  Pieces pieces{.stop_at = 1};
  const transept_request request =
      request_of(R"({"prompt": "a", "max_tokens": 60000, "ignore_eos": true, "temperature": 0})");
  transept_result* result = nullptr;
  ASSERT_EQ(transept_generate_stream(model.get(), &request, Pieces::take, &pieces, &result, error_.out()), TRANSEPT_OK)
      << error_.message();
  const Owned<transept_result> whole(result);
  EXPECT_EQ(pieces.num_pieces, 1);
  EXPECT_EQ(finish_reason(whole.get()), TRANSEPT_FINISH_ABORT);
  EXPECT_LT(token_ids(whole.get()).size(), 60000u);
  EXPECT_FALSE(token_ids(whole.get()).empty());
}

TEST_F(RequestFunctions, AStreamGivesPiecesUntilItsEnd) {
  const Owned<transept_result> wanted = generate(model_, std::string(kLong));
  transept_request request = request_of(kLong);
  request.flags = TRANSEPT_REQUEST_STREAM;
  const Owned<transept_stream> stream = submit(model_, request);
  Pieces pieces;
  while (transept_stream_has_ended(stream.get()) == 0) {
    transept_result* piece = nullptr;
    ASSERT_EQ(transept_stream_next(stream.get(), 10, &piece, error_.out()), TRANSEPT_OK) << error_.message();
    const Owned<transept_result> owner(piece);
    ASSERT_NE(piece, nullptr);
    Pieces::take(&pieces, piece);
  }
  EXPECT_EQ(pieces.ids, token_ids(wanted.get()));
  EXPECT_EQ(pieces.text, to_string(transept_result_text(wanted.get())));
  transept_result* more = nullptr;
  EXPECT_EQ(transept_stream_next(stream.get(), 0, &more, error_.out()), TRANSEPT_FAILED_PRECONDITION);
  EXPECT_EQ(transept_stream_abort(stream.get(), error_.out()), TRANSEPT_OK) << "after its end it is nothing";
}

TEST_F(RequestFunctions, ABeamSearchIsOnePiece) {
  const transept_request request = request_of(R"({"prompt": "a b c", "max_tokens": 9, "num_beams": 3})");
  Pieces pieces;
  transept_result* result = nullptr;
  ASSERT_EQ(transept_generate_stream(model_, &request, Pieces::take, &pieces, &result, error_.out()), TRANSEPT_OK);
  const Owned<transept_result> whole(result);
  EXPECT_EQ(pieces.num_pieces, 1);
  EXPECT_EQ(pieces.ids, token_ids(whole.get()));
}

TEST_F(RequestFunctions, ScoresHaveNoPieces) {
  transept_request request = request_of(kLong);
  request.flags = TRANSEPT_REQUEST_SCORE;
  Pieces pieces;
  EXPECT_EQ(transept_generate_stream(model_, &request, Pieces::take, &pieces, nullptr, error_.out()),
            TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "flags");
}

TEST_F(RequestFunctions, CancellationEndsARequestWithWhatItHas) {
  HeldEngine engine(model_);
  transept_cancellation* cancellation = nullptr;
  ASSERT_EQ(transept_cancellation_create(&cancellation, nullptr), TRANSEPT_OK);
  Owned<transept_cancellation> owner(cancellation);
  transept_request request = request_of(kLong);
  request.cancellation = cancellation;
  const Owned<transept_stream> stream = submit(model_, request);
  EXPECT_EQ(transept_cancellation_cancel(cancellation, error_.out()), TRANSEPT_OK);
  owner.reset();
  engine.release.open();
  transept_result* result = nullptr;
  ASSERT_EQ(transept_stream_next(stream.get(), -1, &result, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<transept_result> result_owner(result);
  EXPECT_EQ(finish_reason(result), TRANSEPT_FINISH_ABORT);
}

TEST_F(RequestFunctions, ACancelledCancellationEndsWhatComesLater) {
  transept_cancellation* cancellation = nullptr;
  ASSERT_EQ(transept_cancellation_create(&cancellation, nullptr), TRANSEPT_OK);
  const Owned<transept_cancellation> owner(cancellation);
  ASSERT_EQ(transept_cancellation_cancel(cancellation, nullptr), TRANSEPT_OK);
  HeldEngine engine(model_);
  transept_request request = request_of(kLong);
  request.cancellation = cancellation;
  const Owned<transept_stream> stream = submit(model_, request);
  engine.release.open();
  transept_result* result = nullptr;
  ASSERT_EQ(transept_stream_next(stream.get(), -1, &result, error_.out()), TRANSEPT_OK);
  const Owned<transept_result> result_owner(result);
  EXPECT_EQ(finish_reason(result), TRANSEPT_FINISH_ABORT);
}

TEST_F(RequestFunctions, DeadlinesAndWaitsEnd) {
  HeldEngine engine(model_);
  transept_request request = request_of(kLong);
  request.timeout_seconds = 0.01;
  const Owned<transept_stream> stream = submit(model_, request);
  transept_result* result = nullptr;
  EXPECT_EQ(transept_stream_next(stream.get(), 0, &result, error_.out()), TRANSEPT_OK);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(transept_stream_next(stream.get(), 0.02, &result, error_.out()), TRANSEPT_OK);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(transept_stream_next(stream.get(), NAN, &result, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  engine.release.open();
  EXPECT_EQ(transept_stream_next(stream.get(), -1, &result, error_.out()), TRANSEPT_DEADLINE_EXCEEDED);
  EXPECT_EQ(transept_stream_has_ended(stream.get()), 1);
}

TEST_F(RequestFunctions, OneInputIsEncodedOnce) {
  const auto num_encodes = [&] {
    char* stats = nullptr;
    EXPECT_EQ(transept_model_stats(model_, &stats, nullptr), TRANSEPT_OK);
    return Json::parse(Owned<char>(stats).get()).value().find("encoder_runs")->as_int();
  };
  const std::string fields = R"({"prompt": "pinned by nobody else"})";
  const transept_request input = request_of(fields);
  transept_encoded* encoded = nullptr;
  ASSERT_EQ(transept_encode(model_, &input, &encoded, error_.out()), TRANSEPT_OK) << error_.message();
  const Owned<transept_encoded> owner(encoded);
  EXPECT_GT(transept_encoded_num_positions(encoded), 3);
  const int64_t before = num_encodes();
  const std::string rest = R"({"max_tokens": 8})", first = R"({"prompt": "pinned by nobody else", "max_tokens": 8})";
  for (const char* decoder : {"", "a", "b"}) {
    transept_request request = request_of(rest);
    request.encoded = encoded;
    transept_request plain = request_of(first);
    if (*decoder != 0) request.decoder_prompt = plain.decoder_prompt = transept_str(decoder);
    EXPECT_EQ(token_ids(generate(model_, request).get()), token_ids(generate(model_, plain).get())) << decoder;
  }
  EXPECT_LE(num_encodes(), before + 1);
  transept_request twice = request_of(first);
  twice.encoded = encoded;
  EXPECT_EQ(fails(twice), TRANSEPT_INVALID_ARGUMENT);
  transept_encoded* again = nullptr;
  twice = request_of(rest);
  twice.encoded = encoded;
  EXPECT_EQ(transept_encode(model_, &twice, &again, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "encoded");
  const Owned<transept_model> other = load_model(model_dir("bart-float32"));
  twice.encoded = encoded;
  transept_result* result = nullptr;
  EXPECT_NE(transept_generate(other.get(), &twice, &result, error_.out()), TRANSEPT_OK) << "another model's input";
}

TEST_F(RequestFunctions, EncoderOutputHasItsRows) {
  transept_request request = request_of(R"({"prompt": [7, 8, 9, 2], "max_tokens": 1})");
  request.flags = TRANSEPT_REQUEST_ENCODER_OUTPUT;
  const Owned<transept_result> result = generate(model_, request);
  transept_result_info info = {sizeof info};
  ASSERT_EQ(transept_result_get_info(result.get(), &info, nullptr), TRANSEPT_OK);
  EXPECT_EQ(info.num_encoder_rows, 4u);
  EXPECT_GT(info.encoder_width, 1u);
  double sum = 0;
  for (size_t i = 0; i < info.num_encoder_rows * info.encoder_width; ++i) sum += std::abs(info.encoder_output[i]);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace transept::testing
