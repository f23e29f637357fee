#include "server/text_routes.h"

#include <algorithm>

#include "request/field_table.h"
#include "request/result_json.h"
#include "server/completion_logprobs.h"
#include "server/encoded_inputs.h"
#include "server/engine_call.h"
#include "server/replies.h"

namespace transept {
namespace {

struct Body {
  Json json;
  ParsedRequest parsed;
  std::string model;
};

StatusOr<Body> read_body(const ServerContext& context, const ApiCall& call, FieldRoutes route) {
  Body body;
  ASSIGN_OR_RETURN(body.json, json_body(context, call.http));
  ASSIGN_OR_RETURN(body.parsed, parse_body(body.json, route, context.options.limits));
  context.metrics.count_unknown_fields(body.parsed.num_unknown_fields);
  ASSIGN_OR_RETURN(body.model, model_name(context, body.parsed.body.model));
  return body;
}

StatusOr<const Tokenizer*> tokenizer_of(const ServerContext& context) {
  if (context.model.tokenizer != nullptr) return context.model.tokenizer.get();
  return invalid_argument("the model's folder has no tokenizer");
}

// Collects the finished answers of a batch.
class Collected : public EngineCall {
 public:
  Collected(const ServerContext& context, ApiCallPtr call, size_t num_prompts)
      : context_(context), call_(std::move(call)), outputs_(num_prompts) {}

  void on_output(size_t index, RequestOutput output) override {
    usage_.add(output);
    outputs_[index] = std::move(output);
  }
  void on_end(const Status& status) override {
    if (!status.ok()) return reply_error(context_, *call_, status);
    reply(*call_, answer());
  }

 protected:
  virtual Json answer() const = 0;

  const ServerContext& context_;
  const ApiCallPtr call_;
  std::vector<RequestOutput> outputs_;
  Usage usage_;
};

class Score final : public Collected {
 public:
  Score(const ServerContext& context, ApiCallPtr call, std::string model, size_t num_prompts)
      : Collected(context, std::move(call), num_prompts), model_(std::move(model)) {}

 protected:
  Json answer() const override {
    const CompletionLogprobs logprobs(context_.model.tokenizer.get());
    Json::Array data;
    for (const RequestOutput& output : outputs_) {
      Json::Object entry;
      entry.emplace_back("index", static_cast<int64_t>(data.size()));
      entry.emplace_back("object", "score");
      entry.emplace_back("score", output.score.has_value() ? Json(*output.score) : Json());
      entry.emplace_back("prompt_token_ids", ids_json(output.prompt_token_ids));
      entry.emplace_back("prompt_logprobs", output.prompt_logprobs.has_value()
                                                ? prompt_logprobs_json(*output.prompt_logprobs, logprobs.token_text())
                                                : Json());
      if (output.prompt_alignments.has_value()) {
        entry.emplace_back("prompt_alignments", alignments_json(*output.prompt_alignments));
      }
      data.emplace_back(std::move(entry));
    }
    Usage usage = usage_;
    usage.completion_tokens = 0;  // nothing is generated
    Json body = Json::object();
    body.set("id", "score-" + call_->http.request_id);
    body.set("object", "list");
    body.set("model", model_);
    body.set("data", std::move(data));
    body.set("usage", usage.to_json());
    return body;
  }

 private:
  const std::string model_;
};

class Translations final : public Collected {
 public:
  using Collected::Collected;

