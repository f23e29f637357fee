#include "server/chat.h"

#include <utility>

#include "request/chat.h"
#include "server/answers.h"
#include "server/completion_logprobs.h"
#include "server/encoded_inputs.h"
#include "server/replies.h"

namespace transept {
namespace {

class ChatSpelling final : public AnswerSpelling {
 public:
  // Borrows the tokenizer, which may be null.
  ChatSpelling(const Tokenizer* tokenizer, const ParsedChat& parsed)
      : logprobs_(tokenizer),
        num_top_(parsed.request.body.top_logprobs.value_or(0)),
        limit_(parsed.request.body.max_completion_tokens.has_value() ? "max_completion_tokens" : "max_tokens"),
        media_(parsed.chat.media.size() == 1 ? parsed.chat.media.front().param : "messages") {}

  std::string_view id_prefix() const override { return "chatcmpl-"; }
  std::string_view object_name(bool is_chunk) const override {
    return is_chunk ? "chat.completion.chunk" : "chat.completion";
  }

  void append_text(AnswerPiece piece, Json::Object& choice) const override {
    Json::Object message;
    if (piece.is_first) message.emplace_back("role", "assistant");
    message.emplace_back("content", std::move(piece.text));
    if (piece.is_first) message.emplace_back("refusal", Json());
    choice.emplace_back(piece.is_chunk ? "delta" : "message", std::move(message));
    const bool has_logprobs = piece.output.logprobs.has_value();
    choice.emplace_back("logprobs", has_logprobs ? logprobs_.to_chat_json(piece.output, num_top_) : Json());
  }

  // Fields that a chat has under other names.
  Status spelled(Status status) const override {
    const std::string param = error_param(status);
    if (param == "multi_modal_data") return with_param(absl::Status(status.code(), status.message()), media_);
    if (param == "prompt") return with_param(absl::Status(status.code(), status.message()), "messages");
    if (param == "max_tokens") return with_param(absl::Status(status.code(), status.message()), limit_);
    return status;
  }

 private:
  const CompletionLogprobs logprobs_;
  const int32_t num_top_;
  const std::string limit_, media_;
};

// What the model's template makes of the messages, which has the special tokens in it; or the one turn's text.
StatusOr<EncoderDecoderPrompt> prompt_of(const ServerContext& context, ParsedChat& parsed) {
  const ChatPrompts* prompts = context.model.chat_prompts.get();
  if (prompts == nullptr) return plain_chat_prompt(std::move(parsed.chat), context.model.info.spec.family);
  ASSIGN_OR_RETURN(std::string text, prompts->render(parsed.chat.messages));
  std::optional<bool>& adds = parsed.request.prompt_options.add_special_tokens;
  adds = adds.value_or(false);
  return rendered_chat_prompt(std::move(parsed.chat), std::move(text));
}

Status start(const ServerContext& context, const ApiCallPtr& call) {
  ASSIGN_OR_RETURN(const Json body, json_body(context, call->http));
  ASSIGN_OR_RETURN(ParsedChat parsed, parse_chat(body, context.options.limits));
  context.metrics.count_unknown_fields(parsed.request.num_unknown_fields);
  AnswersRequest request;
  ASSIGN_OR_RETURN(request.model, model_name(context, parsed.request.body.model));
  ASSIGN_OR_RETURN(request.injected, injected_inputs(context, call->http, body, 1));
  auto spelling = std::make_unique<ChatSpelling>(context.model.tokenizer.get(), parsed);
  ASSIGN_OR_RETURN(EncoderDecoderPrompt prompt, prompt_of(context, parsed));
  request.prompts.push_back(std::move(prompt));
  request.parsed = std::move(parsed.request);
  return start_answers(context, call, std::move(request), std::move(spelling));
}

}  // namespace

void handle_chat(const ServerContext& context, const ApiCallPtr& call) {
  if (const Status status = start(context, call); !status.ok()) reply_error(context, *call, status);
}

}  // namespace transept
