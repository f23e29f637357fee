// Encoded inputs of families whose pictures stand within the prompt, through transept.h: the answers of the
// checkpoints' goldens, which transformers made, with the pictures encoded before their prompts are known.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "capi/capi_testing.h"
#include "models/checkpoints_testing.h"

namespace transept::testing {
namespace {

// A golden's request in two parts.
struct Parts {
  std::string encoder;  // fields of transept_encode; "": it has no picture
  std::string decoder;  // the others
  std::vector<int32_t> ids;
  std::string wanted;
};

std::vector<Parts> parts_of(const std::string& folder) {
  std::vector<Parts> all;
  const std::vector<Json> requests = golden_lines(folder + "/requests.jsonl");
  const std::vector<Json> expected = golden_lines(folder + "/expected.jsonl");
  for (size_t i = 0; i < requests.size(); ++i) {
    const Json& prompt = *requests[i].find("prompt");
    if (prompt.find("prompt_token_ids") == nullptr) continue;
    Parts& parts = all.emplace_back();
    Json decoder = Json::object();
    for (const auto& [name, value] : requests[i].as_object()) {
      if (name != "prompt") decoder.set(name, value);
    }
    for (const Json& id : prompt.find("prompt_token_ids")->as_array()) {
      parts.ids.push_back(static_cast<int32_t>(id.as_int()));
    }
    if (const Json* media = prompt.find("multi_modal_data")) {
      Json encoder = Json::object(), of_media = Json::object();
      of_media.set("multi_modal_data", *media);
      encoder.set("prompt", std::move(of_media));
      parts.encoder = encoder.dump();
    }
    parts.decoder = decoder.dump();
    parts.wanted = wanted_ids(expected[i]);
  }
  return all;
}

class PictureHandles : public ::testing::TestWithParam<std::string> {
 protected:
  PictureHandles() : model_(load_model(model_dir(GetParam()))) { set_log_level(LogLevel::kError); }

  Owned<transept_encoded> encode(const std::string& fields) {
    const transept_request request = request_of(fields);
    transept_encoded* encoded = nullptr;
    EXPECT_EQ(transept_encode(model_.get(), &request, &encoded, error_.out()), TRANSEPT_OK) << error_.message();
    return Owned<transept_encoded>(encoded);
  }
  static transept_request over(const transept_encoded* encoded, const Parts& parts) {
    transept_request request = request_of(parts.decoder);
    request.encoded = encoded;
    request.decoder_ids = parts.ids.data();
    request.num_decoder_ids = parts.ids.size();
    return request;
  }
  int64_t stat(const char* name) {
    char* stats = nullptr;
    EXPECT_EQ(transept_model_stats(model_.get(), &stats, nullptr), TRANSEPT_OK);
    return Json::parse(Owned<char>(stats).get()).value().find(name)->as_int();
  }
  transept_code fails(const transept_request& request) {
    transept_result* result = nullptr;
    const transept_code code = transept_generate(model_.get(), &request, &result, error_.out());
    EXPECT_EQ(result, nullptr);
    return code;
  }

  // The answers of the folder's requests with ids, each three times over one handle.
  void expect_references(size_t least_several);

