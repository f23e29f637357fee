#include "startup/recognise_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "core/capabilities.h"
#include "core/config_file.h"
#include "hub/repo_name.h"
#include "startup/model_files.h"
#include "startup/recognise_file.h"
#include "weights/checkpoint_files.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 1000;

// Paths of the regular files of a folder, sorted.
std::vector<std::string> files_of(const fs::path& dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end && paths.size() < kMaxFiles;
       at.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(at->path(), ignored)) paths.push_back(at->path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

// "org/name", as hubs have it, and no path of somebody's disk.
bool is_hub_name(std::string_view name) {
  return std::ranges::count(name, '/') == 1 && !name.starts_with('/') && !name.ends_with('/') &&
         !name.starts_with('.') && name.find_first_of(" \t\\:") == std::string_view::npos;
}

std::string name_in_json(const std::string& path, std::string_view key) {
  const StatusOr<Json> json = read_json_object(path);
  const Json* value = json.ok() ? json->find(key) : nullptr;
  return value != nullptr && value->is_string() && is_hub_name(value->as_string()) ? value->as_string() : "";
}

// `base_model` in the front matter of a model card: "base_model: org/name", or a list below it.
std::string name_in_card(const std::string& path) {
  constexpr size_t kMaxCardBytes = size_t{1} << 20;
  const StatusOr<std::string> card = read_file(path, kMaxCardBytes);
  if (!card.ok() || !card->starts_with("---")) return "";
  bool is_list = false;
  bool is_first = true;
  for (const std::string_view line : split(*card, '\n')) {
    if (!std::exchange(is_first, false) && line.starts_with("---")) break;
    std::string_view value = trim(line);
    if (is_list && value.starts_with('-')) {
      value = trim(value.substr(1));
    } else if (line.starts_with("base_model:")) {
      value = trim(value.substr(std::string_view("base_model:").size()));
      is_list = value.empty();
    } else {
      is_list = false;
      continue;
    }
    if (is_hub_name(value)) return std::string(value);
  }
  return "";
}

// The hub's name of the model that a folder was made from; "": no file says it.
std::string original_of(const std::string& dir) {
  std::string name = name_in_json(dir + "/adapter_config.json", "base_model_name_or_path");
  if (name.empty()) name = name_in_card(dir + "/README.md");
  if (name.empty()) name = name_in_json(dir + "/config.json", "_name_or_path");
  return name;
}

std::string advice(const RecognisedFile& file, const std::string& original) {
  switch (file.kind) {
    case FileKind::kLfsPointer: return "run `git lfs pull` in its folder, or fetch the file itself";
    case FileKind::kWebPage: return "fetch the file itself; the link was one to a page about it, or asked for a login";
    case FileKind::kErrorReply:
      return "fetch the file itself; if the model is private or gated, with a token of an account that may read it";
    case FileKind::kText: return "fetch the file itself";
    case FileKind::kEmpty: return "fetch it again";
    case FileKind::kSafetensors: return "give the folder that holds it, config.json and the tokenizer's files";
    case FileKind::kAdapter:  // a prompt is in no matrix
      return str_cat(file.what.find("prompt") != std::string::npos
                         ? "take its base model"
                         : "merge it into its base model (merge_and_unload of peft), or take that model",
                     original.empty() ? "" : str_cat(", ", original));
    case FileKind::kArchive: return "unpack it, and give the folder that holds config.json";
    case FileKind::kCompressed: return "unpack it, and put what is inside in its place";
    case FileKind::kPickle:
      return "nothing of it is run here: if you trust it, load it in Python, and save its tensors with "
             "safetensors.torch.save_file, or with torch.save as it is by default";
    case FileKind::kTorch:
      return "what is read is a folder with config.json, the tokenizer's files, and model.safetensors or "
             "pytorch_model.bin as transformers saves them";
    default: break;
  }
  return str_cat("take the folder of the original model in Hugging Face layout",
                 original.empty() ? "" : str_cat(", ", original));
}

Status recognised(const std::string& path, const RecognisedFile& file, const std::string& dir_original) {
  const std::string original = file.original.empty() ? dir_original : file.original;
  return invalid_argument(path, ": is ", file.what, "; ", advice(file, original));
}

// "model-00001-of-00003.safetensors"
bool is_shard(std::string_view name) {
  const size_t of = name.find("-of-");
  return of != std::string_view::npos && (name.ends_with(".safetensors") || name.ends_with(".bin"));
}

bool has_file(const std::string& dir, std::string_view name) {
  std::error_code ignored;
  return fs::exists(fs::path(dir) / name, ignored);
}

// The kind that the loader takes a file of this name for; nullopt: the name is none of weights.
std::optional<FileKind> kind_by_name(std::string_view name) {
  if (name.ends_with(".safetensors")) return FileKind::kSafetensors;
  return name.ends_with(".bin") ? std::optional(FileKind::kTorch) : std::nullopt;
}

// Whether no file of a model is of this kind, whatever its name.
bool is_stranger(FileKind kind) {
  return kind == FileKind::kLfsPointer || kind == FileKind::kWebPage || kind == FileKind::kErrorReply ||
         kind == FileKind::kCompressed || kind == FileKind::kAdapter;
}

// Whether single files of this kind are MODELs, if of a model that is read.
bool is_model_kind(FileKind kind) {
  return kind == FileKind::kCTranslate2 || kind == FileKind::kWhisperCpp || kind == FileKind::kGguf;
}

// The name that a file of weights would be read under; "": none.
std::string_view right_name(FileKind kind) {
  if (kind == FileKind::kSafetensors) return "model.safetensors";
  return kind == FileKind::kTorch ? "pytorch_model.bin" : "";
}

// For a file of weights in a folder, whose name says another kind.
std::string advice_on_weights(const std::string& path, const RecognisedFile& file) {
  if (is_model_kind(file.kind) && foreign_file(path).has_value()) {
    return "such files are read as they are: give the file itself as MODEL";
  }
  const std::string_view name = right_name(file.kind);
  if (!name.empty() && is_shard(file_name(path))) {
    return str_cat("fetch the shard again; if all shards are so, rename their index to ", name, ".index.json");
  }
  if (!name.empty()) {
    const bool is_there = has_file(fs::path(path).parent_path().string(), name);
    return is_there ? str_cat("move it away, and ", name, " beside it is read") : str_cat("rename it to ", name);
  }
  constexpr std::string_view kConvert = ", and save_pretrained in transformers 4; or fetch the weights in safetensors";
  if (file.kind == FileKind::kHdf5) {
    return str_cat("rename it to tf_model.h5, and convert it with from_pretrained(FOLDER, from_tf=True)", kConvert);
  }
  if (file.kind == FileKind::kFlax) {
    return str_cat("rename it to flax_model.msgpack, and convert it with from_pretrained(FOLDER, from_flax=True)",
                   kConvert);
  }
  return advice(file, file.original);
}

// Whether a message has this name, and not as a part of another one.
bool has_name(std::string_view message, std::string_view name) {
  constexpr std::string_view kBefore = "/ \"", kBehind = ":;, \"";
  for (size_t at = message.find(name); at != std::string_view::npos; at = message.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || kBefore.find(message[at - 1]) != std::string_view::npos;
    if (begins && (end == message.size() || kBehind.find(message[end]) != std::string_view::npos)) return true;
  }
  return false;
}

// A file whose name stands in the message and whose content is none of a model's, or another one's than the name says.
std::optional<Status> explain_named_file(std::string_view message, const std::string& dir) {
  for (const std::string& path : files_of(dir)) {
    const std::string name = file_name(path);
    if (!has_name(message, name)) continue;
    const std::optional<RecognisedFile> file = recognise_file(path);
    if (!file.has_value()) continue;
    if (is_stranger(file->kind)) return recognised(path, *file, "");
    const std::optional<FileKind> expected = kind_by_name(name);
    if (!expected.has_value() || file->kind == *expected) continue;
    return invalid_argument(path, ": is ", file->what, "; ", advice_on_weights(path, *file));
  }
  return std::nullopt;
}

// A file that brings its own settings, under a name of transformers' weights: what config.json lacks does not matter.
std::optional<Status> explain_weights(const std::string& dir) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    const std::string path = dir + "/" + name;
    const std::optional<RecognisedFile> file = recognise_file(path);
    if (file.has_value() && is_model_kind(file->kind)) {
      return invalid_argument(path, ": is ", file->what, "; ", advice_on_weights(path, *file));
    }
  }
  return std::nullopt;
}

