#include "hub/select_files.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/quoted.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"

namespace transept {
namespace {

constexpr size_t kMaxShards = 10'000;
constexpr std::string_view kConfig = "config.json";

// Besides config.json. The last three are looked for by name alone, to say what a model is.
constexpr std::string_view kSmallFiles[] = {
    "generation_config.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "vocab.txt",
    "tekken.json",
    "adapter_config.json",
};

constexpr std::string_view kVocabularies[] = {"tokenizer.json",          "vocab.json",      "spiece.model",
                                              "sentencepiece.bpe.model", "tokenizer.model", "source.spm"};

// Each with the index of its shards, the preferred first.
struct WeightForm {
  std::string_view single, index;
};
constexpr WeightForm kWeightForms[] = {{"model.safetensors", "model.safetensors.index.json"},
                                       {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

// CTranslate2's model, and its lists of tokens.
constexpr std::string_view kCt2Model = "model.bin";
constexpr std::string_view kCt2Vocabularies[] = {"vocabulary", "shared_vocabulary", "source_vocabulary",
                                                 "target_vocabulary"};

bool is_shortlist(std::string_view name) { return name.starts_with("lex") && name.ends_with(".s2t.bin"); }

bool contains(std::span<const std::string> paths, std::string_view name) {
  return std::find(paths.begin(), paths.end(), name) != paths.end();
}

// Files that tell whose model a repository is, by their names, and what to do with it.
struct OtherForm {
  std::string_view begin, end;  // of the name, without its folder
  std::string_view what;
};
constexpr std::string_view kGiveTheFile = ", which are read as files: fetch one, and give its path as MODEL";
constexpr OtherForm kOtherForms[] = {
    {"adapter_config.json", "", "an adapter (LoRA), not a model: merge it into its base model, or take that"},
    {"ggml-", ".bin", "models of whisper.cpp"},
    {"", ".gguf", "models of llama.cpp"},
    {"", ".npz", "models of Marian"},
    {"", ".onnx", "graphs in ONNX, which are not read: take the repository that they were made from"},
    {"", ".pt", "files of PyTorch or openai-whisper, which are not read: take the model in transformers' form"},
    {"", ".h5", "weights of TensorFlow, which are not read"},
    {"", ".msgpack", "weights of Flax, which are not read"},
    {"", ".ot", "weights of rust-bert, which are not read"},
};

const OtherForm* other_form(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const auto* const found = std::find_if(std::begin(kOtherForms), std::end(kOtherForms), [&](const OtherForm& form) {
    return name.starts_with(form.begin) && name.ends_with(form.end);
  });
  return found == std::end(kOtherForms) ? nullptr : found;
}

// What a repository is instead, for messages: at most six files that a user may recognise, those of another form of
// models first and from any folder, and what the first form in the table is.
std::string what_it_has(std::span<const std::string> paths) {
  std::vector<std::string> models, others;
  const OtherForm* form = nullptr;
  for (const std::string& path : paths) {
    if (const OtherForm* its = other_form(path); its != nullptr) {
      models.push_back(path);
      if (form == nullptr || its < form) form = its;
    } else if (path.find('/') == std::string::npos && !path.starts_with('.') && !path.ends_with(".md")) {
      others.push_back(path);
    }
  }
  models.insert(models.end(), others.begin(), others.end());
  if (models.empty()) return "nothing else";
  constexpr size_t kMaxShown = 6;
  if (models.size() > kMaxShown) {
    models.resize(kMaxShown);
    models.emplace_back("...");
  }
  const bool is_read = form != nullptr && form->what.starts_with("models of ");
  return str_cat(join(models, ", "), form == nullptr ? "" : ": ", form == nullptr ? "" : form->what,
                 is_read ? kGiveTheFile : "");
}

}  // namespace

StatusOr<SelectedFiles> select_files(std::span<const std::string> paths, ModelParts parts) {
  if (!contains(paths, kConfig)) {
    for (const WeightForm& form : kWeightForms) {
      for (const std::string_view name : {form.single, form.index}) {
        // What lies beside whole weights does not say whose they are.
        if (contains(paths, name)) {
          return not_found("the repository has ", name, " and no config.json, which says what model it is");
        }
      }
    }
    return not_found("the repository has no config.json, so it holds no model as transformers publishes them; it has ",
                     what_it_has(paths));
  }
  SelectedFiles selected;
  selected.small.emplace_back(kConfig);
  for (const std::string_view name : kSmallFiles) {
    if (contains(paths, name)) selected.small.emplace_back(name);
  }
  if (parts == ModelParts::kTokenizer) return selected;
  for (const std::string& path : paths) {
    if (is_shortlist(path) && is_plain_file_name(path)) selected.small.push_back(path);
  }
  for (const WeightForm& form : kWeightForms) {
    if (contains(paths, form.single)) {
      selected.weights.emplace_back(form.single);
      return selected;
    }
    if (contains(paths, form.index)) {
      selected.index = form.index;
      selected.small.emplace_back(form.index);
      return selected;
    }
  }
  if (contains(paths, kCt2Model)) {
    for (const std::string_view name : kCt2Vocabularies) {
      for (const std::string_view ending : {".json", ".txt"}) {
        const std::string file = str_cat(name, ending);
        if (contains(paths, file)) selected.small.push_back(file);
      }
    }
    selected.weights.emplace_back(kCt2Model);
    return selected;
  }
  return not_found(
      "the repository has no weights that are read (model.safetensors, pytorch_model.bin, or CTranslate2's ", kCt2Model,
      "); it has ", what_it_has(paths));
}

StatusOr<std::vector<std::string>> parse_shards(std::string_view index_json) {
  ASSIGN_OR_RETURN(const Json index, Json::parse(index_json, {.max_bytes = kMaxAnswerBytes}));
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) return invalid_argument("weight_map: expected an object");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->as_object()) {
    if (!shard.is_string() || !is_plain_file_name(shard.as_string())) {
      return invalid_argument("weight_map: the shard of ", in_quotes(tensor), " is ",
                              shard.is_string() ? in_quotes(shard.as_string()) : shard.kind_name(),
                              ": expected a file's name of letters, digits, '.', '_' and '-'");
    }
    shards.insert(shard.as_string());
    if (shards.size() > kMaxShards) return invalid_argument("more than the ", kMaxShards, " shards allowed");
  }
  if (shards.empty()) return invalid_argument("weight_map: it names no shard");
  return std::vector<std::string>(shards.begin(), shards.end());
}

std::string base_of_adapter(std::string_view adapter_config_json) {
  const StatusOr<Json> config = Json::parse(adapter_config_json, {.max_bytes = kMaxAnswerBytes});
  const Json* base = config.ok() && config->is_object() ? config->find("base_model_name_or_path") : nullptr;
  if (base == nullptr || !base->is_string() || !has_repo_form(base->as_string())) return "";
  return parse_repo_name(base->as_string()).ok() ? base->as_string() : "";
}

std::vector<std::string> expected_files(std::string_view model_type) {
  std::vector<std::string> files = {"generation_config.json", "tokenizer_config.json"};
  if (model_type == "whisper" || model_type == "moonshine") files.emplace_back("preprocessor_config.json");
  return files;
}

bool is_ctranslate2(const SelectedFiles& selected) {
  return selected.weights.size() == 1 && selected.weights.front() == kCt2Model;
}

bool has_vocabulary(std::span<const std::string> files) {
  return std::any_of(std::begin(kVocabularies), std::end(kVocabularies),
                     [&](std::string_view name) { return contains(files, name); });
}

}  // namespace transept
