#include "foreign/whisper_texts.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "core/speech_languages.h"
#include "foreign/bpe_merges.h"
#include "foreign/whisper_alignment.h"
#include "text/families/load_tokenizer.h"
#include "text/subword/byte_level.h"

namespace transept {
namespace {

constexpr int32_t kNumTimestamps = 1501;  // 0.00 s to 30.00 s
constexpr int32_t kSpecialsBesideLanguages = 8;

// Their names and places in openai-whisper's tokenizer.
std::vector<std::pair<int32_t, std::string>> special_tokens(const WhisperIds& ids) {
  std::vector<std::string> names = {"<|endoftext|>", "<|startoftranscript|>"};
  const std::vector<std::string_view> codes = speech_language_codes();
  for (int32_t i = 0; i < ids.num_languages; ++i) names.push_back(str_cat("<|", codes[static_cast<size_t>(i)], "|>"));
  names.insert(names.end(), {"<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>",
                             "<|notimestamps|>"});
  std::vector<std::pair<int32_t, std::string>> tokens;
  tokens.reserve(names.size());
  for (std::string& name : names) {
    tokens.emplace_back(ids.end_of_text + static_cast<int32_t>(tokens.size()), std::move(name));
  }
  return tokens;
}

std::string timestamp(int32_t index) {
  const int32_t hundredths = 2 * index;
  return str_cat("<|", hundredths / 100, ".", hundredths % 100 < 10 ? "0" : "", hundredths % 100, "|>");
}

Json added_token(int32_t id, std::string_view content, bool is_special) {
  Json token = Json::object();
  token.set("id", id);
  token.set("content", content);
  token.set("single_word", false);
  token.set("lstrip", false);
  token.set("rstrip", false);
  token.set("normalized", !is_special);
  token.set("special", is_special);
  return token;
}

std::string characters_of(std::string_view bytes) {
  std::string text;
  append_byte_characters(bytes, text);
  return text;
}

Json bpe_model(std::span<const std::string_view> tokens) {
  Json::Object vocabulary;
  std::set<std::string, std::less<>> known;
  for (size_t id = 0; id < tokens.size(); ++id) {
    std::string text = characters_of(tokens[id]);
    if (known.insert(text).second) vocabulary.emplace_back(std::move(text), Json(static_cast<int64_t>(id)));
  }
  Json::Array merges;
  for (const auto& [left, right] : bpe_merges(tokens)) {
    merges.emplace_back(str_cat(characters_of(tokens[static_cast<size_t>(left)]), " ",
                                characters_of(tokens[static_cast<size_t>(right)])));
  }
  Json model = Json::object();
  model.set("type", "BPE");
  model.set("dropout", nullptr);
  model.set("unk_token", nullptr);
  model.set("continuing_subword_prefix", "");
  model.set("end_of_word_suffix", "");
  model.set("fuse_unk", false);
  model.set("vocab", Json(std::move(vocabulary)));
  model.set("merges", Json(std::move(merges)));
  return model;
}

Json byte_level(bool adds_space) {
  Json step = Json::object();
  step.set("type", "ByteLevel");
  step.set("add_prefix_space", adds_space);
  step.set("trim_offsets", true);
  step.set("use_regex", true);
  return step;
}

Json tokenizer_json(const WhisperIds& ids, std::span<const std::string_view> tokens) {
  Json added = Json::array();
  for (const auto& [id, name] : special_tokens(ids)) added.push_back(added_token(id, name, true));
  for (int32_t i = 0; i < kNumTimestamps; ++i) {
    added.push_back(added_token(ids.no_timestamps() + 1 + i, timestamp(i), false));
  }
  Json file = Json::object();
  file.set("version", "1.0");
  file.set("added_tokens", std::move(added));
  file.set("normalizer", nullptr);
  file.set("pre_tokenizer", byte_level(false));
  file.set("post_processor", nullptr);
  file.set("decoder", byte_level(true));
  file.set("model", bpe_model(tokens));
  return file;
}

// What openai-whisper never generates, "-1" of its --suppress_tokens: tokens of signs that stand for no speech, alone
// or behind a space, and the special tokens that a decoder's prompt has.
StatusOr<Json> suppressed_tokens(const WhisperIds& ids, const ModelFolder& files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(files, {.model_type = "whisper"}));
  std::set<int32_t> found;
  const auto encode = [&](const std::string& text) { return tokenizer->encode(text, {.add_special_tokens = false}); };
  for (const char* word : {" -", " '"}) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, encode(word));
    if (!tokens.empty()) found.insert(tokens.front());
  }
  constexpr std::string_view kSigns[] = {"\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
                                         "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
                                         "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
                                         "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"};
  constexpr std::string_view kNotes[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};
  const auto add = [&](std::string_view sign, bool is_note) -> Status {
    for (const std::string& text : {std::string(sign), str_cat(" ", sign)}) {
      ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, encode(text));
      if (tokens.size() == 1 || (is_note && !tokens.empty())) found.insert(tokens.front());
    }
    return ok_status();
  };
  for (const std::string_view sign : kSigns) RETURN_IF_ERROR(add(sign, false));
  for (const std::string_view note : kNotes) RETURN_IF_ERROR(add(note, true));
  found.insert(ids.start());
  for (int32_t id = ids.translate(); id < ids.no_timestamps(); ++id) found.insert(id);
  Json list = Json::array();
  for (const int32_t id : found) list.push_back(id);
  return list;
}