 protected:
  Json answer() const override {
    Json::Array translations;
    for (const RequestOutput& output : outputs_) {
      Json entry = Json::object();
      entry.set("text", output.outputs.empty() ? std::string() : output.outputs.front().text);
      translations.push_back(std::move(entry));
    }
    Json::Object body;
    body.emplace_back("translations", std::move(translations));
    body.emplace_back("usage", usage_.to_json());
    return Json(std::move(body));
  }
};

Status start_score(const ServerContext& context, const ApiCallPtr& call) {
  ASSIGN_OR_RETURN(Body body, read_body(context, *call, field_routes::kScore));
  const auto max_prompts = static_cast<size_t>(context.options.queue.max_requests);
  ASSIGN_OR_RETURN(std::vector<EncoderDecoderPrompt> prompts,
                   read_prompts(body.json, max_prompts, body.parsed.warnings));
  for (const EncoderDecoderPrompt& prompt : prompts) {
    if (!prompt.decoder.has_value())
      return field_error("decoder_prompt", "decoder_prompt is missing: it is what is scored");
  }
  EngineCallOptions options{.score_only = true};
  ASSIGN_OR_RETURN(options.injected, injected_inputs(context, call->http, body.json, prompts.size()));
  auto route = std::make_shared<Score>(context, call, std::move(body.model), prompts.size());
  start_engine_call(context, call, body.parsed, std::move(prompts), options, std::move(route));
  return ok_status();
}

Status check_translation(const ParsedRequest& parsed) {
  for (const auto& [name, count] :
       {std::pair("n", parsed.sampling.n), {"num_return_sequences", parsed.sampling.num_return_sequences}}) {
    if (count.value_or(1) > 1) {
      return field_error(
          name, str_cat(name, " is ", *count, ", and a text has one translation here; /v1/completions gives several"));
    }
  }
  if (parsed.sampling.logprobs.has_value()) return field_error("logprobs", "logprobs: /v1/completions gives them");
  if (parsed.sampling.prompt_logprobs.has_value())
    return field_error("prompt_logprobs", "prompt_logprobs: /v1/score gives them");
  return ok_status();
}

Status start_translate(const ServerContext& context, const ApiCallPtr& call) {
  ASSIGN_OR_RETURN(Body body, read_body(context, *call, field_routes::kTranslate));
  RETURN_IF_ERROR(check_translation(body.parsed));
  RETURN_IF_ERROR(tokenizer_of(context).status());
  const size_t count = body.parsed.body.texts->size();
  if (const auto most = static_cast<size_t>(context.options.queue.max_requests); count > most) {
    return field_error("text", str_cat("text is a list of ", count, "; at most ", most, " are taken at once"));
  }
  std::vector<EncoderDecoderPrompt> prompts;
  for (std::string& text : *body.parsed.body.texts) {
    EncoderDecoderPrompt prompt;
    prompt.encoder.content = TextPrompt{std::move(text)};
    prompt.encoder_param = "text";
    prompts.push_back(std::move(prompt));
  }
  EngineCallOptions options;
  ASSIGN_OR_RETURN(options.injected, injected_inputs(context, call->http, body.json, prompts.size()));
  auto route = std::make_shared<Translations>(context, call, prompts.size());
  start_engine_call(context, call, body.parsed, std::move(prompts), options, std::move(route));
  return ok_status();
}

// No model reads so much: a request for its tokens would only hold a worker.
constexpr size_t kMaxTextBytes = 1 << 20;

int32_t max_model_len(const ServerContext& context) { return context.model.prompts->limits().max_encoder_len; }

StatusOr<Json> tokenize(const ServerContext& context, const ApiCall& call) {
  ASSIGN_OR_RETURN(const Body body, read_body(context, call, field_routes::kTokenize));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, tokenizer_of(context));
  const BodyFields& fields = body.parsed.body;
  if (fields.text->size() > kMaxTextBytes) {
    return field_error("prompt", str_cat("prompt has ", fields.text->size(), " bytes; at most ", kMaxTextBytes,
                                         " are tokenised at once: send the text in parts"));
  }
  const PromptOptions& given = body.parsed.prompt_options;
  const std::string source_lang = given.source_lang.value_or(""), target_lang = given.target_lang.value_or("");
  EncodeOptions options;
  options.add_special_tokens = given.add_special_tokens.value_or(true);
  options.side = fields.side == "decoder" ? TokenizerSide::kDecoder : TokenizerSide::kEncoder;
  options.source_lang = source_lang;
  options.target_lang = target_lang;
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->encode(*fields.text, options));
  Json strings;
  if (fields.return_token_strs.value_or(false)) {
    strings = Json::array();
    for (const int32_t id : ids) strings.push_back(tokenizer->side_token_to_string(id, options.side));
  }
  Json::Object answer;
  answer.emplace_back("count", static_cast<int64_t>(ids.size()));
  answer.emplace_back("max_model_len", max_model_len(context));
  answer.emplace_back("tokens", ids_json(ids));
  answer.emplace_back("token_strs", std::move(strings));
  return Json(std::move(answer));
}

StatusOr<Json> detokenize(const ServerContext& context, const ApiCall& call) {
  ASSIGN_OR_RETURN(const Body body, read_body(context, call, field_routes::kDetokenize));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, tokenizer_of(context));
  // The model's vocabulary may be larger than the tokenizer's: such ids are legal, and have no text.
  const int32_t vocab_size = std::max(context.model.prompts->vocab_size(), tokenizer->vocab_size());
  const std::vector<int32_t>& ids = *body.parsed.body.tokens;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocab_size) continue;
    return field_error("tokens", str_cat("tokens[", i, "]: ", ids[i], " is outside the vocabulary of ", vocab_size));
  }
  Json answer = Json::object();
  answer.set("prompt", tokenizer->decode(ids, body.parsed.sampling.skip_special_tokens.value_or(true)));
  return answer;
}

void reply_or_error(const ServerContext& context, const ApiCall& call, const StatusOr<Json>& answer) {
  answer.ok() ? reply(call, *answer) : reply_error(context, call, answer.status());
}

}  // namespace

void handle_score(const ServerContext& context, const ApiCallPtr& call) {
  if (const Status status = start_score(context, call); !status.ok()) reply_error(context, *call, status);
}

void handle_translate(const ServerContext& context, const ApiCallPtr& call) {
  if (const Status status = start_translate(context, call); !status.ok()) reply_error(context, *call, status);
}

void handle_tokenize(const ServerContext& context, const ApiCallPtr& call) {
  reply_or_error(context, *call, tokenize(context, *call));
}

void handle_detokenize(const ServerContext& context, const ApiCallPtr& call) {
  reply_or_error(context, *call, detokenize(context, *call));
}

}  // namespace transept
