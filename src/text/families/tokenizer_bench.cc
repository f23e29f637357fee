// Encoding speed in bytes of text a second: words of prose, one endless word, a regular expression for the split; and
// detokenizing in tokens a second. TRANSEPT_BENCH_TOKENIZER names a model's folder or a SentencePiece file (otherwise
// the small vocabulary of testdata/ is used, whose words are shorter), TRANSEPT_BENCH_TEXT a file for encode_file, line
// by line: that is what bench/compare_tokenizers.py runs beside the reference.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>

#include "base/input_file.h"
#include "base/json.h"
#include "base/strings.h"
#include "text/detokenizer.h"
#include "text/families/load_tokenizer.h"
#include "text/families/tokenizer_loader.h"
#include "text/sentencepiece/sentencepiece.h"

namespace transept {
namespace {

constexpr std::string_view kProse =
    "Rain fell on the tin roof all night; in the morning the garden was green again. She counted 1,234 stars, gave up "
    "at 3.14, and didn't go to bed before 23:59. Le cœur a ses raisons que la raison ne connaît point. ";

std::unique_ptr<Tokenizer> small_tokenizer() {
  const StatusOr<std::string> text =
      read_file(std::filesystem::path(__FILE__).parent_path().parent_path() / "testdata" / "tokenizers.jsonl");
  if (!text.ok()) return nullptr;
  const StatusOr<Json> fixture = Json::parse(text->substr(0, text->find('\n')));
  if (!fixture.ok()) return nullptr;
  TokenizerFiles files;
  files.tokenizer_json = fixture->find("tokenizer")->dump();
  auto tokenizer = make_tokenizer(files, {});
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

// Whisper's 50,000 tokens where they are at hand.
std::unique_ptr<Tokenizer> best_tokenizer(benchmark::State& state) {
  const char* dir = std::getenv("TRANSEPT_BENCH_TOKENIZER");
  if (dir != nullptr) {
    auto tokenizer = load_tokenizer(dir, {});
    if (tokenizer.ok()) {
      state.SetLabel(dir);
      return std::move(tokenizer).value();
    }
  }
  state.SetLabel("testdata");
  return small_tokenizer();
}

void encode(benchmark::State& state, const std::string& text) {
  const std::unique_ptr<Tokenizer> tokenizer = best_tokenizer(state);
  if (tokenizer == nullptr) return state.SkipWithError("no tokenizer");
  while (state.KeepRunning()) benchmark::DoNotOptimize(tokenizer->encode(text, {}));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

void encode_prose(benchmark::State& state) {
  std::string text;
  while (text.size() < static_cast<size_t>(state.range(0))) text += kProse;
  encode(state, text);
}
BENCHMARK(encode_prose)->Arg(200)->Arg(1 << 16);

void encode_one_word(benchmark::State& state) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < static_cast<size_t>(state.range(0))) text.push_back(static_cast<char>('a' + random() % 26));
  encode(state, text);
}
BENCHMARK(encode_one_word)->Arg(1 << 20);

void encode_one_letter(benchmark::State& state) {
  encode(state, std::string(static_cast<size_t>(state.range(0)), 'a'));
}
BENCHMARK(encode_one_letter)->Arg(1 << 20);

void detokenize(benchmark::State& state) {
  const std::unique_ptr<Tokenizer> tokenizer = best_tokenizer(state);
  if (tokenizer == nullptr) return state.SkipWithError("no tokenizer");
  const auto ids = tokenizer->encode(kProse, {});
  if (!ids.ok()) return state.SkipWithError("no ids");
  while (state.KeepRunning()) {
    IncrementalDetokenizer text(*tokenizer, {}, true);
    for (const int32_t id : *ids) text.append(id);
    benchmark::DoNotOptimize(text.text());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(ids->size()));
}
BENCHMARK(detokenize);

// Encodes every line of the file; counts bytes, and as `ids` what came of them.
template <typename Encode>
void encode_lines(benchmark::State& state, std::string_view text, Encode encode) {
  size_t num_ids = 0;
  while (state.KeepRunning()) {
    num_ids = 0;
    for (const std::string_view line : split(text, '\n')) num_ids += encode(line);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["ids"] = static_cast<double>(num_ids);
}

void encode_file(benchmark::State& state) {
  const char* text_path = std::getenv("TRANSEPT_BENCH_TEXT");
  const char* model_path = std::getenv("TRANSEPT_BENCH_TOKENIZER");
  if (text_path == nullptr || model_path == nullptr) return state.SkipWithError("TRANSEPT_BENCH_TEXT is not set");
  const StatusOr<std::string> text = read_file(text_path);
  if (!text.ok()) return state.SkipWithError("no text");
  if (std::filesystem::is_directory(model_path)) {
    const auto tokenizer = load_tokenizer(model_path, {});
    if (!tokenizer.ok()) return state.SkipWithError("no tokenizer");
    encode_lines(state, *text, [&](std::string_view line) {
      return (*tokenizer)->encode(line, {.add_special_tokens = false}).value().size();
    });
  } else {
    const StatusOr<std::string> bytes = read_file(model_path);
    const auto model = SentencePieceModel::parse(model_path, bytes.ok() ? *bytes : "");
    if (!model.ok()) return state.SkipWithError("no SentencePiece model");
    std::vector<int32_t> ids;
    encode_lines(state, *text, [&](std::string_view line) {
      ids.clear();
      return (*model)->append_ids(line, ids).ok() ? ids.size() : 0;
    });
  }
}
BENCHMARK(encode_file)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
