#include "server/openapi_replies.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "server/openapi_fields.h"

namespace transept {
namespace {

Json type(std::string_view name) { return json_object({{"type", name}}); }
Json or_null(std::string_view name) { return json_object({{"type", Json::Array{name, "null"}}}); }
Json list_of(Json items) { return json_object({{"type", "array"}, {"items", std::move(items)}}); }
Json map_of(Json values) { return json_object({{"type", "object"}, {"additionalProperties", std::move(values)}}); }
Json constant(std::string_view word) { return json_object({{"type", "string"}, {"enum", Json::Array{word}}}); }
Json nullable(Json schema) { return json_object({{"anyOf", Json::Array{std::move(schema), type("null")}}}); }

using Members = std::initializer_list<std::pair<std::string_view, Json>>;

// An object whose `required` members are always there, and whose `optional` ones may be.
Json object(std::string_view doc, Members required, Members optional = {}) {
  Json properties = json_object(required);
  Json names = Json::array();
  for (const auto& [name, schema] : required) names.push_back(name);
  for (const auto& [name, schema] : optional) properties.set(name, schema);
  return json_object({{"type", "object"}, {"description", doc}, {"properties", properties}, {"required", names}});
}

Json integer() { return type("integer"); }
Json number() { return type("number"); }
Json text() { return type("string"); }
Json ids() { return list_of(integer()); }

Json usage() {
  Json details = object("Of which side they are.",
                        {{"encoder_tokens", integer()}, {"decoder_tokens", integer()}, {"cached_tokens", integer()}},
                        {{"audio_seconds", number()}, {"image_tokens", integer()}, {"cached_media_tokens", integer()}});
  Json guesses = object("Guesses that were run, if there were any: those that the answer has, and the others.",
                        {{"accepted_prediction_tokens", integer()}, {"rejected_prediction_tokens", integer()}}, {});
  return object(
      "Tokens read and written, each once. Of /metrics, request_prompt_tokens agrees with prompt_tokens; "
      "prompt_tokens_total counts what decoders computed, again after a preemption too.",
      {{"prompt_tokens", integer()}, {"completion_tokens", integer()}, {"total_tokens", integer()}},
      {{"prompt_tokens_details", std::move(details)}, {"completion_tokens_details", std::move(guesses)}});
}

Json images() {
  return list_of(object("How a picture was taken: its sides as it was sent and as the model got it, in pixels.",
                        {{"width", integer()},
                         {"height", integer()},
                         {"used_width", integer()},
                         {"used_height", integer()},
                         {"tiles", integer()},
                         {"positions", integer()}}));
}

// Of every token the encoder position that it attends to most; null: none.
Json alignments() { return list_of(or_null("integer")); }

Json prompt_logprobs() {
  const Json token =
      object("A token at this place.", {{"logprob", number()}, {"rank", integer()}, {"decoded_token", text()}});
  return list_of(nullable(map_of(token)));
}

Json logprobs() {
  return nullable(object("Of every token, natural logarithms.", {{"tokens", list_of(text())},
                                                                 {"token_logprobs", list_of(or_null("number"))},
                                                                 {"top_logprobs", list_of(nullable(map_of(number())))},
                                                                 {"text_offset", list_of(integer())}}));
}

Json chat_logprobs() {
  const Json logprob = number(), bytes = nullable(list_of(integer()));
  const Json one = object("A likely token.", {{"token", text()}, {"logprob", logprob}, {"bytes", bytes}});
  const Json token =
      object("A token of the answer, a natural logarithm, and the best tokens at its place.",
             {{"token", text()}, {"logprob", logprob}, {"bytes", bytes}, {"top_logprobs", list_of(one)}});
  return nullable(object("Of every token.", {{"content", list_of(token)}, {"refusal", type("null")}}));
}

// The text of a chat's answer, or what is new of it: the role comes with the first piece.
Json message(bool is_chunk) {
  if (is_chunk) {
    return object("What is new of the text.", {{"content", text()}},
                  {{"role", constant("assistant")}, {"refusal", type("null")}});
  }
  return object("The text.", {{"role", constant("assistant")}, {"content", text()}, {"refusal", type("null")}});
}

Json choice(bool is_chunk, std::string_view text_name, Json text_schema, Json logprobs_schema) {
  Json reasons = Json::Array{"stop", "length"};
  if (is_chunk) reasons.push_back(Json());
  Json reason = json_object({{"type", is_chunk ? Json(Json::Array{"string", "null"}) : Json("string")}});
  reason.set("enum", std::move(reasons));
  return object(is_chunk ? "What is new of an answer." : "An answer.",
                {{"index", integer()},
                 {text_name, std::move(text_schema)},
                 {"logprobs", std::move(logprobs_schema)},
                 {"finish_reason", std::move(reason)}},
                {{"structured", json_object({{"description", "With return_structured: what the answer says."}})},
                 {"stop_reason", json_object({{"type", Json::Array{"string", "integer", "null"}}})},
                 {"alignments", alignments()},
                 {"prompt_logprobs", prompt_logprobs()}});
}

Json completion_choice(bool is_chunk) { return choice(is_chunk, "text", text(), logprobs()); }
Json chat_choice(bool is_chunk) {
  return choice(is_chunk, is_chunk ? "delta" : "message", message(is_chunk), chat_logprobs());
}

Json answers(std::string_view doc, std::string_view object_name, std::string_view choice, bool is_chunk) {
  return object(doc,
                {{"id", text()},
                 {"object", constant(object_name)},
                 {"created", integer()},
                 {"model", text()},
                 {"choices", list_of(schema_ref(choice))}},
                {{"usage", is_chunk ? nullable(schema_ref("Usage")) : schema_ref("Usage")}, {"images", images()}});
}

Json completion(bool is_chunk) {
  return answers(is_chunk ? "A piece of a streamed completion; the last one before [DONE] may have usage alone."
                          : "A completion: n answers for each prompt, in the prompts' order.",
                 "text_completion", is_chunk ? "CompletionChunkChoice" : "CompletionChoice", is_chunk);
}

Json chat_completion(bool is_chunk) {
  return answers(is_chunk ? "A piece of a streamed chat completion; the last one before [DONE] may have usage alone."
                          : "A chat completion: n answers.",
                 is_chunk ? "chat.completion.chunk" : "chat.completion",
                 is_chunk ? "ChatCompletionChunkChoice" : "ChatCompletionChoice", is_chunk);
}

Json score() {
  const Json one = object("The decoder prompt's log-probability under the model.",
                          {{"index", integer()},
                           {"object", constant("score")},
                           {"score", number()},
                           {"prompt_token_ids", ids()},
                           {"prompt_logprobs", prompt_logprobs()}},
                          {{"prompt_alignments", alignments()}});
  return object("Scores, in the prompts' order.",
                {{"id", text()}, {"object", constant("list")}, {"model", text()}, {"data", list_of(one)}},
                {{"usage", schema_ref("Usage")}});
}

Json translations() {
  const Json one = object("A text, translated.", {{"text", text()}}, {{"detected_source_lang", or_null("string")}});
  return object("Translations, in the texts' order.", {{"translations", list_of(one)}},
                {{"usage", schema_ref("Usage")}});
}

Json model() {
  const Json abilities =
      object("What the model is good for.",
             {{"task", json_object({{"type", "string"}, {"enum", Json::Array{"text", "transcription"}}})},
              {"modalities", list_of(text())},
              {"has_structured_answers", type("boolean")},
              {"languages", list_of(text())},
              {"has_timestamps", type("boolean")},
              {"has_word_timestamps", type("boolean")},
              {"can_translate_speech", type("boolean")},
              {"max_encoder_len", integer()},
              {"max_decoder_len", integer()}},
             {{"role", json_object({{"type", "string"}, {"enum", Json::Array{"encode", "decode"}}})}});
  return object("A name that the model is served by.", {{"id", text()},
                                                        {"object", constant("model")},
                                                        {"created", integer()},
                                                        {"owned_by", text()},
                                                        {"max_model_len", integer()},
                                                        {"transept", abilities}});
}

Json debug_state() {
  const Json names = list_of(text());
  return object("The queue and the KV blocks as of the last step.",
                {{"running", names},
                 {"waiting", names},
                 {"swapped", names},
                 {"blocks", object("KV blocks.", {{"total", integer()},
                                                  {"free", integer()},
                                                  {"self", integer()},
                                                  {"cross", integer()},
                                                  {"pinned", integer()},
                                                  {"cached", integer()},
                                                  {"prefixes", integer()}})},
                 {"queue", object("Who waits.", {{"requests", integer()}, {"limit", integer()}})}},
                {{"ranks", list_of(object("A process that holds the model with others.", {{"rank", integer()},
                                                                                          {"host", text()},
                                                                                          {"pid", integer()},
                                                                                          {"numa_nodes", text()},
                                                                                          {"processors", text()},
                                                                                          {"num_threads", integer()},
                                                                                          {"weight_bytes", integer()},
                                                                                          {"num_kv_blocks", integer()},
                                                                                          {"kv_bytes", integer()},
                                                                                          {"load_seconds", number()},
                                                                                          {"wait_seconds", number()},
                                                                                          {"last_step", integer()}}))},
                 {"device", object("What the model runs on, if that is not the processor.",
                                   {{"name", text()}, {"driver", text()}})}});
}

Json error() {
  const Json inner =
      object("What went wrong: all four keys always.",
             {{"message", text()}, {"type", text()}, {"param", or_null("string")}, {"code", or_null("string")}});
  return object("An error.", {{"error", inner}});
}

Json segment_schema() {
  return object("A piece of the transcript.", {{"id", integer()},
                                               {"seek", integer()},
                                               {"start", number()},
                                               {"end", number()},
                                               {"text", text()},
                                               {"tokens", ids()},
                                               {"temperature", number()},
                                               {"avg_logprob", number()},
                                               {"compression_ratio", number()},
                                               {"no_speech_prob", number()}});
}

struct ErrorDoc {
  int status;
  std::string_view doc;
  bool has_retry_after = false;
};
constexpr ErrorDoc kErrors[] = {
    {400, "A field has a value that is not taken (param names it), the request is too long, or it is not HTTP."},
    {401, "No key that is known was given."},
    {403, "This is not for the caller: another host or origin, or a route for this machine alone."},
    {404, "Nothing is served under that path, or the model under that name."},
    {405, "The path knows other methods."},
    {408, "The request came too slowly."},
    {409, "A request of that id is in flight."},
    {413, "The body is larger than is taken."},
    {415, "The body has a Content-Encoding other than identity."},
    {429,
     "The queue is full, too much is in work, or too many bodies were on their way and this one was the slowest (code "
     "slow_body).",
     true},
    {500, "It is our own fault; the log says more."},
    {503, "The server loads, or stops.", true},
    {504, "The request took longer than --request-timeout."},
};

Json encoded() {
  Json place = object("Where the rows stand in the decoder prompt; cross-attention: from 0 on.",
                      {{"offset", integer()}, {"length", integer()}});
  Json item = object("One input whose rows are at the decode instance.", {{"input_id", integer()},
                                                                          {"digest", text()},
                                                                          {"num_positions", integer()},
                                                                          {"place", std::move(place)},
                                                                          {"seconds", number()}});
  return object("The encoder's output was sent.", {{"object", constant("encode")},
                                                   {"request_id", text()},
                                                   {"items", list_of(std::move(item))},
                                                   {"outputs", list_of(type("object"))}});
}

Json header(std::string_view doc, Json schema) {
  return json_object({{"description", doc}, {"schema", std::move(schema)}});
}

}  // namespace

Json reply_schemas() {
  return json_object({{"Usage", usage()},
                      {"CompletionChoice", completion_choice(false)},
                      {"CompletionChunkChoice", completion_choice(true)},
                      {"Completion", completion(false)},
                      {"CompletionChunk", completion(true)},
                      {"ChatCompletionChoice", chat_choice(false)},
                      {"ChatCompletionChunkChoice", chat_choice(true)},
                      {"ChatCompletion", chat_completion(false)},
                      {"ChatCompletionChunk", chat_completion(true)},
                      {"Score", score()},
                      {"Translations", translations()},
                      {"Tokens", object("Token ids of a text.",
                                        {{"count", integer()}, {"max_model_len", integer()}, {"tokens", ids()}},
                                        {{"token_strs", nullable(list_of(text()))}})},
                      {"Text", object("The text of token ids.", {{"prompt", text()}})},
                      {"Encoded", encoded()},
                      {"Model", model()},
                      {"Models", object("Every name that is served.",
                                        {{"object", constant("list")}, {"data", list_of(schema_ref("Model"))}})},
                      {"Health", object("Whether the server works.", {{"status", text()}})},
                      {"Version", object("Of the binary.", {{"version", text()}, {"commit", text()}})},
                      {"DebugState", debug_state()},
                      {"Error", error()}});
}

Json audio_reply_schemas() {
  const Json seconds = object("What was heard.", {{"type", constant("duration")}, {"seconds", number()}});
  return json_object(
      {{"AudioUsage", seconds},
       {"Transcription", object("A transcript's text.", {{"text", text()}}, {{"usage", schema_ref("AudioUsage")}})},
       {"TranscriptionSegment", segment_schema()},
       {"TranscriptionWord",
        object("A word and its time.", {{"word", text()}, {"start", number()}, {"end", number()}})},
       {"VerboseTranscription",
        object("A transcript with times.",
               {{"task", text()}, {"language", text()}, {"duration", number()}, {"text", text()}},
               {{"segments", list_of(schema_ref("TranscriptionSegment"))},
                {"words", list_of(schema_ref("TranscriptionWord"))},
                {"usage", schema_ref("AudioUsage")}})},
       {"TranscriptDelta",
        object("What a segment adds to a streamed transcript; those of a window come when the window is done.",
               {{"type", constant("transcript.text.delta")}, {"delta", text()}})},
       {"TranscriptSegment",
        object("With verbose_json: a segment of a streamed transcript, behind its delta. Speakers are not told apart.",
               {{"type", constant("transcript.text.segment")},
                {"id", text()},
                {"speaker", constant("")},
                {"start", number()},
                {"end", number()},
                {"text", text()},
                {"seek", integer()},
                {"tokens", list_of(integer())},
                {"temperature", number()},
                {"avg_logprob", number()},
                {"compression_ratio", number()},
                {"no_speech_prob", number()}},
               {{"words", list_of(schema_ref("TranscriptionWord"))}})},
       {"TranscriptProgress",
        object("With include_progress of stream_options: how much of the audio is done, behind each window; seconds.",
               {{"type", constant("transept.progress")}, {"seconds_done", number()}, {"seconds_all", number()}})},
       {"TranscriptDone",
        object("A streamed transcript, whole. With verbose_json what its reply says of the whole, too.",
               {{"type", constant("transcript.text.done")}, {"text", text()}},
               {{"usage", type("object")}, {"task", text()}, {"language", text()}, {"duration", number()}})}});
}

Json error_responses() {
  Json responses = Json::object();
  const Json content = json_object({{"application/json", json_object({{"schema", schema_ref("Error")}})}});
  for (const ErrorDoc& error : kErrors) {
    Json response = json_object({{"description", error.doc}, {"content", content}});
    Json headers = Json::object();
    if (error.has_retry_after) headers.set("Retry-After", header("Seconds until there should be room.", integer()));
    if (error.status == 504) headers.set("x-should-retry", header("Trying again would take as long.", text()));
    if (!headers.as_object().empty()) response.set("headers", std::move(headers));
    responses.set(str_cat("Error", error.status), std::move(response));
  }
  return responses;
}

}  // namespace transept
