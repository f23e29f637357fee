#include "weights/weight_map.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/checked_math.h"
#include "base/mmap_file.h"
#include "weights/json_scanner.h"
#include "weights/tensor_matrix.h"

namespace transept {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr size_t kMaxShards = 10'000;

std::string path_in(const std::string& dir, std::string_view name) {
  return (std::filesystem::path(dir) / name).string();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The types that get() serves.
std::optional<DType> float_type(std::string_view dtype) {
  if (dtype == "F32") return DType::kFloat32;
  if (dtype == "BF16") return DType::kBFloat16;
  if (dtype == "F16") return DType::kFloat16;
  return std::nullopt;
}

using Index = std::map<std::string, std::string, std::less<>>;  // tensor -> shard

// A shard is a plain file name: anything else could leave the folder.
Status check_shard_name(std::string_view shard) {
  const bool is_plain = !shard.empty() && shard != "." && shard != ".." &&
                        shard.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  return is_plain
             ? ok_status()
             : invalid_argument("the shard \"", shard.substr(0, 200), "\" is not the name of a file in the folder");
}

Status read_shard_of(JsonScanner& json, std::string tensor, Index& index) {
  ASSIGN_OR_RETURN(std::string shard, json.string());
  RETURN_IF_ERROR(check_shard_name(shard));
  if (index.size() == kMaxSafetensorsTensors) {
    return invalid_argument("more than the ", kMaxSafetensorsTensors, " tensors allowed");
  }
  const auto [place, is_new] = index.emplace(std::move(tensor), std::move(shard));
  return is_new ? ok_status() : invalid_argument("tensor \"", place->first.substr(0, 200), "\" stands twice");
}

StatusOr<Index> parse_index(std::string_view text) {
  if (text.size() > kMaxSafetensorsHeaderBytes) {
    return invalid_argument(text.size(), " bytes are over the ", kMaxSafetensorsHeaderBytes, " allowed");
  }
  Index index;
  bool has_map = false;
  JsonScanner json(text);
  RETURN_IF_ERROR(json.members([&](const std::string& key) {
    if (key != "weight_map") return json.skip();
    if (has_map) return invalid_argument("weight_map stands twice");
    has_map = true;
    return json.members([&](std::string tensor) { return read_shard_of(json, std::move(tensor), index); });
  }));
  RETURN_IF_ERROR(json.end());
  if (!has_map) return invalid_argument("weight_map is missing");
  return index;
}

}  // namespace

struct WeightMap::Impl {
  DeviceMemory* memory = &host_memory();
  struct Tensor {
    SafetensorsTensor view;
    const MmapFile* file = nullptr;
    bool is_known = false;  // read or ignored
    bool is_read = false;   // for WeightUse::kRead

    Status error(std::string_view reason) const {
      return with_param(invalid_argument(file->path(), ": tensor \"", view.name, "\": ", reason), view.name);
    }
    Status check_shape(std::span<const int64_t> expected) const {
      if (std::ranges::equal(view.shape, expected)) return ok_status();
      return error(str_cat("shape ", shape_text(view.shape), ", expected ", shape_text(expected)));
    }
    WeightView weight(DType dtype) const { return {view.name, dtype, view.shape, view.data, file}; }
  };

  std::vector<std::unique_ptr<MmapFile>> files;
  std::map<std::string, Tensor, std::less<>> tensors;
  std::string source;  // the file or index that was opened, for messages
  std::string prefix;
  std::optional<PackTag> pack_tag;
  std::unique_ptr<MatrixReader> reader;  // or null