// Whatever is wrong with a model whose weights are an adapter's.
std::optional<Status> explain_adapter_weights(const std::string& dir) {
  const std::string path = dir + "/model.safetensors";
  const std::optional<RecognisedFile> file = recognise_file(path);
  if (!file.has_value() || file->kind != FileKind::kAdapter) return std::nullopt;
  return recognised(path, *file, original_of(dir));
}

// An adapter has weights, but not those of a model.
std::optional<Status> explain_adapter(const std::string& dir) {
  if (!has_file(dir, "adapter_config.json")) return std::nullopt;
  const std::string original = original_of(dir);
  return unimplemented(dir, "/adapter_config.json: ", feature_row(Feature::kLora).refusal,
                       original.empty() ? "" : str_cat("; the model is ", original));
}

// REQUIRES: no weights that are read.
std::optional<Status> explain_folder(const std::string& dir) {
  const std::string original = original_of(dir);
  std::vector<std::string> paths = files_of(dir);
  for (const std::string& path : files_of(fs::path(dir) / "onnx")) paths.push_back(path);
  std::optional<RecognisedFile> best;
  std::string best_path;
  for (const std::string& path : paths) {
    if (is_shard(file_name(path))) {
      return not_found(dir, ": has the shard ", file_name(path), " and no index of shards; get ",
                       path.ends_with(".bin") ? "pytorch_model.bin.index.json" : "model.safetensors.index.json");
    }
    std::optional<RecognisedFile> file = recognise_file(path);
    if (!file.has_value() || file->kind >= FileKind::kSafetensors) continue;
    if (best.has_value() && best->kind <= file->kind) continue;
    best = std::move(file);
    best_path = path;
  }
  if (!best.has_value()) return std::nullopt;
  if (is_model_kind(best->kind) && foreign_file(best_path).has_value()) {
    return invalid_argument(best_path, ": is ", best->what, "; ", advice_on_weights(best_path, *best));
  }
  return recognised(best_path, *best, original);
}

}  // namespace

