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

}  // namespace transept