Json config_json(const WhisperSizes& sizes, const WhisperIds& ids) {
  Json config = Json::object(), names = Json::array();
  names.push_back("WhisperForConditionalGeneration");
  config.set("architectures", std::move(names));
  config.set("model_type", "whisper");
  config.set("is_encoder_decoder", true);
  config.set("vocab_size", sizes.vocab);
  config.set("num_mel_bins", sizes.mels);
  config.set("d_model", sizes.text_width);
  config.set("encoder_layers", sizes.audio_layers);
  config.set("encoder_attention_heads", sizes.audio_heads);
  config.set("encoder_ffn_dim", int64_t{4} * sizes.audio_width);
  config.set("decoder_layers", sizes.text_layers);
  config.set("decoder_attention_heads", sizes.text_heads);
  config.set("decoder_ffn_dim", int64_t{4} * sizes.text_width);
  config.set("max_source_positions", sizes.audio_positions);
  config.set("max_target_positions", sizes.text_positions);
  config.set("activation_function", "gelu");
  config.set("scale_embedding", false);
  config.set("tie_word_embeddings", true);
  config.set("bos_token_id", ids.end_of_text);
  config.set("eos_token_id", ids.end_of_text);
  config.set("pad_token_id", ids.end_of_text);
  config.set("decoder_start_token_id", ids.start());
  return config;
}

Json generation_json(const WhisperSizes& sizes, const WhisperIds& ids, Json suppressed) {
  Json config = Json::object(), heads = Json::array(), first = Json::array();
  for (const auto& [layer, head] : whisper_alignment_heads(sizes.vocab, sizes.text_layers, sizes.text_heads)) {
    Json pair = Json::array();
    pair.push_back(layer);
    pair.push_back(head);
    heads.push_back(std::move(pair));
  }
  config.set("alignment_heads", std::move(heads));
  config.set("is_multilingual", ids.is_multilingual);
  config.set("bos_token_id", ids.end_of_text);
  config.set("eos_token_id", ids.end_of_text);
  config.set("pad_token_id", ids.end_of_text);
  config.set("decoder_start_token_id", ids.start());
  config.set("max_length", sizes.text_positions);
  config.set("max_initial_timestamp_index", 50);
  config.set("no_timestamps_token_id", ids.no_timestamps());
  config.set("prev_sot_token_id", ids.start_of_previous());
  first.push_back(220);  // a space
  first.push_back(ids.end_of_text);
  config.set("begin_suppress_tokens", std::move(first));
  config.set("suppress_tokens", std::move(suppressed));
  if (!ids.is_multilingual) return config;
  Json languages = Json::object(), tasks = Json::object();
  const auto specials = special_tokens(ids);
  for (int32_t i = 0; i < ids.num_languages; ++i) {
    const auto& [id, name] = specials[static_cast<size_t>(i) + 2];
    languages.set(name, id);
  }
  tasks.set("transcribe", ids.transcribe());
  tasks.set("translate", ids.translate());
  config.set("lang_to_id", std::move(languages));
  config.set("task_to_id", std::move(tasks));
  return config;
}

}  // namespace