Status explain_model_error(Status status, const std::string& dir) {
  if (status.ok() || foreign_file(dir).has_value()) return status;
  std::optional<Status> better = explain_named_file(error_message(status), dir);
  const bool has_weights = has_checkpoint(dir);
  if (!better.has_value() && has_weights && has_name(error_message(status), "config.json")) {
    better = explain_weights(dir);
  }
  if (!better.has_value() && has_weights) better = explain_adapter_weights(dir);
  if (!better.has_value() && !has_weights) better = explain_adapter(dir);
  if (!better.has_value() && !has_weights) better = explain_folder(dir);
  return better.value_or(std::move(status));
}

Status check_no_adapter(const std::string& dir) {
  if (foreign_file(dir).has_value()) return ok_status();
  return explain_adapter_weights(dir).value_or(ok_status());
}

Status model_is_file(const std::string& path) {
  const std::optional<RecognisedFile> file = recognise_file(path);
  const bool is_other_text = file.has_value() && file->kind >= FileKind::kErrorReply && !is_model_file_name(path);
  if (!file.has_value() || is_other_text) {
    return invalid_argument("model ", path, ": is a file; give the folder that holds config.json");
  }
  const std::string shown = str_cat("model ", path);
  const std::optional<FileKind> expected = kind_by_name(file_name(path));
  if (const std::string_view name = right_name(file->kind);
      expected.value_or(file->kind) != file->kind && !name.empty()) {
    return invalid_argument(shown, ": is ", file->what, "; rename it to ", name,
                            ", and give the folder that holds it, config.json and the tokenizer's files");
  }
  const std::string folder = fs::path(path).parent_path().string();
  return recognised(shown, *file, original_of(folder.empty() ? "." : folder));
}

}  // namespace transept
