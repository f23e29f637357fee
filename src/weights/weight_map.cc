#include "weights/weight_map.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/mmap_file.h"
#include "tensor/page_buffer.h"
#include "weights/gathered_rows.h"
#include "weights/strides.h"
#include "weights/tensor_matrix.h"
#include "weights/torch_file.h"

namespace transept {
namespace {

constexpr size_t kGatheredBytes = size_t{2} << 20;  // of memory at a time; larger tensors have their own
constexpr size_t kLargeBytes = size_t{4} << 20;     // of a tensor that is gathered as its rows are read

// The types that get() serves.
std::optional<DType> float_type(std::string_view dtype) {
  if (dtype == "F32") return DType::kFloat32;
  if (dtype == "BF16") return DType::kBFloat16;
  if (dtype == "F16") return DType::kFloat16;
  return std::nullopt;
}

}  // namespace

struct WeightMap::Impl {
  DeviceMemory* memory = &host_memory();
  ThreadPool* threads = nullptr;
  PagePool gathered{kGatheredBytes};
  struct Tensor {
    SafetensorsTensor view;
    const MmapFile* file = nullptr;
    bool is_known = false;  // read or ignored
    bool is_read = false;   // for WeightUse::kRead
    // In elements; empty: the data is dense.
    std::vector<int64_t> strides;
    std::span<std::byte> gathered;       // what `view` views if the tensor was gathered
    std::unique_ptr<GatheredRows> rows;  // of one that is gathered as it is read; null

    Status error(std::string_view reason) const {
      const std::string place = file == nullptr ? "" : file->path() + ": ";
      return with_param(invalid_argument(place, "tensor \"", view.name, "\": ", reason), view.name);
    }
    Status check_shape(std::span<const int64_t> expected) const {
      if (std::ranges::equal(view.shape, expected)) return ok_status();
      return error(str_cat("shape ", shape_text(view.shape), ", expected ", shape_text(expected)));
    }
    // REQUIRES: of floats.
    WeightView weight() const {
      const bool is_of_file = gathered.empty() || !strides.empty();
      return {view.name, *float_type(view.dtype), view.shape, view.data, is_of_file ? file : nullptr};
    }
    size_t dense_bytes() const {
      const auto width = static_cast<size_t>(safetensors_dtype_bytes(view.dtype));
      return width * static_cast<size_t>(num_elements(view.shape).value());  // checked when the file was read
    }
    // From here on the data is dense.
    void gather(PagePool& pages, ThreadPool* workers) {
      if (strides.empty()) return;
      if (rows == nullptr) {
        const auto width = static_cast<size_t>(safetensors_dtype_bytes(view.dtype));
        gathered = pages.allocate(dense_bytes());
        transept::gather(view.data, width, view.shape, strides, gathered, workers);
        file->release_pages(view.data);  // not in memory twice
      } else {
        rows->gather_all(workers);
      }
      view.data = gathered;
      strides.clear();
    }
    // Whether rows of it can be gathered when they are read, and gathering all of them would take time.
    bool gathers_rows() const {
      return rows != nullptr || (view.shape.size() == 2 && strides.size() == 2 && strides.front() == 1 &&
                                 file != nullptr && view.data.size() >= kLargeBytes);
    }
    // REQUIRES: gathers_rows().
    GatheredRows& rows_as_read(PagePool& pages) {
      if (rows == nullptr) {
        gathered = pages.allocate(dense_bytes());
        rows = std::make_unique<GatheredRows>(weight(), strides.back(), gathered);
      }
      return *rows;
    }
  };

  std::vector<std::unique_ptr<MmapFile>> files;
  std::vector<std::unique_ptr<const std::vector<std::byte>>> made;  // of FoundTensors
  std::map<std::string, Tensor, std::less<>> tensors;
  std::string source;  // the file or index that was opened, for messages
  std::string prefix;
  std::optional<PackTag> pack_tag;
  bool rounds_inputs = true;                                         // as the checkpoint says
  std::unique_ptr<MatrixReader> reader;                              // or null
  std::map<std::string, std::pair<int64_t, int64_t>> read_matrices;  // of the reader: outputs and inputs

