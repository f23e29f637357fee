// The vocabularies of a Marian model: which files of its folder they are, and their tokens by id. A vocabulary is YAML
// or JSON ({token: id}), a text with one token a line, or a SentencePiece model. Values. Source: marian-dev 1.12,
// src/data/default_vocab.cpp, sentencepiece_vocab.cpp; OPUS-MT-train's releases for the names of files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/model_folder.h"
#include "base/status.h"
#include "foreign/marian_yaml.h"

namespace transept {

class MarianVocabulary final {
 public:
  // Of the first `rows` ids: Marian's dim-vocabs cuts longer files. Errors: kUnimplemented for a factored one (.fsv);
  // no file; another form; an id that is no number or that two tokens have; an id below `rows` without a token; no
  // "</s>"; over 2,000,000 tokens.
  static StatusOr<MarianVocabulary> read(const ModelFolder& folder, std::string_view name, int64_t rows);

  const std::string& file() const { return file_; }
  // The first of that spelling.
  std::optional<int64_t> find(std::string_view token) const;
  // {token: id} of all, and "<pad>", whose id is `rows` if the file has none.
  Json with_pad() const;
  // The model's bytes if the file is one: it is its own tokenizer. "": it is none.
  const std::string& sentencepiece() const { return sentencepiece_; }

 private:
  std::string file_, sentencepiece_;
  std::vector<std::string> tokens_;  // by id
  std::map<std::string, int64_t, std::less<>> ids_;
};

// Names of files of a folder, of the encoder's side and of the decoder's; often the same.
struct MarianVocabularyFiles {
  std::string source, target;
};

// `vocabs` of `settings`, by the last part of their paths, if these files are in the folder; else what files are
// called: one with "vocab" in its name, or two of which one says "src" or "source" and the other "trg", "tgt" or
// "target". Errors: none is found; several are, and nothing tells which.
StatusOr<MarianVocabularyFiles> find_marian_vocabularies(const std::string& dir, const YamlMap& settings);

}  // namespace transept
