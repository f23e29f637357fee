#include "foreign/ct2_whisper.h"

#include <utility>

#include "base/quoted.h"
#include "foreign/ct2_sizes.h"
#include "foreign/ct2_tensors.h"
#include "foreign/ct2_vocabulary.h"
#include "foreign/whisper_texts.h"

namespace transept {
namespace {

class Opener final {
 public:
  Opener(const Ct2File& model, const ModelFolder& folder, const Json& config)
      : model_(model), folder_(folder), given_(config) {}

  StatusOr<ForeignModel> open(std::unique_ptr<MmapFile> file) {
    RETURN_IF_ERROR(read_sizes());
    ForeignModel opened;
    ASSIGN_OR_RETURN(opened.tensors, tensors(std::move(file)));
    ASSIGN_OR_RETURN(const Ct2Vocabulary vocabulary, Ct2Vocabulary::read(folder_, {"vocabulary"}));
    if (std::ssize(vocabulary.tokens()) > sizes_.vocab) {
      return invalid_argument(vocabulary.file(), ": ", vocabulary.tokens().size(), " tokens, but the model has ",
                              sizes_.vocab);
    }
    ModelFolder::Texts texts;
    RETURN_IF_ERROR(set_config(vocabulary, texts));
    RETURN_IF_ERROR(set_generation(vocabulary, texts));
    if (!folder_.has("preprocessor_config.json")) {
      texts["preprocessor_config.json"] = whisper_preprocessor(sizes_).dump();
    }
    if (!folder_.has("tokenizer_config.json")) {
      texts["tokenizer_config.json"] = R"({"tokenizer_class": "WhisperTokenizer"})";
    }
    opened.disk = folder_.path();
    opened.folder = ModelFolder(model_.file(), opened.disk, std::move(texts));
    return opened;
  }

 private:
  Status read_sizes() {
    ASSIGN_OR_RETURN(encoder_, ct2_sizes(model_, "encoder"));
    ASSIGN_OR_RETURN(decoder_, ct2_sizes(model_, "decoder"));
    const Ct2File::Variable* table = model_.find("decoder/embeddings/weight");
    const Ct2File::Variable* kernel = model_.find("encoder/conv1/weight");
    if (table == nullptr || table->shape.size() != 2) return model_.error("decoder/embeddings/weight", "is no matrix");
    if (kernel == nullptr || kernel->shape.size() != 3) return model_.error("encoder/conv1/weight", "is no kernel");
    if (encoder_.width != decoder_.width) return model_.error("decoder/embeddings/weight", "the sides differ in width");
    constexpr int64_t kPositionsOfASecond = 50, kMaxSide = 1 << 20;
    if (encoder_.positions < kPositionsOfASecond || encoder_.positions % kPositionsOfASecond != 0) {
      return model_.error("encoder/position_encodings/encodings",
                          str_cat(encoder_.positions, " positions are no whole seconds of ", kPositionsOfASecond));
    }
    for (const int64_t side : {table->shape[0], kernel->shape[1], encoder_.positions, decoder_.positions}) {
      if (side < 1 || side > kMaxSide) return model_.error(table->name, str_cat("a size of ", side));
    }
    sizes_.vocab = static_cast<int32_t>(table->shape[0]);
    sizes_.mels = static_cast<int32_t>(kernel->shape[1]);
    sizes_.audio_positions = static_cast<int32_t>(encoder_.positions);
    return ok_status();
  }

  StatusOr<FoundTensors> tensors(std::unique_ptr<MmapFile> file) {
    Ct2Tensors tensors(model_, "Whisper", true);
    RETURN_IF_ERROR(tensors.linear("encoder/conv1", {"model.encoder.conv1"}));
    RETURN_IF_ERROR(tensors.linear("encoder/conv2", {"model.encoder.conv2"}));
    RETURN_IF_ERROR(tensors.table("decoder/embeddings", "model.decoder.embed_tokens.weight", false));
    if (!is_tied()) RETURN_IF_ERROR(tensors.table("decoder/projection", "proj_out.weight", false));
    for (const bool is_decoder : {false, true}) {
      const std::string side = is_decoder ? "decoder" : "encoder", ours = "model." + side;
      RETURN_IF_ERROR(tensors.bart_layers(side, is_decoder ? decoder_ : encoder_, false));
      RETURN_IF_ERROR(tensors.norm(side + "/layer_norm", ours + ".layer_norm"));
      RETURN_IF_ERROR(tensors.tensor(side + "/position_encodings/encodings", ours + ".embed_positions.weight"));
    }
    ASSIGN_OR_RETURN(const bool is_scaled, ct2_scales_embeddings(model_, "decoder", decoder_.width, false));
    if (is_scaled) return model_.error("decoder/scale_embeddings", "is not supported: a Whisper has none");
    return std::move(tensors).finish(std::move(file));
  }

