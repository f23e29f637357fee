#include "startup/chat_prompts.h"

#include <utility>

#include "base/input_file.h"

namespace transept {
namespace {

constexpr std::string_view kParam = "messages";

// As the answer to a request: no fault of the server's, whatever bound the messages met.
Status as_refusal(const Status& status) {
  const std::string message = str_cat("the chat template: ", error_message(status));
  if (absl::IsUnimplemented(status)) return with_param(absl::UnimplementedError(message), kParam);
  return field_error(kParam, message);
}

}  // namespace

Status ChatPrompts::parse(const std::string& source, const std::string& name) {
  StatusOr<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) {
    why_not_ = parsed.status();
    warnings_.push_back(str_cat(name, ": ", error_message(why_not_), ": chats are refused"));
    return why_not_;
  }
  for (const std::string& construct : parsed->unsupported()) {
    warnings_.push_back(str_cat(name, ": ", construct, ": chats that come to it are refused"));
  }
  template_ = std::move(parsed).value();
  return ok_status();
}

StatusOr<std::unique_ptr<const ChatPrompts>> ChatPrompts::load(const std::string& dir, ChatTemplateOwner owner,
                                                               const std::string& file) {
  std::unique_ptr<ChatPrompts> prompts(new ChatPrompts());
  StatusOr<ChatTemplateFiles> files = load_chat_template_files(dir, owner);
  if (files.ok()) prompts->variables_ = files->special_tokens;
  prompts->variables_.set("add_generation_prompt", true);
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const std::string source, read_file(file, ChatTemplate::kMaxSourceBytes));
    const Status parsed = prompts->parse(source, file);
    if (!parsed.ok() && !absl::IsUnimplemented(parsed)) return with_prefix(parsed, file);
    return prompts;
  }
  if (!files.ok()) {
    prompts->why_not_ = files.status();
    prompts->warnings_.push_back(str_cat(dir, ": ", error_message(files.status()), ": chats are refused"));
    return prompts;
  }
  const ChatTemplateFiles::Entry* const entry = files->choose(/*has_tools=*/false);
  if (entry == nullptr) return std::unique_ptr<const ChatPrompts>();
  (void)prompts->parse(entry->source, str_cat(dir, "/", entry->file));
  return prompts;
}

StatusOr<std::string> ChatPrompts::render(const Json& messages) const {
  if (!template_.has_value()) return as_refusal(why_not_);
  StatusOr<std::string> text = template_->render({.messages = messages, .variables = variables_});
  return text.ok() ? std::move(text) : StatusOr<std::string>(as_refusal(text.status()));
}

}  // namespace transept
