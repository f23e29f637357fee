#include "startup/model_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "core/config_file.h"
#include "foreign/ct2_file.h"
#include "foreign/ct2_model.h"
#include "foreign/ggml_file.h"
#include "foreign/ggml_whisper.h"
#include "foreign/gguf_file.h"
#include "foreign/gguf_t5.h"
#include "foreign/marian_npz.h"
#include "foreign/npz_file.h"
#include "weights/checkpoint_files.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

using Opener = StatusOr<ForeignModel> (*)(const std::string& path);

// What reads the file; null: nothing does.
Opener opener_of(const fs::path& path) {
  constexpr size_t kHead = size_t{64} << 10;
  const StatusOr<std::unique_ptr<InputFile>> file = InputFile::open(path.string());
  if (!file.ok()) return nullptr;
  std::vector<std::byte> head(std::min(kHead, (*file)->size()));
  if (!(*file)->read(0, head).ok()) return nullptr;
  if (begins_as_ggml_file(head)) return open_ggml_whisper;
  if (gguf_architecture(head) == "t5") return open_gguf_t5;
  if (is_ct2_spec(ct2_spec(head).value_or(""))) return open_ct2_model;
  if (begins_as_npz_file(head)) return open_marian_npz;
  return nullptr;
}

// A lexical shortlist lies beside a Marian model.
bool is_shortlist(const fs::path& path) { return path.filename().string().ends_with(".s2t.bin"); }

// Files of these endings are models, or the folder is none of one file.
bool is_model_name(const fs::path& path) {
  const std::string name = path.filename().string(), ending = path.extension().string();
  if (name.ends_with(".optimizer.npz") || is_shortlist(path)) return false;
  return ending == ".bin" || ending == ".gguf" || ending == ".npz";
}

// CTranslate2 has a config.json of its own beside its model, which names no architecture. transformers' own may lie
// there instead, without weights.
std::optional<std::string> ct2_file(const fs::path& dir) {
  const fs::path file = dir / "model.bin";
  std::error_code error;
  if (!fs::is_regular_file(file, error) || opener_of(file) != open_ct2_model) return std::nullopt;
  const StatusOr<Json> config = read_json_object((dir / "config.json").string());
  const bool is_transformers = config.ok() && (config->find("model_type") != nullptr ||  //
                                               config->find("architectures") != nullptr);
  return is_transformers && has_checkpoint(dir.string()) ? std::nullopt : std::optional(file.string());
}

}  // namespace

std::optional<std::string> foreign_file(const std::string& model) {
  std::error_code error;
  if (fs::is_regular_file(model, error)) return opener_of(model) != nullptr ? std::optional(model) : std::nullopt;
  if (!fs::is_directory(model, error)) return std::nullopt;
  if (std::optional<std::string> found = ct2_file(model)) return found;
  if (has_checkpoint(model)) return std::nullopt;
  std::optional<std::string> found;
  for (fs::directory_iterator at(model, error), end; !error && at != end; at.increment(error)) {
    if (!is_model_name(at->path())) continue;
    if (found.has_value() || opener_of(at->path()) == nullptr) return std::nullopt;
    found = at->path().string();
  }
  return found;
}

StatusOr<ModelFiles> ModelFiles::open(const std::string& model) {
  ModelFiles files;
  const std::optional<std::string> foreign = foreign_file(model);
  if (!foreign.has_value()) {
    files.folder_ = ModelFolder(model);
    files.disk_ = model;
    return files;
  }
  ASSIGN_OR_RETURN(ForeignModel opened, opener_of(*foreign)(*foreign));
  files.folder_ = std::move(opened.folder);
  std::error_code error;
  files.disk_ = std::move(opened.disk);
  if (files.disk_.empty() && fs::is_directory(model, error)) files.disk_ = model;
  files.tensors_ = std::move(opened.tensors);
  return files;
}

StatusOr<std::unique_ptr<WeightMap>> ModelFiles::open_weights(const ReadingRank& reader) && {
  if (!tensors_.has_value()) return WeightMap::open(folder_.path(), reader);
  return WeightMap::of(std::move(*tensors_));
}

}  // namespace transept
