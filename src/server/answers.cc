#include "server/answers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/sse.h"
#include "request/resolve.h"
#include "request/result_json.h"
#include "server/completion_logprobs.h"
#include "server/engine_call.h"
#include "server/replies.h"

namespace transept {
namespace {

using Spelling = std::unique_ptr<const AnswerSpelling>;

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// "abort" is not OpenAI's; it is seen only where the server itself gave a request up.
Json finish_reason_json(FinishReason reason) {
  if (reason == FinishReason::kNone) return {};
  return reason == FinishReason::kLength ? "length" : "stop";
}

class Answers : public EngineCall {
 public:
  Answers(const ServerContext& context, ApiCallPtr call, const AnswersRequest& request, Spelling spelling)
      : context_(context),
        call_(std::move(call)),
        spelling_(std::move(spelling)),
        id_(str_cat(spelling_->id_prefix(), call_->http.request_id)),
        model_(request.model),
        created_(unix_seconds()),
        echo_(request.parsed.body.echo.value_or(false)),
        is_structured_(request.parsed.return_structured.value_or(false)),
        token_text_(CompletionLogprobs(context.model.tokenizer.get()).token_text()) {}

  void on_prompt(size_t /*index*/, const EncoderDecoderInputs& inputs) override {
    for (const EncoderItem& item : inputs.items) {
      const bool is_image = item.features != nullptr && item.features->modality == Modality::kImage;
      if (!is_image) continue;
      usage_.image_tokens += item.features->num_positions;
      images_.push_back({item.features->image, item.features->num_positions});
    }
  }

 protected:
  // What all answers and chunks begin with.
  Json::Object head(bool is_chunk) const {
    Json::Object object;
    object.emplace_back("id", id_);
    object.emplace_back("object", spelling_->object_name(is_chunk));
    object.emplace_back("created", created_);
    object.emplace_back("model", model_);
    return object;
  }

  // What all answers, or a stream's last chunk with its usage, end with.
  void append_usage(Json::Object& body) const {
    if (!images_.empty()) body.emplace_back("images", images_json(images_));
    body.emplace_back("usage", usage_.to_json());
  }

  // The decoder prompt's text, where it is asked for. `prompt`: RequestOutput or EncoderDecoderInputs.
  std::string echoed(const auto& prompt) const {
    if (!echo_ || context_.model.tokenizer == nullptr) return "";
    return prompt.prompt.value_or(context_.model.tokenizer->decode(prompt.prompt_token_ids, true));
  }

  Json choice(int64_t index, AnswerPiece piece) const {
    const CompletionOutput& output = piece.output;
    Json::Object object;
    object.emplace_back("index", index);
    spelling_->append_text(std::move(piece), object);
    if (output.structured.has_value()) object.emplace_back("structured", *output.structured);
    object.emplace_back("finish_reason", finish_reason_json(output.finish_reason));
    object.emplace_back("stop_reason", stop_reason_json(output.stop_reason));
    if (output.alignments.has_value()) object.emplace_back("alignments", alignments_json(*output.alignments));
    return Json(std::move(object));
  }

  void set_prompt_logprobs(const RequestOutput& output, Json& choice) const {
    if (!output.prompt_logprobs.has_value()) return;
    choice.set("prompt_logprobs", prompt_logprobs_json(*output.prompt_logprobs, token_text_));
  }

  const ServerContext& context_;
  const ApiCallPtr call_;
  const Spelling spelling_;
  const std::string id_, model_;
  const int64_t created_;
  const bool echo_, is_structured_;
  const std::function<std::string(int32_t)> token_text_;
  Usage usage_;
  std::vector<TakenImage> images_;  // of all prompts, in order
};

class WholeAnswers final : public Answers {
 public:
  WholeAnswers(const ServerContext& context, ApiCallPtr call, const AnswersRequest& request, Spelling spelling)
      : Answers(context, std::move(call), request, std::move(spelling)), outputs_(request.prompts.size()) {}

  void on_output(size_t index, RequestOutput output) override { outputs_[index] = std::move(output); }

  void on_end(const Status& status) override {
    if (!status.ok()) return reply_error(context_, *call_, spelling_->spelled(status));
    Json::Array choices;
    for (RequestOutput& output : outputs_) {
      if (is_structured_) add_structured(*context_.model.media->structured(), *context_.model.tokenizer, output);
      const std::string echo = echoed(output);
      for (const CompletionOutput& one : output.outputs) {
        auto text_offset = static_cast<int64_t>(count_characters(echo));
        Json entry = choice(static_cast<int64_t>(choices.size()),
                            {.output = one, .text = echo + one.text, .text_offset = &text_offset});
        set_prompt_logprobs(output, entry);
        choices.push_back(std::move(entry));
      }
      usage_.add(output);
    }
    Json::Object body = head(false);
    body.emplace_back("choices", std::move(choices));
    append_usage(body);
    reply(*call_, Json(std::move(body)));
  }