  Status add_file(const std::string& path) {
    ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
    SafetensorsMetadata metadata;
    ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> views, parse_safetensors(file->bytes(), path, &metadata));
    StatusOr<std::optional<PackTag>> tag = parse_pack_tag(metadata);
    if (!tag.ok()) return with_prefix(tag.status(), str_cat(path, ": __metadata__"));
    if (tag->has_value() && pack_tag.has_value()) return invalid_argument(path, ": a packed model is one file");
    if (tag->has_value()) {
      pack_tag = std::move(tag).value();
      file->prefer_large_pages();
    }
    if (views.size() > kMaxSafetensorsTensors - std::min(tensors.size(), kMaxSafetensorsTensors)) {
      return invalid_argument(path, ": more than the ", kMaxSafetensorsTensors, " tensors allowed");
    }
    for (SafetensorsTensor& view : views) {
      const std::string name = view.name;
      const auto [place, is_new] = tensors.try_emplace(name, Tensor{std::move(view), file.get()});
      if (!is_new) {
        return with_param(
            invalid_argument(path, ": tensor \"", name, "\" stands in ", place->second.file->path(), " too"), name);
      }
    }
    files.push_back(std::move(file));
    return ok_status();
  }

  Status add_shards(const std::string& dir, const std::string& index_path) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MmapFile> text, MmapFile::open(index_path));
    StatusOr<Index> index = parse_index(text->text());
    if (!index.ok()) return with_prefix(index.status(), index_path);

    std::vector<std::string> shards;
    for (const auto& [tensor, shard] : *index) shards.push_back(shard);
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    if (shards.size() > kMaxShards) {
      return invalid_argument(index_path, ": ", shards.size(), " shards are over the ", kMaxShards, " allowed");
    }
    for (const std::string& shard : shards) {
      const std::string path = path_in(dir, shard);
      if (!exists(path)) return not_found(index_path, ": the shard ", shard, " is missing");
      RETURN_IF_ERROR(add_file(path));
    }
    for (const auto& [tensor, shard] : *index) {
      const auto found = tensors.find(tensor);
      if (found == tensors.end() || found->second.file->path() != path_in(dir, shard)) {
        return with_param(invalid_argument(index_path, ": tensor \"", tensor, "\" is not in its shard ", shard),
                          tensor);
      }
    }
    return ok_status();
  }

  Status missing(std::string_view name) const {
    return with_param(not_found(source, ": tensor \"", name, "\" is missing"), name);
  }

  // As it is spelled, with the prefix, or without it.
  Tensor* find(std::string_view name) {
    if (const auto exact = tensors.find(name); exact != tensors.end()) return &exact->second;
    if (prefix.empty()) return nullptr;
    const auto other =
        name.starts_with(prefix) ? tensors.find(name.substr(prefix.size())) : tensors.find(str_cat(prefix, name));
    return other == tensors.end() ? nullptr : &other->second;
  }
};

WeightMap::WeightMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WeightMap::~WeightMap() = default;

StatusOr<std::unique_ptr<WeightMap>> WeightMap::open(const std::string& dir) {
  auto impl = std::make_unique<Impl>();
  const std::string single = path_in(dir, kSingleFile);
  const std::string index = path_in(dir, kIndexFile);
  if (exists(single)) {
    impl->source = single;
    RETURN_IF_ERROR(impl->add_file(single));
  } else if (exists(index)) {
    impl->source = index;
    RETURN_IF_ERROR(impl->add_shards(dir, index));
  } else {
    const bool has_pickle = exists(path_in(dir, "pytorch_model.bin"));
    return not_found(
        dir, ": no ", kSingleFile, " and no ", kIndexFile,
        has_pickle ? "; pytorch_model.bin is never read (it can run code): convert it to safetensors" : "");
  }
  return std::unique_ptr<WeightMap>(new WeightMap(std::move(impl)));
}

DeviceMemory& WeightMap::memory() const { return *impl_->memory; }

void WeightMap::set_memory(DeviceMemory& memory) { impl_->memory = &memory; }

void WeightMap::set_optional_prefix(std::string prefix) { impl_->prefix = std::move(prefix); }

void WeightMap::set_matrix_reader(std::unique_ptr<MatrixReader> reader) { impl_->reader = std::move(reader); }

