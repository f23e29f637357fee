#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "base/allocation_count_testing.h"
#include "base/folder_testing.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "base/scoped_variable_testing.h"
#include "capi/capi_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class ModelFunctions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = load_model(model_dir("bart-float32")).release(); }
  static void TearDownTestSuite() { FreeHandle()(model_); }

  std::string tokenized(transept_text text, const transept_tokenize_options* options = nullptr) {
    int32_t* ids = nullptr;
    size_t num_ids = 0;
    EXPECT_EQ(transept_tokenize(model_, text, options, &ids, &num_ids, error_.out()), TRANSEPT_OK) << error_.message();
    const Owned<int32_t> owner(ids);
    std::string line;
    for (size_t i = 0; i < num_ids; ++i) line += str_cat(i == 0 ? "[" : ", ", ids[i]);
    return line + "]";
  }

  static transept_model* model_;
  CallError error_;
};
transept_model* ModelFunctions::model_ = nullptr;

TEST_F(ModelFunctions, LoadingSaysWhatIsWrong) {
  transept_model* model = nullptr;
  const TestFolder empty;
  EXPECT_EQ(transept_model_load(empty.path().c_str(), nullptr, &model, error_.out()), TRANSEPT_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("config.json"));
  EXPECT_EQ(transept_model_load(nullptr, nullptr, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "name");
  const std::string folder = model_dir("bart-float32");
  EXPECT_EQ(transept_model_load(folder.c_str(), nullptr, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "model");
  transept_model_options options = {};
  EXPECT_EQ(transept_model_load(folder.c_str(), &options, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "options.struct_size");
  options.struct_size = sizeof options;
  options.threads = -1;
  EXPECT_EQ(transept_model_load(folder.c_str(), &options, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "threads");
  options.threads = 1;
  options.max_queued_requests = -1;
  EXPECT_EQ(transept_model_load(folder.c_str(), &options, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "max_queued_requests");
  options.max_queued_requests = 1;
  options.options_json = transept_str(R"({"dtype": "float7"})");
  EXPECT_EQ(transept_model_load(folder.c_str(), &options, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.message(), "dtype float7: unknown; this version has auto, float32, bfloat16, float16");
  EXPECT_EQ(error_.field(), "dtype");
  options.options_json = transept_str(R"({"download_dir": ""})");
  EXPECT_EQ(transept_model_load("org/name", &options, &model, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.message(), "download_dir must be a folder, not nothing");
  EXPECT_EQ(error_.field(), "download_dir");
  EXPECT_EQ(model, nullptr);
}

TEST_F(ModelFunctions, NamesOfBundledModelsAndOfTheHubAreFound) {
  const ScopedVariable bundled("TRANSEPT_MODELS", str_cat(source_dir(), "/tests/models"));
  EXPECT_NE(load_model("bart-float32"), nullptr);
  const TestFolder cache;
  const std::string repo = "models--some--bart/", commit(40, 'a');
  for (const char* folder : {"refs", "snapshots"}) {
    std::filesystem::create_directories(str_cat(cache.path(), "/", repo, folder));
  }
  cache.write(repo + "refs/main", commit);
  cache.write(repo + "refs/v1", commit);
  std::filesystem::create_directory_symlink(model_dir("bart-float32"),
                                            str_cat(cache.path(), "/", repo, "snapshots/", commit));
  const std::string options = str_cat(R"({"download_dir": ")", cache.path(), R"(")");
  EXPECT_NE(load_model("some/bart", options + "}"), nullptr);
  transept_model_options first_version{};  // of a caller that was built before on_download
  first_version.struct_size = offsetof(transept_model_options, on_download);
  transept_model* old = nullptr;
  ASSERT_EQ(transept_model_load("bart-float32", &first_version, &old, error_.out()), TRANSEPT_OK);
  EXPECT_EQ(transept_model_free(old, nullptr), TRANSEPT_OK);
  EXPECT_NE(load_model("some/bart", options + R"(, "revision": "v1"})"), nullptr);
  transept_model* model = nullptr;
  transept_model_options local = {sizeof local};
  local.options_json = transept_str(R"({"local_files_only": true})");
  EXPECT_EQ(transept_model_load("some/other", &local, &model, error_.out()), TRANSEPT_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("as the option local_files_only is set"));
  EXPECT_EQ(transept_model_load("nowhere", nullptr, &model, error_.out()), TRANSEPT_NOT_FOUND);
  EXPECT_THAT(error_.message(), HasSubstr("bundled: "));
}

TEST_F(ModelFunctions, LoadWithTheNamesOfDtypesOfOtherLibraries) {
  const std::string folder = str_cat(source_dir(), "/tests/models/bart-float32");
  transept_model_options options{};
  options.struct_size = sizeof options;
  options.options_json = transept_str(R"({"dtype": "half", "threads": 0})");
  transept_model* model = nullptr;
  ASSERT_EQ(transept_model_load(folder.c_str(), &options, &model, error_.out()), TRANSEPT_OK) << error_.message();
  char* info = nullptr;
  ASSERT_EQ(transept_model_info(model, &info, error_.out()), TRANSEPT_OK);
  EXPECT_THAT(info, HasSubstr(R"("dtype": "float16")"));
  transept_free(info);
  EXPECT_EQ(transept_model_free(model, nullptr), TRANSEPT_OK);
}

TEST_F(ModelFunctions, NullHandlesAreRefusedOrNothing) {
  char* text = nullptr;
  int32_t* ids = nullptr;
  size_t size = 0;
  EXPECT_EQ(transept_model_free(nullptr, nullptr), TRANSEPT_OK);
  EXPECT_EQ(transept_model_stop(nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_model_drain(nullptr, 1, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_model_info(nullptr, &text, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_model_stats(nullptr, &text, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_model_info(model_, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_model_stats(model_, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_tokenize(nullptr, {"a", 1}, nullptr, &ids, &size, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_tokenize(model_, {nullptr, 0}, nullptr, &ids, &size, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_tokenize(model_, {"a", 1}, nullptr, nullptr, &size, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_tokenize(model_, {"a", 1}, nullptr, &ids, nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_detokenize(model_, nullptr, 1, 1, &text, &size, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_detokenize(model_, nullptr, 0, 1, nullptr, &size, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_cancellation_create(nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_cancellation_cancel(nullptr, nullptr), TRANSEPT_INVALID_ARGUMENT);
  transept_cancellation_free(nullptr);
  transept_free(nullptr);
}

TEST_F(ModelFunctions, TokenizesAsTheReference) {
  const std::vector<Json> wanted = golden_lines("bart-float32/tokenize_expected.jsonl");
  const std::vector<Json> given = golden_lines("bart-float32/tokenize.jsonl");
  size_t num_plain = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].as_object().size() != 2 || wanted[i].find("token_ids") == nullptr) continue;  // with options
    EXPECT_EQ(tokenized(to_text(given[i].find("text")->as_string())), wanted[i].find("token_ids")->dump());
    ++num_plain;
  }
  EXPECT_GT(num_plain, 10u);
}

TEST_F(ModelFunctions, TokenizesWithOptions) {
  EXPECT_EQ(tokenized({" ", 1}), "[0, 224, 2]");
  transept_tokenize_options options = {sizeof options};
  options.flags = TRANSEPT_TOKENIZE_NO_SPECIAL_TOKENS;
  EXPECT_EQ(tokenized({" ", 1}, &options), "[224]");
  options.flags = 4;
  int32_t* ids = nullptr;
  size_t num_ids = 0;
  EXPECT_EQ(transept_tokenize(model_, {" ", 1}, &options, &ids, &num_ids, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "flags");
  options.flags = 0;
  options.target_lang = transept_str("xx");
  EXPECT_EQ(transept_tokenize(model_, {" ", 1}, &options, &ids, &num_ids, error_.out()), TRANSEPT_INVALID_ARGUMENT);
}

TEST_F(ModelFunctions, SpellsTokensAsTheReference) {
  const std::vector<Json> wanted = golden_lines("bart-float32/tokenize_expected.jsonl");
  size_t num_tokens = 0;
  for (const Json& line : wanted) {
    const Json* tokens = line.find("tokens");
    if (tokens == nullptr) continue;
    for (size_t i = 0; i < tokens->as_array().size(); ++i) {
      const auto id = static_cast<int32_t>(line.find("token_ids")->as_array()[i].as_double());
      char* text = nullptr;
      size_t size = 0;
      ASSERT_EQ(transept_token_spelling(model_, id, TRANSEPT_TOKENIZE_DECODER_SIDE, &text, &size, error_.out()),
                TRANSEPT_OK)
          << error_.message();
      const Owned<char> owner(text);
      EXPECT_EQ(std::string(text, size), tokens->as_array()[i].as_string());
      ++num_tokens;
    }
  }
  EXPECT_GT(num_tokens, 100u);
  char* text = nullptr;
  EXPECT_EQ(transept_token_spelling(model_, -1, 0, &text, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "ids");
  EXPECT_EQ(transept_token_spelling(model_, 1 << 30, 0, &text, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_token_spelling(model_, 1, 2, &text, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.field(), "flags");
  EXPECT_EQ(transept_token_spelling(model_, 1, 0, nullptr, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
}

TEST_F(ModelFunctions, DetokenizesAsTheReference) {
  const std::vector<Json> given = golden_lines("bart-float32/detokenize.jsonl");
  const std::vector<Json> wanted = golden_lines("bart-float32/detokenize_expected.jsonl");
  size_t num_texts = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const Json* text = wanted[i].find("text");
    const Json* skip = given[i].find("skip_special_tokens");
    if (text == nullptr) continue;
    std::vector<int32_t> ids;
    for (const Json& id : given[i].find("token_ids")->as_array()) ids.push_back(static_cast<int32_t>(id.as_double()));
    char* decoded = nullptr;
    size_t size = 0;
    ASSERT_EQ(transept_detokenize(model_, ids.data(), ids.size(), skip == nullptr || skip->as_bool() ? 1 : 0, &decoded,
                                  &size, error_.out()),
              TRANSEPT_OK)
        << error_.message();
    const Owned<char> owner(decoded);
    EXPECT_EQ(std::string(decoded, size), text->as_string());
    EXPECT_EQ(decoded[size], 0);
    ++num_texts;
  }
  EXPECT_GT(num_texts, 3u);
  const int32_t outside[] = {3, 420};
  char* decoded = nullptr;
  EXPECT_EQ(transept_detokenize(model_, outside, 2, 1, &decoded, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error_.message(), "ids[1]: 420 is outside the vocabulary of 420");
  EXPECT_EQ(decoded, nullptr);
}

TEST_F(ModelFunctions, SaysWhatItIsAndHasDone) {
  char* text = nullptr;
  ASSERT_EQ(transept_model_info(model_, &text, error_.out()), TRANSEPT_OK);
  const Json info = Json::parse(Owned<char>(text).get()).value();
  EXPECT_EQ(info.find("model_type")->as_string(), "bart");
  EXPECT_EQ(info.find("vocab_size")->as_int(), 420);
  EXPECT_EQ(info.find("max_encoder_len")->as_int(), 96);
  EXPECT_EQ(info.find("threads")->as_int(), 1);
  EXPECT_TRUE(info.find("has_tokenizer")->as_bool());
  EXPECT_FALSE(info.find("takes_audio")->as_bool());
  const auto num_finished = [&] {
    char* stats = nullptr;
    EXPECT_EQ(transept_model_stats(model_, &stats, error_.out()), TRANSEPT_OK);
    return Json::parse(Owned<char>(stats).get()).value().find("num_finished")->as_int();
  };
  const int64_t before = num_finished();
  generate(model_, std::string(R"({"prompt": "a", "max_tokens": 2})"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (num_finished() == before && std::chrono::steady_clock::now() < end) {  // after the step, as outputs leave it
  }
  EXPECT_EQ(num_finished(), before + 1);
}

// The allocations of the caller's thread: the engine's may still be starting.
TEST_F(ModelFunctions, WithoutMemoryCallsFailAndTheNextOnesDoNot) {
  const std::string text(3000, 'a');
  size_t num_failed = 0;
  for (const size_t min_bytes : {1, 24, 64, 256, 1024, 3000, 6000, 12000}) {
    int32_t* ids = nullptr;
    size_t num_ids = 0;
    fail_next_allocation(min_bytes);
    const transept_code code = transept_tokenize(model_, to_text(text), nullptr, &ids, &num_ids, error_.out());
    const Owned<int32_t> owner(ids);
    if (has_failed_allocation()) {
      ++num_failed;
      EXPECT_EQ(code, TRANSEPT_OUT_OF_MEMORY) << min_bytes;
      EXPECT_EQ(error_.code(), TRANSEPT_OUT_OF_MEMORY);
      EXPECT_EQ(ids, nullptr);
    }
    fail_next_allocation(SIZE_MAX);
    EXPECT_NE(tokenized(to_text(text)), "[]");
  }
  EXPECT_GE(num_failed, 4u);
}

TEST_F(ModelFunctions, LoadingWithoutMemoryFails) {
  const std::string folder = model_dir("bart-float32");
  for (const size_t min_bytes : {1, 100, 1000, 10000}) {
    transept_model* model = nullptr;
    fail_next_allocation(min_bytes);
    const transept_code code = transept_model_load(folder.c_str(), nullptr, &model, error_.out());
    const Owned<transept_model> owner(model);
    EXPECT_EQ(code, has_failed_allocation() ? TRANSEPT_OUT_OF_MEMORY : TRANSEPT_OK) << min_bytes << error_.message();
    fail_next_allocation(SIZE_MAX);
  }
}

// Runs `work` in a child, whose exit code it is. AddressSanitizer's allocator does not hold its locks across fork(), as
// the C library's does: a child may wait for one that another thread had. An alarm ends it there, and the next is
// tried.
int in_fork(const std::function<int()>& work) {
  constexpr unsigned kSeconds = 20;
  int status = 0;
  for (int tries = kSanitized ? 5 : 1; tries > 0; --tries) {
    const pid_t child = fork();
    EXPECT_GE(child, 0);
    if (child == 0) {
      if (kSanitized) alarm(kSeconds);
      _exit(work());
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM) break;
  }
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// What the child says is its exit code: the test's own reports would be the parent's twice.
TEST_F(ModelFunctions, AForkedProcessIsRefusedByName) {
  Owned<transept_model> model = load_model(model_dir("t5-float32"));
  transept_request request = request_of(R"({"prompt": [5, 1], "max_tokens": 2})");
  transept_cancellation* cancellation = nullptr;
  ASSERT_EQ(transept_cancellation_create(&cancellation, nullptr), TRANSEPT_OK);
  const Owned<transept_cancellation> owner(cancellation);
  request.cancellation = cancellation;
  Owned<transept_stream> stream = submit(model.get(), request);
  const int bad = in_fork([&] {
    transept_error* error = nullptr;
    transept_result* result = nullptr;
    int wrong = transept_generate(model.get(), &request, &result, &error) != TRANSEPT_FORKED;
    wrong |= std::string(transept_error_message(error)).find("fork") == std::string::npos ? 2 : 0;
    wrong |= transept_stream_next(stream.get(), -1, &result, nullptr) != TRANSEPT_FORKED ? 4 : 0;
    wrong |= transept_model_stop(model.get(), nullptr) != TRANSEPT_FORKED ? 8 : 0;
    wrong |= transept_cancellation_cancel(cancellation, nullptr) != TRANSEPT_FORKED ? 16 : 0;
    transept_stream_free(stream.release());
    transept_cancellation_free(cancellation);
    wrong |= transept_model_free(model.release(), nullptr) != TRANSEPT_OK ? 32 : 0;
    return wrong;
  });
  EXPECT_EQ(bad, 0);
  EXPECT_NE(generate(model.get(), request), nullptr) << "the parent goes on";
}

struct Lines {
  std::vector<std::string> lines = {};
  transept_code inner = TRANSEPT_OK;

  static void take(void* data, int32_t level, transept_text line) {
    auto& self = *static_cast<Lines*>(data);
    self.lines.push_back(str_cat(level, " ", to_string(line)));
    self.inner = transept_log_set(level, nullptr, nullptr, nullptr);
  }
};

TEST_F(ModelFunctions, LogLinesGoToTheCallback) {
  Lines lines;
  ASSERT_EQ(transept_log_set(TRANSEPT_LOG_WARNING, Lines::take, &lines, error_.out()), TRANSEPT_OK);
  log_info("not this");
  log_warning("a ", 1);
  log_error("b");
  EXPECT_EQ(lines.lines, (std::vector<std::string>{"1 a 1", "0 b"}));
  EXPECT_EQ(lines.inner, TRANSEPT_FAILED_PRECONDITION);
  generate(model_, std::string(R"({"prompt": "a", "max_tokns": 2, "max_tokens": 1})"));
  ASSERT_EQ(lines.lines.size(), 3u);
  EXPECT_THAT(lines.lines[2], HasSubstr("max_tokns"));
  EXPECT_EQ(transept_log_set(3, nullptr, nullptr, error_.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(transept_log_set(TRANSEPT_LOG_ERROR, nullptr, nullptr, error_.out()), TRANSEPT_OK);
  log_info("nor this");
  EXPECT_EQ(lines.lines.size(), 3u);
}

TEST_F(ModelFunctions, TheVersionIsTheHeaders) {
  EXPECT_STREQ(transept_version(), TRANSEPT_VERSION);
  EXPECT_EQ(str_cat(TRANSEPT_VERSION_MAJOR, ".", TRANSEPT_VERSION_MINOR, ".", TRANSEPT_VERSION_PATCH),
            TRANSEPT_VERSION);
}

}  // namespace
}  // namespace transept::testing
