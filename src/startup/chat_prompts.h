// What makes prompts of a served model's chats: the chat template of its folder, or of --chat-template. Immutable after
// load(), so thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/chat/chat_template.h"
#include "text/chat/chat_template_files.h"

namespace transept {

class ChatPrompts final {
 public:
  // The template of a model's folder; `file`, unless it is "", has another one. Null: the folder has none. A template
  // of the folder that cannot be used is no error here, as the model answers all but chats: render() says why. Errors,
  // with the file: of `file`, one that cannot be read or is no template.
  static StatusOr<std::unique_ptr<const ChatPrompts>> load(const std::string& dir, ChatTemplateOwner owner,
                                                           const std::string& file);

  // A line for each thing that is not supported: file, line and construct.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The text of the turns, and what begins the answer (add_generation_prompt). `messages`: Chat::messages. Errors, of
  // the field "messages": kInvalidArgument: what the template refuses, or a text that is too long or takes too many
  // steps; kUnimplemented: what the template has and this version does not.
  StatusOr<std::string> render(const Json& messages) const;

 private:
  ChatPrompts() = default;
  Status parse(const std::string& source, const std::string& name);

  std::optional<ChatTemplate> template_;
  Status why_not_;  // there is no template_
  Json variables_ = Json::object();
  std::vector<std::string> warnings_;
};

}  // namespace transept