bool WeightMap::contains(std::string_view name) const {
  if (impl_->pack_tag.has_value() && impl_->pack_tag->matrices.contains(name)) return true;
  return has_tensor(name) || (impl_->reader != nullptr && impl_->reader->has(*this, name));
}

bool WeightMap::has_tensor(std::string_view name) const { return impl_->find(name) != nullptr; }

StatusOr<WeightView> WeightMap::get(std::string_view name, std::initializer_list<int64_t> shape, WeightUse use) {
  Impl::Tensor* tensor = impl_->find(name);
  if (tensor == nullptr) return impl_->missing(name);
  const std::optional<DType> dtype = float_type(tensor->view.dtype);
  if (!dtype.has_value()) {
    return tensor->error(
        str_cat("dtype ", tensor->view.dtype, " is not a floating-point type that is read (F32, BF16, F16)"));
  }
  RETURN_IF_ERROR(tensor->check_shape(shape));
  tensor->is_known = true;
  tensor->is_read |= use == WeightUse::kRead;
  return tensor->weight(*dtype);
}

StatusOr<std::unique_ptr<MatrixSource>> WeightMap::matrix(std::string_view name, std::initializer_list<int64_t> shape,
                                                          WeightUse use) {
  const int64_t n = *shape.begin();
  int64_t k = 1;
  for (const int64_t dim : std::span(shape).subspan(1)) k *= dim;
  if (impl_->reader != nullptr && impl_->reader->has(*this, name)) return impl_->reader->open(*this, name, n, k, use);
  ASSIGN_OR_RETURN(WeightView view, get(name, shape, use));
  return std::unique_ptr<MatrixSource>(std::make_unique<TensorMatrix>(std::move(view), use == WeightUse::kRead));
}

const PackTag* WeightMap::pack_tag() const { return impl_->pack_tag.has_value() ? &*impl_->pack_tag : nullptr; }

StatusOr<std::span<const std::byte>> WeightMap::get_bytes(std::string_view name, std::string_view dtype,
                                                          std::span<const int64_t> shape, WeightUse use) {
  Impl::Tensor* tensor = impl_->find(name);
  if (tensor == nullptr) return impl_->missing(name);
  if (tensor->view.dtype != dtype) return tensor->error(str_cat("dtype ", tensor->view.dtype, ", expected ", dtype));
  RETURN_IF_ERROR(tensor->check_shape(shape));
  tensor->is_known = true;
  tensor->is_read |= use == WeightUse::kRead;
  return tensor->view.data;
}

std::vector<SafetensorsTensor> WeightMap::read_tensors() const {
  std::vector<SafetensorsTensor> list;
  for (const auto& [name, tensor] : impl_->tensors) {
    if (tensor.is_read) list.push_back(tensor.view);
  }
  return list;
}

const std::string& WeightMap::source() const { return impl_->source; }

void WeightMap::ignore(std::string_view name) {
  if (Impl::Tensor* tensor = impl_->find(name); tensor != nullptr) tensor->is_known = true;
}

std::vector<std::string> WeightMap::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : impl_->tensors) {
    if (!tensor.is_known) names.push_back(name);
  }
  return names;
}

size_t WeightMap::total_bytes() const {
  size_t bytes = 0;
  for (const auto& [name, tensor] : impl_->tensors) bytes += tensor.view.data.size();
  return bytes;
}

WeightFormat WeightMap::main_format() const {
  std::map<DType, size_t> bytes = {{DType::kFloat32, 0}};
  for (const auto& [name, tensor] : impl_->tensors) {
    if (const std::optional<DType> dtype = float_type(tensor.view.dtype)) bytes[*dtype] += tensor.view.data.size();
  }
  DType most = DType::kFloat32;
  for (const auto& [dtype, count] : bytes) {
    if (count > bytes.at(most)) most = dtype;
  }
  return weights_of(most);
}

}  // namespace transept
