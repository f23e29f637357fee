// The shared goldens' bad requests, when they are there: each must be refused with a param that they accept, and the
// good ones between them must pass. The engine's part is played here: positions of the encoder prompt, the refusal of
// media by a text model, and the length of the decoder prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/source_dir_testing.h"
#include "request/request.h"
#include "request/resolve.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// What needs more than a request and the model's limits.
const std::set<std::string> kOfTheEngine = {
    "media-for-text-model",  // parsing keeps media; a model without that modality refuses them
    "encoder-too-long",      // the encoder's positions are counted after tokenising
};

std::vector<Json> read_lines(const fs::path& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = Json::parse(line);
    EXPECT_TRUE(json.ok()) << line;
    if (json.ok()) lines.push_back(*json);
  }
  return lines;
}

// BART's default prompt has two tokens; ids get decoder_start before them; texts stay short of every limit here.
int32_t decoder_prompt_tokens(const EncoderDecoderPrompt& prompt) {
  if (!prompt.decoder.has_value()) return 2;
  const auto* tokens = std::get_if<TokensPrompt>(&prompt.decoder->content);
  return tokens == nullptr ? 10 : static_cast<int32_t>(tokens->token_ids.size()) + 1;
}

Status run(const Json& line, const ModelConfig& config, const GenerationConfig& generation, bool score_only = false) {
  const auto request = parse_request(line, 1);
  if (!request.ok()) return request.status();
  RETURN_IF_ERROR(check_token_ids(request->prompt, config.vocab_size));
  const auto positions = config.raw.find("max_position_embeddings");
  return resolve(request->sampling, generation,
                 {.vocab_size = config.vocab_size,
                  .max_decoder_positions = positions == nullptr ? 512 : static_cast<int32_t>(positions->as_int()),
                  .decoder_prompt_tokens = decoder_prompt_tokens(request->prompt),
                  .score_only = score_only})
      .status();
}

void check_folder(const fs::path& folder, int& num_errors) {
  const auto config = ModelConfig::load(folder.string());
  ASSERT_TRUE(config.ok()) << config.status();
  const auto generation = GenerationConfig::load(folder.string(), *config);
  ASSERT_TRUE(generation.ok()) << generation.status();
  const std::vector<Json> lines = read_lines(folder / "errors.jsonl");
  const std::vector<Json> expected = read_lines(folder / "errors_expected.jsonl");
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string id = lines[i].find("id")->as_string();
    if (kOfTheEngine.contains(id)) continue;
    const Status status = run(lines[i], *config, *generation);
    const Json* error = expected[i].find("error");
    if (error == nullptr) {
      EXPECT_TRUE(status.ok()) << folder << " " << id << ": " << status;
      continue;
    }
    ++num_errors;
    ASSERT_FALSE(status.ok()) << folder << " " << id;
    const auto& accepted = error->find("param")->as_array();
    const bool is_accepted =
        std::ranges::any_of(accepted, [&](const Json& param) { return param.as_string() == error_param(status); });
    EXPECT_TRUE(is_accepted) << folder << " " << id << ": " << error_param(status) << ": " << status;
    // Apart from what the next issue brings, none of these is refused for being unsupported.
    EXPECT_NE(status.code(), absl::StatusCode::kUnimplemented) << id;
  }
}

TEST(GoldenErrors, AreRefusedByAnAcceptedName) {
  const fs::path root = fs::path(source_dir()) / ".." / "shared" / "golden" / "text";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared";
  int num_errors = 0;
  for (const auto& folder : fs::directory_iterator(root)) {
    if (fs::exists(folder.path() / "errors.jsonl")) check_folder(folder.path(), num_errors);
  }
  EXPECT_GT(num_errors, 50);
}

// All golden requests are understood without a warning, and refused only for beams.
TEST(GoldenRequests, AreUnderstood) {
  const fs::path root = fs::path(source_dir()) / ".." / "shared" / "golden" / "text";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared";
  for (const auto& folder : fs::directory_iterator(root)) {
    const auto config = ModelConfig::load(folder.path().string());
    ASSERT_TRUE(config.ok()) << config.status();
    const auto generation = GenerationConfig::load(folder.path().string(), *config);
    ASSERT_TRUE(generation.ok()) << generation.status();
    for (const char* file : {"requests.jsonl", "score.jsonl", "batch.jsonl"}) {
      for (const Json& line : read_lines(folder.path() / file)) {
        const auto request = parse_request(line, 1);
        ASSERT_TRUE(request.ok()) << folder << line.dump() << request.status();
        EXPECT_TRUE(request->warnings.empty()) << request->warnings.front();
        const Status status = run(line, *config, *generation, file == std::string_view("score.jsonl"));
        if (!status.ok()) {
          EXPECT_EQ(error_param(status), "num_beams") << folder << line.dump() << status;
        }
      }
    }
  }
}

}  // namespace
}  // namespace transept