  Owned<transept_model> model_;
  CallError error_;
};

void PictureHandles::expect_references(size_t least_several) {
  size_t num_several = 0, num_all = 0;
  for (const Parts& parts : parts_of(GetParam())) {
    if (parts.encoder.empty()) continue;
    ++num_all;
    const Owned<transept_encoded> encoded = encode(parts.encoder);
    ASSERT_NE(encoded, nullptr);
    EXPECT_GT(transept_encoded_num_positions(encoded.get()), 0);
    const int64_t before = stat("encoder_runs");
    int64_t behind_first = 0;
    for (int i = 0; i < 3; ++i) {
      const Owned<transept_result> result = generate(model_.get(), over(encoded.get(), parts));
      EXPECT_EQ(our_ids(result.get()), parts.wanted) << parts.decoder;
      if (i == 0) behind_first = stat("encoder_runs");
    }
    EXPECT_GT(behind_first, before);
    EXPECT_EQ(stat("encoder_runs"), behind_first) << "a picture is encoded twice: " << parts.decoder;
    num_several += parts.encoder.find("[{") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(num_all, 2u);
  EXPECT_GE(num_several, least_several) << "requests of several pictures";
}

TEST_P(PictureHandles, AnswersAreTheReferences) { expect_references(2); }

// Other prompts over the same pictures, at once, and handles that go before their requests end.
TEST_P(PictureHandles, SeveralPromptsOverOneHandle) {
  std::vector<Parts> all = parts_of(GetParam());
  std::erase_if(all, [](const Parts& parts) { return parts.encoder.empty(); });
  Parts longer = all.front();
  longer.ids.insert(longer.ids.begin(), 5);
  const std::string whole = str_cat(R"({"max_tokens": 6, "temperature": 0, "prompt": )",
                                    Json::parse(longer.encoder).value().find("prompt")->dump(), "}");
  longer.decoder = R"({"max_tokens": 6, "temperature": 0})";
  transept_request plain = request_of(whole);
  plain.decoder_ids = longer.ids.data();
  plain.num_decoder_ids = longer.ids.size();
  const std::vector<int32_t> wanted = token_ids(generate(model_.get(), plain).get());
  Owned<transept_encoded> encoded = encode(all.front().encoder);
  std::vector<Owned<transept_stream>> streams;
  streams.reserve(4);
  for (int i = 0; i < 4; ++i) {
    streams.push_back(submit(model_.get(), over(encoded.get(), i % 2 == 0 ? longer : all.front())));
  }
  encoded.reset();
  ASSERT_EQ(transept_stream_abort(streams[2].get(), nullptr), TRANSEPT_OK);
  for (size_t i = 0; i < streams.size(); ++i) {
    transept_result* result = nullptr;
    ASSERT_EQ(transept_stream_next(streams[i].get(), -1, &result, error_.out()), TRANSEPT_OK) << error_.message();
    const Owned<transept_result> owner(result);
    if (i == 2) continue;  // aborted, or done before
    if (i == 0) {
      EXPECT_EQ(token_ids(result), wanted);
    } else {
      EXPECT_EQ(our_ids(result), all.front().wanted);
    }
  }
}

TEST_P(PictureHandles, ErrorsNameTheField) {
  std::vector<Parts> all = parts_of(GetParam());
  std::erase_if(all, [](const Parts& parts) { return parts.encoder.empty(); });
  const Owned<transept_encoded> encoded = encode(all.front().encoder);
  Parts parts = all.front();
  parts.ids = {5, 6};
  EXPECT_EQ(fails(over(encoded.get(), parts)), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "decoder_prompt") << error_.message();
  transept_request none = request_of(parts.decoder);
  none.encoded = encoded.get();
  EXPECT_EQ(fails(none), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "decoder_prompt") << error_.message();
  const transept_request text = request_of(R"({"prompt": [5, 6]})");
  transept_encoded* nothing = nullptr;
  EXPECT_EQ(transept_encode(model_.get(), &text, &nothing, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "prompt") << error_.message();
}

// A family that takes one picture, which begins the prompt.
class OnePictureHandles : public PictureHandles {};

TEST_P(OnePictureHandles, AnswersAreTheReferences) { expect_references(0); }

INSTANTIATE_TEST_SUITE_P(Checkpoints, PictureHandles,
                         ::testing::Values("qwen2-vl-float32", "qwen2-5-vl-bfloat16-sharded", "mllama-float32",
                                           "mllama-bfloat16-sharded", "mllama-strict-float16"),
                         [](const auto& test) { return test_name(test.param); });

INSTANTIATE_TEST_SUITE_P(CogAgent, OnePictureHandles,
                         ::testing::Values("cogagent-float32", "cogagent-bfloat16-sharded"),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace transept::testing
