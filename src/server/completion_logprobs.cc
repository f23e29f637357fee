#include "server/completion_logprobs.h"

#include <algorithm>

#include "request/result_json.h"

namespace transept {
namespace {

constexpr float kLeast = -9999;

Json logprob_json(float value) { return short_number(std::max(value, kLeast)); }

const TokenLogprob* find_token(const PositionLogprobs& position, int32_t token_id) {
  const auto at = std::ranges::find_if(position, [&](const TokenLogprob& one) { return one.token_id == token_id; });
  return at == position.end() ? nullptr : &*at;
}

}  // namespace

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::function<std::string(int32_t)> CompletionLogprobs::token_text() const {
  return [tokenizer = tokenizer_](int32_t id) {
    return tokenizer == nullptr ? std::string() : tokenizer->decode({&id, 1}, false);
  };
}

Json CompletionLogprobs::to_json(const CompletionOutput& output, int64_t* text_offset) const {
  const auto text_of = token_text();
  Json::Array tokens, token_logprobs, top_logprobs, text_offsets;
  const size_t count = std::min(output.token_ids.size(), output.logprobs->size());
  for (size_t i = 0; i < count; ++i) {
    const PositionLogprobs& position = (*output.logprobs)[i];
    const TokenLogprob* chosen = find_token(position, output.token_ids[i]);
    std::string text = text_of(output.token_ids[i]);
    text_offsets.emplace_back(*text_offset);
    *text_offset += static_cast<int64_t>(count_characters(text));
    tokens.emplace_back(std::move(text));
    token_logprobs.push_back(chosen == nullptr ? Json() : logprob_json(chosen->logprob));
    Json top = Json::object();
    for (const TokenLogprob& one : position) {
      const std::string name = text_of(one.token_id);
      if (top.find(name) == nullptr) top.set(name, logprob_json(one.logprob));
    }
    top_logprobs.push_back(std::move(top));
  }
  Json::Object object;
  object.emplace_back("tokens", std::move(tokens));
  object.emplace_back("token_logprobs", std::move(token_logprobs));
  object.emplace_back("top_logprobs", std::move(top_logprobs));
  object.emplace_back("text_offset", std::move(text_offsets));
  return Json(std::move(object));
}

// The text that completions give a token, and its bytes: those of an incomplete character are not its text's.
Json CompletionLogprobs::chat_token(int32_t token_id, const TokenLogprob* logprob) const {
  Json bytes;
  if (tokenizer_ != nullptr) {
    std::string written;
    tokenizer_->append_bytes({}, token_id, written);
    bytes = Json::array();
    for (const char c : written) bytes.push_back(static_cast<int64_t>(static_cast<unsigned char>(c)));
  }
  Json::Object token;
  token.emplace_back("token", token_text()(token_id));
  token.emplace_back("logprob", logprob_json(logprob == nullptr ? kLeast : logprob->logprob));
  token.emplace_back("bytes", std::move(bytes));
  return Json(std::move(token));
}

Json CompletionLogprobs::to_chat_json(const CompletionOutput& output, int32_t num_top) const {
  Json content = Json::array();
  const size_t count = std::min(output.token_ids.size(), output.logprobs->size());
  for (size_t i = 0; i < count; ++i) {
    const PositionLogprobs& position = (*output.logprobs)[i];
    Json top = Json::array();
    for (const TokenLogprob& one : position) {
      if (one.rank <= num_top) top.push_back(chat_token(one.token_id, &one));  // the last may be the chosen one alone
    }
    Json token = chat_token(output.token_ids[i], find_token(position, output.token_ids[i]));
    token.set("top_logprobs", std::move(top));
    content.push_back(std::move(token));
  }
  Json::Object object;
  object.emplace_back("content", std::move(content));
  object.emplace_back("refusal", Json());
  return Json(std::move(object));
}

}  // namespace transept
