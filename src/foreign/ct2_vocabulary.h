// The tokens of a CTranslate2 folder by id: vocabulary.json and its like, or .txt with one token a line, as older
// versions wrote. Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/model_folder.h"
#include "base/status.h"

namespace transept {

class Ct2Vocabulary final {
 public:
  // Of the first of `names` ("shared_vocabulary") that is there as .json or .txt. Errors: none is; no list of strings;
  // over 2,000,000 tokens.
  static StatusOr<Ct2Vocabulary> read(const ModelFolder& folder, std::initializer_list<std::string_view> names);

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::string& file() const { return file_; }
  // The first of that spelling.
  std::optional<int64_t> find(std::string_view token) const;

 private:
  std::string file_;
  std::vector<std::string> tokens_;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace transept