 private:
  std::vector<RequestOutput> outputs_;
};

class StreamedAnswers final : public Answers {
 public:
  // `num_answers`: of each prompt.
  StreamedAnswers(const ServerContext& context, ApiCallPtr call, const AnswersRequest& request, Spelling spelling,
                  size_t num_answers)
      : Answers(context, std::move(call), request, std::move(spelling)),
        include_usage_(request.parsed.body.include_usage.value_or(false)),
        has_prompt_logprobs_(request.parsed.sampling.prompt_logprobs.has_value()),
        num_answers_(num_answers),
        prompts_(request.prompts.size()) {}

  // Pieces have it no more: an engine's output names its prompt at its end alone.
  void on_prompt(size_t index, const EncoderDecoderInputs& inputs) override {
    Answers::on_prompt(index, inputs);
    prompts_[index].echo = echoed(inputs);
  }

  void on_output(size_t index, RequestOutput output) override {
    std::string events;
    PromptState& state = prompts_[index];
    for (const CompletionOutput& one : output.outputs) append_piece(index, output, one, state, events);
    if (output.finished) {
      // Pieces held what is new alone: of all answers together there is the count that was kept.
      usage_.add_request(output);
      for (Json& entry : std::exchange(state.ended, {})) append_choice(std::move(entry), output, events);
    }
    send(std::move(events));
  }

  void on_end(const Status& status) override {
    if (!status.ok() && !has_started_) return reply_error(context_, *call_, spelling_->spelled(status));
    std::string events;
    if (!status.ok()) {
      log_if_internal(context_, *call_, status);
      append_sse_event(events, error_response(spelling_->spelled(status), context_.admission).body);
    } else if (include_usage_) {
      Json::Object chunk = head(true);
      chunk.emplace_back("choices", Json::array());
      append_usage(chunk);
      append_sse_event(events, Json(std::move(chunk)).dump());
    }
    events += kSseDone;
    send(std::move(events));
    call_->responder->finish();
  }

 private:
  struct AnswerState {
    bool has_begun = false, has_ended = false;
    int64_t text_offset = 0;
  };
  struct PromptState {
    std::string echo;
    std::vector<AnswerState> answers;
    std::vector<Json> ended;  // last choices of answers, until the prompt's logprobs are there: with the last of all
  };

  void append_piece(size_t prompt, const RequestOutput& output, const CompletionOutput& one, PromptState& state,
                    std::string& events) {
    const auto index = static_cast<size_t>(one.index);
    if (index >= state.answers.size()) state.answers.resize(index + 1);
    AnswerState& answer = state.answers[index];
    if (answer.has_ended) return;
    std::string text = one.text;
    if (!answer.has_begun) {
      answer.text_offset = static_cast<int64_t>(count_characters(state.echo));
      text = state.echo + text;
    }
    const bool has_news = !text.empty() || !one.token_ids.empty() || one.finish_reason != FinishReason::kNone;
    if (!has_news) return;
    usage_.completion_tokens += static_cast<int64_t>(one.token_ids.size());
    const auto choice_index = static_cast<int64_t>(prompt * num_answers_ + index);
    Json entry = choice(choice_index, {.output = one,
                                       .text = std::move(text),
                                       .is_chunk = true,
                                       .is_first = !answer.has_begun,
                                       .text_offset = &answer.text_offset});
    answer.has_begun = true;
    answer.has_ended = one.finish_reason != FinishReason::kNone;
    if (answer.has_ended && has_prompt_logprobs_) {
      state.ended.push_back(std::move(entry));
    } else {
      append_choice(std::move(entry), output, events);
    }
  }

  void append_choice(Json entry, const RequestOutput& output, std::string& events) const {
    set_prompt_logprobs(output, entry);
    Json::Object chunk = head(true);
    chunk.emplace_back("choices", Json::Array{std::move(entry)});
    if (include_usage_) chunk.emplace_back("usage", Json());
    append_sse_event(events, Json(std::move(chunk)).dump());
  }

  void send(std::string events) {
    if (events.empty()) return;
    if (!std::exchange(has_started_, true)) {
      call_->responder->start_stream({.content_type = std::string(kSseContentType),
                                      .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
                                      .body = std::move(events)});
      return;
    }
    call_->responder->write(std::move(events));
  }

  const bool include_usage_, has_prompt_logprobs_;
  const size_t num_answers_;
  std::vector<PromptState> prompts_;
  bool has_started_ = false;
};

}  // namespace

Status start_answers(const ServerContext& context, const ApiCallPtr& call, AnswersRequest request, Spelling spelling) {
  const ParsedRequest& parsed = request.parsed;
  EngineCallOptions options;
  const bool stream = options.stream = parsed.stream.value_or(false);
  if (parsed.body.include_usage.value_or(false) && !stream) {
    return field_error("stream_options", "stream_options is for streams alone: set stream, too");
  }
  std::shared_ptr<EngineCall> route;
  if (stream) {
    const auto of_each = static_cast<size_t>(std::max(1, num_answers(parsed.sampling, context.model.generation)));
    route = std::make_shared<StreamedAnswers>(context, call, request, std::move(spelling), of_each);
  } else {
    route = std::make_shared<WholeAnswers>(context, call, request, std::move(spelling));
  }
  options.injected = std::move(request.injected);
  start_engine_call(context, call, parsed, std::move(request.prompts), options, std::move(route));
  return ok_status();
}

}  // namespace transept