  bool is_tied() const { return ct2_same(model_, "decoder/projection/weight", "decoder/embeddings/weight"); }

  StatusOr<int64_t> id_of(const Ct2Vocabulary& vocabulary, std::string_view token) const {
    const std::optional<int64_t> id = vocabulary.find(token);
    if (id.has_value()) return *id;
    return invalid_argument(vocabulary.file(), ": has no token ", in_quotes(token));
  }

  Status set_config(const Ct2Vocabulary& vocabulary, ModelFolder::Texts& texts) {
    ASSIGN_OR_RETURN(const int64_t end, id_of(vocabulary, "<|endoftext|>"));
    ASSIGN_OR_RETURN(const int64_t start, id_of(vocabulary, "<|startoftranscript|>"));
    Json config = Json::object(), names = Json::array();
    names.push_back("WhisperForConditionalGeneration");
    config.set("architectures", std::move(names));
    config.set("model_type", "whisper");
    config.set("is_encoder_decoder", true);
    config.set("vocab_size", sizes_.vocab);
    config.set("num_mel_bins", sizes_.mels);
    config.set("d_model", encoder_.width);
    config.set("encoder_layers", encoder_.layers);
    config.set("encoder_attention_heads", encoder_.heads);
    config.set("encoder_ffn_dim", encoder_.ffn_width);
    config.set("decoder_layers", decoder_.layers);
    config.set("decoder_attention_heads", decoder_.heads);
    config.set("decoder_ffn_dim", decoder_.ffn_width);
    config.set("max_source_positions", encoder_.positions);
    config.set("max_target_positions", decoder_.positions);
    config.set("activation_function", "gelu");  // the encoder has no scalar for it
    config.set("scale_embedding", false);
    config.set("tie_word_embeddings", is_tied());
    ids_ = Json::object();
    ids_.set("bos_token_id", end);
    ids_.set("eos_token_id", end);
    ids_.set("pad_token_id", end);
    ids_.set("decoder_start_token_id", start);
    for (const auto& [key, id] : ids_.as_object()) config.set(key, id);
    texts["config.json"] = config.dump();
    return ok_status();
  }

  // What CTranslate2's config.json says, under the names of transformers. Task tokens are found by their spellings.
  Status set_generation(const Ct2Vocabulary& vocabulary, ModelFolder::Texts& texts) {
    const std::pair<const char*, const char*> lists[] = {{"suppress_tokens", "suppress_ids"},
                                                         {"begin_suppress_tokens", "suppress_ids_begin"},
                                                         {"alignment_heads", "alignment_heads"}};
    Json generation = ids_;
    for (const auto& [ours, theirs] : lists) {
      const Json* list = given_.find(theirs);
      if (list != nullptr && !list->is_null()) generation.set(ours, *list);
    }
    generation.set("max_length", decoder_.positions);
    generation.set("max_initial_timestamp_index", 50);
    constexpr int32_t kEnglish = 51864;  // whose tokenizer knows languages, too
    Json languages = Json::object();
    const Json* ids = given_.find("lang_ids");
    if (ids != nullptr && ids->is_array() && sizes_.vocab != kEnglish) {
      for (const Json& id : ids->as_array()) {
        if (!id.is_int() || id.as_int() < 0 || id.as_int() >= std::ssize(vocabulary.tokens())) {
          return with_param(
              invalid_argument(folder_.name_of("config.json"), ": lang_ids: ", id.dump(), " is the id of no token"),
              "lang_ids");
        }
        languages.set(vocabulary.tokens()[static_cast<size_t>(id.as_int())], id.as_int());
      }
    }
    if (!languages.as_object().empty()) {
      generation.set("is_multilingual", true);
      generation.set("lang_to_id", std::move(languages));
      Json tasks = Json::object();
      for (const char* task : {"transcribe", "translate"}) {
        if (const auto id = vocabulary.find(str_cat("<|", task, "|>"))) tasks.set(task, *id);
      }
      generation.set("task_to_id", std::move(tasks));
    }
    if (const auto id = vocabulary.find("<|notimestamps|>")) generation.set("no_timestamps_token_id", *id);
    if (const auto id = vocabulary.find("<|startofprev|>")) generation.set("prev_sot_token_id", *id);
    if (!folder_.has("generation_config.json")) texts["generation_config.json"] = generation.dump();
    return ok_status();
  }

  const Ct2File& model_;
  const ModelFolder& folder_;
  const Json& given_;
  Ct2Sizes encoder_, decoder_;
  WhisperSizes sizes_;
  Json ids_;
};

}  // namespace

StatusOr<ForeignModel> open_ct2_whisper(const Ct2File& model, const ModelFolder& folder, const Json& config,
                                        std::unique_ptr<MmapFile> file) {
  return Opener(model, folder, config).open(std::move(file));
}

}  // namespace transept
