#include "text/pipeline/tokenizer_kind.h"

namespace transept {
namespace {

struct Row {
  std::string_view tokenizer_class, model_type;  // a model type stands once; "": the class must be named
  TokenizerKind kind;
};

constexpr Row kRows[] = {{"BartTokenizer", "bart", TokenizerKind::kBart},
                         {"", "florence2", TokenizerKind::kBart},
                         {"RobertaTokenizer", "roberta", TokenizerKind::kBart},
                         {"LEDTokenizer", "led", TokenizerKind::kBart},
                         {"LongformerTokenizer", "longformer", TokenizerKind::kBart},
                         {"MvpTokenizer", "mvp", TokenizerKind::kBart},
                         {"BlenderbotTokenizer", "blenderbot", TokenizerKind::kBlenderbot},
                         {"BlenderbotSmallTokenizer", "blenderbot-small", TokenizerKind::kBlenderbotSmall},
                         {"ByT5Tokenizer", "", TokenizerKind::kByT5},
                         {"GPT2Tokenizer", "gpt2", TokenizerKind::kGpt2},
                         {"LlamaTokenizer", "cogagent", TokenizerKind::kLlama},
                         {"M2M100Tokenizer", "m2m_100", TokenizerKind::kM2M100},
                         {"MarianTokenizer", "marian", TokenizerKind::kMarian},
                         {"MBartTokenizer", "mbart", TokenizerKind::kMBart},
                         {"MBart50Tokenizer", "", TokenizerKind::kMBart50},
                         {"NllbTokenizer", "", TokenizerKind::kNllb},
                         {"PegasusTokenizer", "pegasus", TokenizerKind::kPegasus},
                         {"PLBartTokenizer", "plbart", TokenizerKind::kPLBart},
                         {"T5Tokenizer", "t5", TokenizerKind::kT5},
                         {"MT5Tokenizer", "mt5", TokenizerKind::kT5},
                         {"UMT5Tokenizer", "umt5", TokenizerKind::kT5},
                         {"WhisperTokenizer", "whisper", TokenizerKind::kWhisper},
                         {"XLMRobertaTokenizer", "xlm-roberta", TokenizerKind::kXlmRoberta}};

// "PreTrainedTokenizer(Fast)" and "TokenizersBackend" say no more than that the tokenizers library is used.
bool says_nothing(std::string_view tokenizer_class) {
  return tokenizer_class.empty() || tokenizer_class == "PreTrainedTokenizer" || tokenizer_class == "TokenizersBackend";
}

std::string_view without_fast(std::string_view tokenizer_class) {
  constexpr std::string_view kFast = "Fast";
  if (tokenizer_class.ends_with(kFast)) tokenizer_class.remove_suffix(kFast.size());
  return tokenizer_class;
}

}  // namespace

std::string_view named_tokenizer_class(const TokenizerConfig& config, const TokenizerHints& hints) {
  if (!says_nothing(config.tokenizer_class)) return config.tokenizer_class;
  const std::string_view hinted = without_fast(hints.tokenizer_class);
  return says_nothing(hinted) ? std::string_view() : hinted;
}

TokenizerKind find_tokenizer_kind(const TokenizerConfig& config, const TokenizerHints& hints) {
  const std::string_view named = named_tokenizer_class(config, hints);
  for (const Row& row : kRows) {
    if (named.empty() ? !row.model_type.empty() && row.model_type == hints.model_type : row.tokenizer_class == named) {
      return row.kind;
    }
  }
  return TokenizerKind::kUnknown;
}

std::string_view tokenizer_class_name(TokenizerKind kind) {
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.tokenizer_class;
  }
  return "PreTrainedTokenizer";
}

}  // namespace transept
