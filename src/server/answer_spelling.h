// How the answers of the engine are spelled: as completions ("text"), or as a chat's ("message", and "delta" in
// streams). Everything else of the two is one (answers.h). Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "core/request_output.h"

namespace transept {

// A whole answer, or what is new of it.
struct AnswerPiece {
  const CompletionOutput& output;
  std::string text;  // with what echo puts before it
  bool is_chunk = false;
  bool is_first = true;  // of its answer
  int64_t* text_offset;  // characters of the answer before the piece; moves on where they are counted
};

class AnswerSpelling {
 public:
  virtual ~AnswerSpelling() = default;

  virtual std::string_view id_prefix() const = 0;                 // "cmpl-"
  virtual std::string_view object_name(bool is_chunk) const = 0;  // "text_completion"
  // Adds the members of a choice that hold the text and its log-probabilities.
  virtual void append_text(AnswerPiece piece, Json::Object& choice) const = 0;
  // An error as the client's own fields have it.
  virtual Status spelled(Status status) const { return status; }
};

}  // namespace transept
