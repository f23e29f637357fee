// `tokenize` and `detokenize` as the transept binary offers them, over src/text alone: what
// tools/tokenizer_differential.py drives while the binary is not built, or is not to be waited for. Not shipped.
//   tokenizer_probe tokenize|detokenize MODEL --input FILE.jsonl
// And what a SentencePiece model alone makes of texts:
//   tokenizer_probe pieces FILE.model --input FILE.jsonl
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "base/json.h"
#include "base/mmap_file.h"
#include "text/families/load_tokenizer.h"
#include "text/sentencepiece/sentencepiece.h"

namespace transept {
namespace {

TokenizerHints read_hints(const std::string& dir) {
  TokenizerHints hints;
  const StatusOr<std::string> text = read_file(dir + "/config.json");
  if (!text.ok()) return hints;
  const StatusOr<Json> config = Json::parse(*text);
  if (!config.ok()) return hints;
  const auto string_of = [&](std::string_view key) -> std::optional<std::string> {
    const Json* value = config->find(key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return value->as_string();
  };
  hints.model_type = string_of("model_type").value_or("");
  if (const Json* table = config->find("grapheme_chars"); table != nullptr) hints.grapheme_chars = *table;
  if (const Json* table = config->find("phoneme_chars"); table != nullptr) hints.phoneme_chars = *table;
  return hints;
}

bool flag(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr || !value->is_bool() || value->as_bool();
}

Json tokenize(const Tokenizer& tokenizer, const Json& request) {
  Json answer = Json::object();
  answer.set("id", *request.find("id"));
  const auto ids =
      tokenizer.encode(request.find("text")->as_string(), {.add_special_tokens = flag(request, "add_special_tokens")});
  if (!ids.ok()) {
    answer.set("error", error_message(ids.status()));
    return answer;
  }
  Json id_list = Json::array();
  Json tokens = Json::array();
  for (const int32_t id : *ids) {
    id_list.push_back(id);
    tokens.push_back(tokenizer.side_token_to_string(id, TokenizerSide::kEncoder));
  }
  answer.set("token_ids", std::move(id_list));
  answer.set("tokens", std::move(tokens));
  return answer;
}

Json detokenize(const Tokenizer& tokenizer, const Json& request) {
  std::vector<int32_t> ids;
  for (const Json& id : request.find("token_ids")->as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  Json answer = Json::object();
  answer.set("id", *request.find("id"));
  answer.set("text", tokenizer.decode(ids, flag(request, "skip_special_tokens")));
  return answer;
}

Json pieces(const SentencePieceModel& model, const Json& request) {
  Json answer = Json::object();
  answer.set("id", *request.find("id"));
  std::vector<SentencePieceModel::Piece> found;
  const Status status = model.append_pieces(request.find("text")->as_string(), found);
  if (!status.ok()) {
    answer.set("error", error_message(status));
    return answer;
  }
  Json id_list = Json::array();
  Json texts = Json::array();
  for (const SentencePieceModel::Piece& piece : found) {
    id_list.push_back(piece.id);
    texts.push_back(piece.text);
  }
  answer.set("token_ids", std::move(id_list));
  answer.set("tokens", std::move(texts));
  return answer;
}

int fail(const Status& status) {
  std::cerr << error_message(status) << '\n';
  return 1;
}

template <typename Answer>
int answer_all(const std::string& input, Answer answer) {
  std::ifstream file(input);
  for (std::string line; std::getline(file, line);) {
    const StatusOr<Json> request = Json::parse(line);
    if (!request.ok()) return fail(request.status());
    std::cout << answer(*request).dump() << '\n';
  }
  return 0;
}

int run(const std::string& verb, const std::string& path, const std::string& input) {
  if (verb == "pieces") {
    const StatusOr<std::string> bytes = read_file(path);
    if (!bytes.ok()) return fail(bytes.status());
    const auto model = SentencePieceModel::parse(path, *bytes);
    if (!model.ok()) return fail(model.status());
    return answer_all(input, [&](const Json& request) { return pieces(**model, request); });
  }
  const auto tokenizer = load_tokenizer(path, read_hints(path));
  if (!tokenizer.ok()) return fail(tokenizer.status());
  return answer_all(input, [&](const Json& request) {
    return verb == "tokenize" ? tokenize(**tokenizer, request) : detokenize(**tokenizer, request);
  });
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) {
  if (argc != 5 || std::string(argv[3]) != "--input") {
    std::cerr << "tokenizer_probe tokenize|detokenize|pieces MODEL --input FILE.jsonl\n";
    return 2;
  }
  return transept::run(argv[1], argv[2], argv[4]);
}
