#include "startup/pack_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "attention/backends.h"
#include "base/disk_sync.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "layers/pack_file.h"
#include "models/registry.h"
#include "multimodal/input_families.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/open_weights.h"
#include "startup/recognise_model.h"
#include "startup/tensors_digest.h"
#include "startup/weight_storage.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsFile = "model.safetensors";

// What other files of a checkpoint end with: weights once more, for other programs.
bool holds_weights(std::string_view name) {
  if (name.ends_with(".s2t.bin")) return false;  // a shortlist (weights/shortlist.h): answers depend on it
  constexpr std::string_view kEndings[] = {".safetensors", ".safetensors.index.json",
                                           ".bin",         ".bin.index.json",
                                           ".pt",          ".pth",
                                           ".ckpt",        ".h5",
                                           ".msgpack",     ".onnx",
                                           ".onnx_data",   ".ot",
                                           ".gguf",        ".npz",
                                           ".tflite"};
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// A folder that is removed again unless it was moved to where it belongs.
class NewFolder final {
 public:
  static StatusOr<NewFolder> create(const fs::path& wanted) {
    std::error_code error;
    if (fs::symlink_status(wanted, error).type() != fs::file_type::not_found) {
      return invalid_argument(wanted.string(), ": exists already; give the name of a new folder");
    }
    if (wanted.empty()) return invalid_argument("OUT is empty; give the name of a new folder");
    NewFolder folder(wanted, str_cat(wanted.string(), ".partial-", static_cast<int64_t>(::getpid())));
    if (fs::create_directory(folder.path_, error)) return folder;
    const fs::path refused = std::exchange(folder.path_, {});
    if (error) return invalid_argument(wanted.string(), ": cannot be made: ", error.message());
    return invalid_argument(refused.string(), ": is left of a run that was killed; remove it");
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  NewFolder(NewFolder&& other) noexcept : wanted_(std::move(other.wanted_)), path_(std::exchange(other.path_, {})) {}
  NewFolder& operator=(NewFolder&&) = delete;

  const fs::path& path() const { return path_; }

  Status finish() {
    RETURN_IF_ERROR(put_on_disk(path_));
    // In one go, and not over what has come there meanwhile; not every file system knows that.
    int failed = ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, wanted_.c_str(), RENAME_NOREPLACE);
    if (failed != 0 && (errno == EINVAL || errno == ENOSYS)) failed = ::rename(path_.c_str(), wanted_.c_str());
    if (failed != 0) return invalid_argument(wanted_.string(), ": cannot be made: ", std::strerror(errno));
    path_.clear();
    return put_on_disk(wanted_.has_parent_path() ? wanted_.parent_path() : fs::path("."));
  }

 private:
  NewFolder(fs::path wanted, fs::path path) : wanted_(std::move(wanted)), path_(std::move(path)) {}

  fs::path wanted_, path_;
};

// Everything of the folder that is not weights, the licence included; files that a cache links to are copied too.
StatusOr<size_t> copy_files(const fs::path& from, const fs::path& to, FunctionRef<bool()> goes_on) {
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') || holds_weights(name) || !fs::is_regular_file(at->path(), ignored)) continue;
    if (!goes_on()) return absl::CancelledError("interrupted");
    std::error_code refused;
    fs::copy_file(at->path(), to / name, refused);
    if (refused) return invalid_argument(at->path().string(), ": cannot be copied: ", refused.message());
    RETURN_IF_ERROR(put_on_disk(to / name));
    ++count;
  }
  if (error) return invalid_argument(from.string(), ": cannot be listed: ", error.message());
  return count;
}

// Texts that stand inside the checkpoint's file become files.
StatusOr<size_t> write_texts(const ModelFolder& from, const fs::path& to) {
  for (const auto& [name, text] : from.texts()) {
    std::ofstream(to / name, std::ios::binary) << text;
    std::error_code ignored;
    if (fs::file_size(to / name, ignored) != text.size()) {
      return invalid_argument((to / name).string(), ": cannot be written");
    }
    RETURN_IF_ERROR(put_on_disk(to / name));
  }
  return from.texts().size();
}