  Status add_file(const std::string& path, CheckpointForm form) {
    ASSIGN_OR_RETURN(std::unique_ptr<MmapFile> file, MmapFile::open(path));
    ASSIGN_OR_RETURN(std::vector<StoredTensor> stored,
                     form == CheckpointForm::kTorch ? parse_torch_file(file->bytes(), path) : read_safetensors(*file));
    return add_tensors(std::move(file), std::move(stored));
  }

  Status add_tensors(std::unique_ptr<MmapFile> file, std::vector<StoredTensor> stored) {
    const std::string& path = file->path();
    if (stored.size() > kMaxCheckpointTensors - std::min(tensors.size(), kMaxCheckpointTensors)) {
      return invalid_argument(path, ": more than the ", kMaxCheckpointTensors, " tensors allowed");
    }
    const std::span<const std::byte> mapped = file->bytes();
    for (StoredTensor& one : stored) {
      const std::string name = one.view.name;
      const auto [place, is_new] = tensors.try_emplace(name);
      if (!is_new) {
        const std::string& other = place->second.file == nullptr ? path : place->second.file->path();
        return with_param(invalid_argument(path, ": tensor \"", name, "\" stands in ", other, " too"), name);
      }
      const std::byte* const begin = one.view.data.data();
      const bool is_mapped = begin >= mapped.data() && begin <= mapped.data() + mapped.size();
      place->second.view = std::move(one.view);
      place->second.file = is_mapped ? file.get() : nullptr;
      place->second.strides = std::move(one.strides);
    }
    files.push_back(std::move(file));
    return ok_status();
  }

  StatusOr<std::vector<StoredTensor>> read_safetensors(const MmapFile& file) {
    SafetensorsMetadata metadata;
    ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> views, parse_safetensors(file.bytes(), file.path(), &metadata));
    StatusOr<std::optional<PackTag>> tag = parse_pack_tag(metadata);
    if (!tag.ok()) return with_prefix(tag.status(), str_cat(file.path(), ": __metadata__"));
    if (tag->has_value() && pack_tag.has_value()) return invalid_argument(file.path(), ": a packed model is one file");
    if (tag->has_value()) {
      pack_tag = std::move(tag).value();
      file.prefer_large_pages();
    }
    std::vector<StoredTensor> stored;
    stored.reserve(views.size());
    for (SafetensorsTensor& view : views) stored.push_back({std::move(view), {}});
    return stored;
  }

  Status add_files(const CheckpointFiles& found) {
    source = found.source;
    for (const std::string& path : found.paths) RETURN_IF_ERROR(add_file(path, found.form));
    for (const auto& [name, path] : found.places) {
      const auto tensor = tensors.find(name);
      if (tensor != tensors.end() && tensor->second.file->path() == path) continue;
      const std::string shard = std::filesystem::path(path).filename().string();
      return with_param(invalid_argument(source, ": tensor \"", name, "\" is not in its shard ", shard), name);
    }
    return ok_status();
  }

  Status missing(std::string_view name) const {
    return with_param(not_found(source, ": tensor \"", name, "\" is missing"), name);
  }