Json whisper_preprocessor(const WhisperSizes& sizes) {
  constexpr int32_t kHop = 160, kRate = 16000;
  const int64_t samples = int64_t{2} * kHop * sizes.audio_positions;
  Json config = Json::object();
  config.set("feature_extractor_type", "WhisperFeatureExtractor");
  config.set("feature_size", sizes.mels);
  config.set("sampling_rate", kRate);
  config.set("hop_length", kHop);
  config.set("n_fft", 400);
  config.set("padding_value", 0.0);
  config.set("chunk_length", samples / kRate);
  config.set("n_samples", samples);
  config.set("nb_max_frames", samples / kHop);
  return config;
}

StatusOr<WhisperIds> whisper_ids(int32_t vocab) {
  constexpr int32_t kEnglish = 51864, kFirst = 51865,
                    kLast = 51866;  // whose tokens are GPT-2's; of 99 and 100 languages
  if (vocab != kEnglish && vocab != kFirst && vocab != kLast) {
    return with_param(
        invalid_argument("n_vocab: ", vocab, " is no Whisper's: ", kEnglish, ", ", kFirst, " and ", kLast, " are"),
        "n_vocab");
  }
  WhisperIds ids;
  ids.is_multilingual = vocab != kEnglish;
  ids.end_of_text = ids.is_multilingual ? 50257 : 50256;
  ids.num_languages = vocab - ids.end_of_text - kSpecialsBesideLanguages - kNumTimestamps;
  return ids;
}

StatusOr<ModelFolder::Texts> whisper_texts(const WhisperSizes& sizes, std::span<const std::string_view> tokens) {
  ASSIGN_OR_RETURN(const WhisperIds ids, whisper_ids(sizes.vocab));
  if (sizes.audio_width != sizes.text_width) {
    return invalid_argument("n_audio_state: ", sizes.audio_width, " differs from n_text_state, ", sizes.text_width);
  }
  constexpr int32_t kPositionsOfASecond = 50;
  if (sizes.audio_positions < kPositionsOfASecond || sizes.audio_positions % kPositionsOfASecond != 0) {
    return invalid_argument("n_audio_ctx: ", sizes.audio_positions, " positions are no whole seconds of ",
                            kPositionsOfASecond);
  }
  if (std::ssize(tokens) < ids.end_of_text) {
    return invalid_argument("the file has ", tokens.size(), " tokens of the ", ids.end_of_text,
                            " of the base vocabulary");
  }
  ModelFolder::Texts texts;
  texts["tokenizer.json"] = tokenizer_json(ids, tokens.first(static_cast<size_t>(ids.end_of_text))).dump();
  texts["tokenizer_config.json"] = R"({"tokenizer_class": "WhisperTokenizer"})";
  ASSIGN_OR_RETURN(Json suppressed, suppressed_tokens(ids, ModelFolder("", "", texts)));
  texts["config.json"] = config_json(sizes, ids).dump();
  texts["generation_config.json"] = generation_json(sizes, ids, std::move(suppressed)).dump();
  texts["preprocessor_config.json"] = whisper_preprocessor(sizes).dump();
  return texts;
}

}  // namespace transept
