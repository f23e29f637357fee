// json.dumps of Python. A function.
#pragma once

#include <optional>
#include <string>

#include "text/chat/heap.h"

namespace transept::jinja {

struct JsonTextOptions {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // of one level; nothing: one line
  std::string item_separator, key_separator;
  bool sort_keys = false;
};

// Appends the document. Errors: kInvalidArgument: a value, or a key, that JSON has not.
Status append_json(TextBuilder& out, const Value& value, const JsonTextOptions& options);

}  // namespace transept::jinja
