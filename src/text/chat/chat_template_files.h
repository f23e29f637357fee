// The chat templates of a model's folder, and the special tokens that they read. A value; functions are thread-safe.
// Source: transformers 5.23, tokenization_utils_base.py and processing_utils.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept {

// Whose template it is: of a processor (models of images and audio) or of a tokenizer.
enum class ChatTemplateOwner { kTokenizer, kProcessor };

struct ChatTemplateFiles {
  struct Entry {
    std::string name;  // "default", "tool_use", ..
    std::string source;
    std::string file;  // for messages: "chat_template.jinja"
  };

  std::vector<Entry> templates;  // empty: the folder has none
  // An object: "bos_token", "eos_token", .. and tokens of the model's own, such as "image_token", as strings. A token
  // that the class of a tokenizer has without a file naming it is not here.
  Json special_tokens = Json::object();
  ChatTemplateOwner owner = ChatTemplateOwner::kTokenizer;

  // The template for a request: "tool_use" of a tokenizer if there are tools, else "default"; null: neither is there.
  const Entry* choose(bool has_tools) const;
};

// Reads the first of these that is there:
//   processors    "chat_template" of processor_config.json; chat_template.json; then as tokenizers
//   tokenizers    chat_template.jinja and additional_chat_templates/NAME.jinja; "chat_template" of
//   tokenizer_config.json,
//                 a string, or a list of {name, template}
// and special tokens from tokenizer_config.json, and special_tokens_map.json if the former has no added_tokens_decoder.
// Errors name file and field: a file that cannot be read, is not JSON, or has a field of another kind;
// chat_template.json beside additional_chat_templates (for processors).
StatusOr<ChatTemplateFiles> load_chat_template_files(const std::string& dir, ChatTemplateOwner owner);

}  // namespace transept
