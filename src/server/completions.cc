#include "server/completions.h"

#include "server/answers.h"
#include "server/completion_logprobs.h"
#include "server/encoded_inputs.h"
#include "server/replies.h"

namespace transept {
namespace {

class CompletionSpelling final : public AnswerSpelling {
 public:
  // Borrows the tokenizer, which may be null.
  explicit CompletionSpelling(const Tokenizer* tokenizer) : logprobs_(tokenizer) {}

  std::string_view id_prefix() const override { return "cmpl-"; }
  std::string_view object_name(bool /*is_chunk*/) const override { return "text_completion"; }
  void append_text(AnswerPiece piece, Json::Object& choice) const override {
    const bool has_logprobs = piece.output.logprobs.has_value();
    choice.emplace_back("text", std::move(piece.text));
    choice.emplace_back("logprobs", has_logprobs ? logprobs_.to_json(piece.output, piece.text_offset) : Json());
  }

 private:
  const CompletionLogprobs logprobs_;
};

// What echo needs: a text before the answer.
Status check_echo(const ParsedRequest& parsed, const std::vector<EncoderDecoderPrompt>& prompts) {
  if (!parsed.body.echo.value_or(false)) return ok_status();
  for (const EncoderDecoderPrompt& prompt : prompts) {
    if (prompt.encoder.multi_modal_data.has_value())
      return field_error("echo", "echo: audio has no text to be put before the answer");
  }
  return ok_status();
}

Status start(const ServerContext& context, const ApiCallPtr& call) {
  ASSIGN_OR_RETURN(const Json body, json_body(context, call->http));
  AnswersRequest request;
  ParsedRequest& parsed = request.parsed;
  ASSIGN_OR_RETURN(parsed, parse_body(body, field_routes::kCompletions, context.options.limits));
  context.metrics.count_unknown_fields(parsed.num_unknown_fields);
  ASSIGN_OR_RETURN(request.model, model_name(context, parsed.body.model));
  const auto max_prompts = static_cast<size_t>(context.options.queue.max_requests);
  ASSIGN_OR_RETURN(request.prompts, read_prompts(body, max_prompts, parsed.warnings));
  RETURN_IF_ERROR(check_echo(parsed, request.prompts));
  ASSIGN_OR_RETURN(request.injected, injected_inputs(context, call->http, body, request.prompts.size()));
  return start_answers(context, call, std::move(request),
                       std::make_unique<CompletionSpelling>(context.model.tokenizer.get()));
}

}  // namespace

void handle_completion(const ServerContext& context, const ApiCallPtr& call) {
  if (const Status status = start(context, call); !status.ok()) reply_error(context, *call, status);
}

}  // namespace transept
