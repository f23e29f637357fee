// Patterns over the names of modules, as files of quantised models write them: "lm_head" is a name, "re:.*mlp.*" a
// regular expression that has to match from the beginning of the name on, not up to its end (Python's re.match).
//
// The subset: characters, `.`, classes ([a-z], [^/], \d \w \s and their opposites), groups, alternatives, the
// quantifiers * + ? {m} {m,} {m,n} and their lazy forms, ^ and $. What is not regular (back references, lookaround),
// flags and word boundaries are refused by name. Matching takes time linear in the name: states are followed all at
// once. A value: thread-safe.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class NamePattern final {
 public:
  static constexpr size_t kMaxBytes = 4096;
  static constexpr size_t kMaxSteps = 4096;  // of the compiled expression, with its counted parts written out
  static constexpr int kMaxDepth = 64;       // of groups

  // text: a name, or "re:" and an expression. Errors: longer than kMaxBytes; an expression that is malformed, outside
  // the subset (names the construct) or over a limit.
  static StatusOr<NamePattern> parse(std::string_view text);

  bool matches(std::string_view name) const;

  bool is_name() const { return steps_.empty(); }
  const std::string& text() const { return text_; }
  size_t num_steps() const { return steps_.size(); }

  using Bytes = std::bitset<256>;
  enum class Op : uint8_t { kBytes, kSplit, kJump, kBegin, kEnd, kMatch };
  struct Step {
    Op op = Op::kMatch;
    uint32_t to = 0, other = 0;  // kSplit: both; kJump: to; kBytes: an index into the sets
  };

 private:
  std::string text_;  // as it was written
  std::vector<Step> steps_;
  std::vector<Bytes> sets_;
};

}  // namespace transept