  // The tensor, marked as read.
  StatusOr<Tensor*> read_floats(std::string_view name, std::initializer_list<int64_t> shape, WeightUse use) {
    Tensor* tensor = find(name);
    if (tensor == nullptr) return missing(name);
    if (!float_type(tensor->view.dtype).has_value()) {
      return tensor->error(
          str_cat("dtype ", tensor->view.dtype, " is not a floating-point type that is read (F32, BF16, F16)"));
    }
    RETURN_IF_ERROR(tensor->check_shape(shape));
    tensor->is_known = true;
    tensor->is_read |= use == WeightUse::kRead;
    return tensor;
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

StatusOr<std::unique_ptr<WeightMap>> WeightMap::open(const std::string& dir, const ReadingRank& reader) {
  ASSIGN_OR_RETURN(const CheckpointFiles found, find_checkpoint(dir, reader));
  auto impl = std::make_unique<Impl>();
  RETURN_IF_ERROR(impl->add_files(found));
  const PackTag tag = impl->pack_tag.value_or(PackTag());
  if (tag.rank != found.part.rank || tag.num_ranks != found.part.count) {
    return invalid_argument(found.source, ": holds the part of rank ", tag.rank, " of ", tag.num_ranks,
                            " by its metadata, and of rank ", found.part.rank, " of ", found.part.count,
                            " by its name");
  }
  return std::unique_ptr<WeightMap>(new WeightMap(std::move(impl)));
}

StatusOr<std::unique_ptr<WeightMap>> WeightMap::of(FoundTensors found) {
  auto impl = std::make_unique<Impl>();
  impl->source = found.file->path();
  impl->made = std::move(found.made);
  impl->reader = std::move(found.matrices);
  RETURN_IF_ERROR(impl->add_tensors(std::move(found.file), std::move(found.tensors)));
  return std::unique_ptr<WeightMap>(new WeightMap(std::move(impl)));
}

DeviceMemory& WeightMap::memory() const { return *impl_->memory; }

void WeightMap::set_memory(DeviceMemory& memory) { impl_->memory = &memory; }

void WeightMap::set_threads(ThreadPool* threads) { impl_->threads = threads; }

void WeightMap::set_optional_prefix(std::string prefix) { impl_->prefix = std::move(prefix); }

void WeightMap::set_matrix_reader(std::unique_ptr<MatrixReader> reader) { impl_->reader = std::move(reader); }

bool WeightMap::contains(std::string_view name) const {
  if (impl_->pack_tag.has_value() && impl_->pack_tag->matrices.contains(name)) return true;
  return has_tensor(name) || is_quantized(name);
}

bool WeightMap::is_quantized(std::string_view name) const {
  return impl_->reader != nullptr && impl_->reader->has(*this, name);
}

bool WeightMap::has_tensor(std::string_view name) const { return impl_->find(name) != nullptr; }

std::optional<WeightMap::Form> WeightMap::form_of(std::string_view name) const {
  const Impl::Tensor* tensor = impl_->find(name);
  if (tensor == nullptr) return std::nullopt;
  const SafetensorsTensor& view = tensor->view;
  return Form{view.name, view.dtype, view.shape, view.data, tensor->file};
}

Status WeightMap::tensor_error(std::string_view name, std::string_view reason) const {
  const Impl::Tensor* tensor = impl_->find(name);
  if (tensor != nullptr) return tensor->error(reason);
  return with_param(invalid_argument(source(), ": tensor \"", name, "\": ", reason), name);
}

StatusOr<WeightView> WeightMap::get(std::string_view name, std::initializer_list<int64_t> shape, WeightUse use) {
  ASSIGN_OR_RETURN(Impl::Tensor * tensor, impl_->read_floats(name, shape, use));
  tensor->gather(impl_->gathered, impl_->threads);
  return tensor->weight();
}

StatusOr<std::unique_ptr<MatrixSource>> WeightMap::matrix(std::string_view name, std::initializer_list<int64_t> shape,
                                                          WeightUse use) {
  const int64_t n = *shape.begin();
  int64_t k = 1;
  for (const int64_t dim : std::span(shape).subspan(1)) k *= dim;
  if (is_quantized(name)) {
    if (use == WeightUse::kRead) impl_->read_matrices.insert_or_assign(std::string(name), std::pair(n, k));
    // A reader's tensors are parts of its matrix.
    return impl_->reader->open(*this, name, n, k, WeightUse::kPacked);
  }
  ASSIGN_OR_RETURN(Impl::Tensor * tensor, impl_->read_floats(name, shape, use));
  // What steps read is gathered once, or row by row; what is packed is gathered on its way.
  if (use == WeightUse::kRead && tensor->gathers_rows()) {
    return std::unique_ptr<MatrixSource>(std::make_unique<GatheredMatrix>(tensor->rows_as_read(impl_->gathered)));
  }
  if (use == WeightUse::kRead) tensor->gather(impl_->gathered, impl_->threads);
  if (!tensor->strides.empty()) {
    return std::unique_ptr<MatrixSource>(std::make_unique<StridedMatrix>(tensor->weight(), tensor->strides));
  }
  return std::unique_ptr<MatrixSource>(std::make_unique<TensorMatrix>(tensor->weight(), use == WeightUse::kRead));
}

StatusOr<InputQuantization> WeightMap::inputs_of(std::string_view name, int64_t k) {
  if (impl_->pack_tag.has_value()) {
    const auto found = impl_->pack_tag->inputs.find(name);
    return found == impl_->pack_tag->inputs.end() ? InputQuantization() : found->second;
  }
  return impl_->rounds_inputs && is_quantized(name) ? impl_->reader->inputs_of(*this, name, k) : InputQuantization();
}

bool WeightMap::rounds_inputs() const { return impl_->rounds_inputs; }

void WeightMap::set_rounds_inputs(bool follows_checkpoint) { impl_->rounds_inputs = follows_checkpoint; }

const PackTag* WeightMap::pack_tag() const { return impl_->pack_tag.has_value() ? &*impl_->pack_tag : nullptr; }

StatusOr<std::span<const std::byte>> WeightMap::get_bytes(std::string_view name, std::string_view dtype,
                                                          std::span<const int64_t> shape, WeightUse use) {
  Impl::Tensor* tensor = impl_->find(name);
  if (tensor == nullptr) return impl_->missing(name);
  if (tensor->view.dtype != dtype) return tensor->error(str_cat("dtype ", tensor->view.dtype, ", expected ", dtype));
  RETURN_IF_ERROR(tensor->check_shape(shape));
  tensor->is_known = true;
  tensor->is_read |= use == WeightUse::kRead;
  tensor->gather(impl_->gathered, impl_->threads);
  return tensor->view.data;
}

StatusOr<std::vector<WeightMap::ReadMatrix>> WeightMap::read_matrices() {
  std::vector<ReadMatrix> list;
  for (const auto& [name, sides] : impl_->read_matrices) {
    ReadMatrix& one = list.emplace_back(ReadMatrix{name, nullptr});
    ASSIGN_OR_RETURN(one.source, impl_->reader->open(*this, name, sides.first, sides.second, WeightUse::kPacked));
  }
  return list;
}

std::vector<SafetensorsTensor> WeightMap::read_tensors() {
  std::vector<SafetensorsTensor> list;
  for (auto& [name, tensor] : impl_->tensors) {
    if (!tensor.is_read) continue;
    tensor.gather(impl_->gathered, impl_->threads);
    list.push_back(tensor.view);
  }
  return list;
}

namespace {

// The first bytes of a tensor whose elements do not lie in row-major order: of as many entries of its first axis as
// they reach into.
void gather_beginning(const SafetensorsTensor& view, std::span<const int64_t> strides, size_t max_bytes,
                      std::vector<std::byte>& bytes) {
  const auto width = static_cast<int64_t>(safetensors_dtype_bytes(view.dtype));
  std::vector<int64_t> shape = view.shape;
  shape[0] = 1;
  const int64_t entry_bytes = std::max<int64_t>(1, width * num_elements(shape).value());  // checked with the file
  shape[0] = std::min(view.shape[0], (static_cast<int64_t>(max_bytes) + entry_bytes - 1) / entry_bytes);
  bytes.resize(static_cast<size_t>(width * num_elements(shape).value()));
  gather(view.data, static_cast<size_t>(width), shape, strides, bytes, nullptr);
}

}  // namespace

void WeightMap::visit_samples(size_t max_bytes, FunctionRef<bool(std::string_view)> wanted,
                              FunctionRef<void(const Sample&)> take) const {
  std::vector<std::byte> gathered;
  for (const auto& [name, tensor] : impl_->tensors) {
    if (!wanted(name)) continue;
    std::span<const std::byte> bytes = tensor.view.data;
    if (!tensor.strides.empty()) {
      gather_beginning(tensor.view, tensor.strides, max_bytes, gathered);
      bytes = gathered;
    }
    take({name, tensor.view.dtype, tensor.view.shape, bytes.first(std::min(bytes.size(), max_bytes))});
  }
}

const std::string& WeightMap::source() const { return impl_->source; }

void WeightMap::ignore(std::string_view name) {
  if (Impl::Tensor* tensor = impl_->find(name); tensor != nullptr) tensor->is_known = true;
}

void WeightMap::ignore_where(FunctionRef<bool(std::string_view)> wanted) {
  for (auto& [name, tensor] : impl_->tensors) tensor.is_known |= wanted(name);
}

void WeightMap::ignore_below(std::string_view beginning) {
  for (const std::string& start : {std::string(beginning), str_cat(impl_->prefix, beginning)}) {
    for (auto at = impl_->tensors.lower_bound(start); at != impl_->tensors.end() && at->first.starts_with(start);
         ++at) {
      at->second.is_known = true;
    }
  }
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
