#include "speculation/speculation_options.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/json.h"
#include "base/quoted.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr int32_t kFewTokens = 4, kManyTokens = 16;

Status bad(std::string_view key, std::string_view why) {
  return invalid_argument("--speculative-config: ", key, ": ", why);
}

StatusOr<int64_t> read_count(const Json& value, std::string_view key, int64_t least, int64_t most) {
  if (!value.is_int() && !value.is_big_int()) {
    return bad(key, str_cat("expected a whole number from ", least, " to ", most, ", not ", value.kind_name()));
  }
  if (value.is_big_int() || value.as_int() < least || value.as_int() > most) {
    return bad(key, str_cat("expected a whole number from ", least, " to ", most, ", not ", value.dump()));
  }
  return value.as_int();
}

StatusOr<DraftMethod> read_method(const Json& value) {
  if (!value.is_string()) return bad("method", str_cat("expected a text, not ", value.kind_name()));
  const std::string& name = value.as_string();
  if (name == "ngram") return DraftMethod::kNgram;
  if (name == "copy") return DraftMethod::kCopy;
  if (name == "given") return DraftMethod::kGiven;
  if (name == "random") return DraftMethod::kRandom;
  if (name == "model" || name == "draft_model") return DraftMethod::kModel;
  constexpr std::array kOthers = {"eagle", "eagle3", "medusa", "mlp_speculator", "suffix", "mtp", "deepseek_mtp"};
  if (std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end()) {
    return unimplemented("--speculative-config: method: ", in_quotes(name),
                         " is not supported: drafts of heads and trees are not; given, ngram, copy and model are");
  }
  return bad("method", str_cat("expected given, ngram, copy, model or random, not ", in_quotes(name)));
}

Status read_key(const std::string& key, const Json& value, SpeculationOptions& options) {
  const auto count = [&](int64_t least, int64_t most, auto& out) -> Status {
    ASSIGN_OR_RETURN(const int64_t number, read_count(value, key, least, most));
    out = static_cast<int32_t>(number);
    return ok_status();
  };
  if (key == "method") {
    ASSIGN_OR_RETURN(options.method, read_method(value));
    return ok_status();
  }
  if (key == "num_speculative_tokens") return count(1, kMostSpeculativeTokens, options.num_speculative_tokens);
  if (key == "prompt_lookup_max") return count(1, kMostPromptLookup, options.prompt_lookup_max);
  if (key == "prompt_lookup_min") return count(1, kMostPromptLookup, options.prompt_lookup_min);
  if (key == "seed") {
    ASSIGN_OR_RETURN(const int64_t number, read_count(value, key, 0, INT64_MAX));
    options.seed = static_cast<uint64_t>(number);
    return ok_status();
  }
  if (key == "truth") {
    const double number = value.is_number() ? value.as_double() : -1;
    if (!(number >= 0 && number <= 1)) return bad(key, "expected a number from 0 to 1");
    options.truth = number;
    return ok_status();
  }
  if (key == "model") {
    if (!value.is_string()) return bad(key, str_cat("expected a text, not ", value.kind_name()));
    if (value.as_string().empty()) return bad(key, "expected a folder or a name, not an empty text");
    options.model = value.as_string();
    return ok_status();
  }
  return bad(key.empty() ? "\"\"" : in_quotes(key),
             "unknown; known are method, model, num_speculative_tokens, prompt_lookup_max and prompt_lookup_min");
}

// Keys of one method beside another would do nothing.
Status check_keys(const Json& config, DraftMethod method) {
  for (const char* key : {"prompt_lookup_max", "prompt_lookup_min"}) {
    if (config.find(key) != nullptr && method != DraftMethod::kNgram) return bad(key, "only method ngram has it");
  }
  const bool is_model = method == DraftMethod::kModel, has_model = config.find("model") != nullptr;
  if (has_model && !is_model) return bad("model", "only method model has it");
  if (is_model && !has_model) return bad("model", "method model needs it: a folder or a name");
  const bool may_be_oracle = method == DraftMethod::kGiven || method == DraftMethod::kModel;
  const bool is_test = method == DraftMethod::kRandom || (may_be_oracle && config.find("truth"));
  for (const char* key : {"seed", "truth"}) {
    if (config.find(key) != nullptr && !is_test) return bad(key, "only method random has it");
  }
  return ok_status();
}

}  // namespace

int32_t SpeculationOptions::most_tokens(bool is_given) const {
  return num_speculative_tokens.value_or(is_given || method == DraftMethod::kCopy ? kManyTokens : kFewTokens);
}

StatusOr<SpeculationOptions> parse_speculative_config(std::string_view json) {
  StatusOr<Json> config = Json::parse(json);
  if (!config.ok()) return invalid_argument("--speculative-config: ", error_message(config.status()));
  if (!config->is_object()) {
    return invalid_argument("--speculative-config: expected a JSON object, not ", config->kind_name());
  }
  SpeculationOptions options;
  const bool looks_up = config->find("prompt_lookup_max") != nullptr || config->find("prompt_lookup_min") != nullptr;
  if (looks_up) options.method = DraftMethod::kNgram;
  if (config->find("model") != nullptr) options.method = DraftMethod::kModel;
  for (const auto& [key, value] : config->as_object()) RETURN_IF_ERROR(read_key(key, value, options));
  RETURN_IF_ERROR(check_keys(*config, options.method));
  // One of the two alone moves the other.
  if (config->find("prompt_lookup_min") == nullptr) {
    options.prompt_lookup_min = std::min(options.prompt_lookup_min, options.prompt_lookup_max);
  } else if (config->find("prompt_lookup_max") == nullptr) {
    options.prompt_lookup_max = std::max(options.prompt_lookup_min, options.prompt_lookup_max);
  }
  if (options.prompt_lookup_min > options.prompt_lookup_max) {
    return bad("prompt_lookup_min",
               str_cat(options.prompt_lookup_min, " is more than prompt_lookup_max (", options.prompt_lookup_max, ")"));
  }
  if (options.method == DraftMethod::kRandom) options.is_adaptive = false;  // tests repeat
  return options;
}

StatusOr<SpeculationOptions> settle_speculation(std::string_view config, std::optional<int64_t> num_tokens) {
  SpeculationOptions options;
  if (!config.empty()) {
    ASSIGN_OR_RETURN(options, parse_speculative_config(config));
  }
  if (!num_tokens.has_value()) return options;
  if (*num_tokens < 0 || *num_tokens > kMostSpeculativeTokens) {
    return invalid_argument("--num-speculative-tokens ", *num_tokens, ": expected 0 to ", kMostSpeculativeTokens);
  }
  if (options.num_speculative_tokens.value_or(*num_tokens) != *num_tokens) {
    return invalid_argument("--num-speculative-tokens ", *num_tokens, ": --speculative-config says ",
                            *options.num_speculative_tokens);
  }
  options.num_speculative_tokens = static_cast<int32_t>(*num_tokens);
  return options;
}

}  // namespace transept