// The folder's name without a slash behind it.
fs::path folder_path(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// The file of one rank: its bytes, and what it holds.
struct PackedRank {
  uint64_t num_bytes = 0;
  std::string storage;
};

StatusOr<PackedRank> pack_rank(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                               const AttentionBackend& attention, PackOptions packing, const std::string& source,
                               const fs::path& folder, FunctionRef<bool()> goes_on) {
  if (!goes_on()) return absl::CancelledError("interrupted");
  std::vector<PackedLayer> layers;
  packing.report = &layers;
  packing.pool = PackOptions(packing.threads).pool;  // of this rank alone
  weights->set_threads(&packing.threads);
  const StatusOr<std::unique_ptr<Model>> model = load_model(config, weights, {packing, attention});
  weights->set_threads(nullptr);
  RETURN_IF_ERROR(model.status());
  weights->ignore_where([](std::string_view) { return true; });  // the first rank has warned of what nobody reads
  const Ranks& ranks = packing.ranks;
  const fs::path file =
      folder / (ranks.count == 1 ? std::string(kWeightsFile) : rank_file_name({ranks.rank, ranks.count}));
  RETURN_IF_ERROR(write_pack_file(file.string(), *weights, layers, packing.storage, goes_on, {ranks, source}));
  std::error_code ignored;
  return PackedRank{fs::file_size(file, ignored), storage_text(layers)};
}

StatusOr<PackedModel> pack_checked(const EngineConfig& config, const std::string& out, FunctionRef<bool()> goes_on) {
  ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(config.model));
  const std::string disk = files.disk();
  ASSIGN_OR_RETURN(const ModelConfig model_config, load_family_config(files.folder()));
  RETURN_IF_ERROR(check_features(config, model_config));
  ASSIGN_OR_RETURN(const OpenedWeights opened,
                   open_weights(config, model_config, std::move(files), {0, num_packed_ranks(disk)}));
  const std::shared_ptr<WeightMap>& weights = opened.map;
  if (weights->pack_tag() != nullptr) {
    return invalid_argument(config.model, ": is packed already; give the checkpoint that it was packed from");
  }
  ASSIGN_OR_RETURN(NewFolder folder, NewFolder::create(folder_path(out)));
  PackedModel result;
  if (!disk.empty()) {
    ASSIGN_OR_RETURN(result.num_copied, copy_files(disk, folder.path(), goes_on));
  }
  ASSIGN_OR_RETURN(const size_t num_texts, write_texts(model_config.folder, folder.path()));
  result.num_copied += num_texts;
  ASSIGN_OR_RETURN(const Isa isa, parse_isa(config.isa));
  const StoredWeights stored = stored_weights(*weights, opened.quantization);
  ASSIGN_OR_RETURN(const StorageTypes types, storage_types(config, isa, stored, model_config.width));
  if (!types.report.empty()) log_info(types.report);
  ThreadPool threads(config.threads > 0 ? config.threads : num_available_cpus());
  ASSIGN_OR_RETURN(const std::unique_ptr<AttentionBackend> attention, make_attention_backend(config.attention_backend));
  PackOptions packing(threads, types.weights, nullptr);
  packing.least_int8_width = kLeastInt8Width;
  result.num_ranks = config.tensor_parallel_size;
  const std::string source = result.num_ranks == 1 ? "" : digest_hex(digest_of_checkpoint(model_config, *weights));
  for (int32_t rank = 0; rank < result.num_ranks; ++rank) {
    packing.ranks = {rank, result.num_ranks};
    ASSIGN_OR_RETURN(const PackedRank packed,
                     pack_rank(model_config, weights, *attention, packing, source, folder.path(), goes_on));
    result.num_bytes += packed.num_bytes;
    if (rank == 0) result.storage = packed.storage;
  }
  RETURN_IF_ERROR(folder.finish());
  return result;
}

}  // namespace

StatusOr<PackedModel> pack_model(const EngineConfig& config, const std::string& out, FunctionRef<bool()> goes_on) {
  StatusOr<PackedModel> packed = pack_checked(config, out, goes_on);
  if (!packed.ok()) return explain_model_error(packed.status(), config.model);
  return packed;
}

}  // namespace transept
