#include "weights/torch_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/checked_math.h"
#include "base/little_endian.h"
#include "base/quoted.h"
#include "weights/strides.h"
#include "weights/zip_directory.h"

namespace transept {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleKind;

// The first two pickles of the legacy form: 0x1950a86a20f9469cfc6c and 1001 in protocol 2.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr std::string_view kLegacyVersion("\x80\x02M\xe9\x03.", 6);

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A file taken apart: its object, and the bytes of its storages by key.
struct TorchParts {
  TorchPickle object;
  std::map<std::string_view, Bytes, std::less<>> storages;
};

// ---- The zip form

constexpr std::string_view kObjectEntry = "/data.pkl";

// The folder of all entries, without its slash.
StatusOr<std::string_view> archive_prefix(const std::vector<ZipEntry>& entries) {
  std::optional<std::string_view> prefix;
  for (const ZipEntry& entry : entries) {
    if (entry.name.ends_with("/constants.pkl")) {
      return invalid_argument("is a program (TorchScript), not a state dict; nothing of it is run");
    }
    if (!entry.name.ends_with(kObjectEntry)) continue;
    if (prefix.has_value()) return invalid_argument("has two objects, ", *prefix, kObjectEntry, " and ", entry.name);
    prefix = entry.name.substr(0, entry.name.size() - kObjectEntry.size());
  }
  if (!prefix.has_value()) return invalid_argument("is a zip archive without data.pkl, so not a file of torch.save");
  return *prefix;
}

StatusOr<TorchParts> read_archive(Bytes bytes) {
  ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, read_zip_directory(bytes));
  ASSIGN_OR_RETURN(const std::string_view prefix, archive_prefix(entries));
  const std::string object = str_cat(prefix, kObjectEntry), data = str_cat(prefix, "/data/");
  const std::string byte_order = str_cat(prefix, "/byteorder");
  TorchParts parts;
  for (const ZipEntry& entry : entries) {
    if (entry.name.starts_with(data)) parts.storages.emplace(entry.name.substr(data.size()), entry.data);
    if (entry.name == byte_order && text(entry.data) != "little") {
      return invalid_argument("byte order ", in_quotes(text(entry.data)), ", expected \"little\"");
    }
    if (entry.name != object) continue;
    StatusOr<TorchPickle> parsed = TorchPickle::parse(entry.data);
    if (!parsed.ok()) return with_prefix(parsed.status(), "data.pkl");
    if (parsed->num_bytes() != entry.data.size()) return invalid_argument("data.pkl: something follows the pickle");
    parts.object = *std::move(parsed);
  }
  return parts;
}

// ---- The legacy form

// Reads pickles one behind the other.
class LegacyReader final {
 public:
  explicit LegacyReader(Bytes bytes) : bytes_(bytes) {}

  // Fills all but the storages. The order of these in the file goes to `keys`.
  StatusOr<TorchPickle> read_object(TorchPickle& keys) {
    at_ = kLegacyMagic.size();
    if (!text(bytes_.subspan(at_)).starts_with(kLegacyVersion)) {
      return invalid_argument("protocol version at byte ", at_, ": expected 1001");
    }
    at_ += kLegacyVersion.size();
    ASSIGN_OR_RETURN(const TorchPickle system, read_pickle("sys_info"));
    const PickleValue* little = system.find(system.root(), "little_endian");
    if (little == nullptr || !little->is(Kind::kBool) || little->number() != 1) {
      return invalid_argument("sys_info: little_endian is not true");
    }
    ASSIGN_OR_RETURN(TorchPickle object, read_pickle("object"));
    ASSIGN_OR_RETURN(keys, read_pickle("storage keys"));
    if (!keys.root().is(Kind::kList)) return invalid_argument("storage keys are not a list");
    return object;
  }

  // Storages follow the keys: the number of elements in 8 bytes, then the elements. `widths`: bytes of an element.
  Status read_storages(const TorchPickle& keys, const std::map<std::string_view, int64_t, std::less<>>& widths,
                       std::map<std::string_view, Bytes, std::less<>>& storages) {
    for (const PickleValue& key : keys.items(keys.root())) {
      const auto width = widths.find(key.text());
      if (!key.is(Kind::kString) || width == widths.end()) {
        return invalid_argument("storage ", in_quotes(key.text()), " belongs to no tensor");
      }
      const Bytes left = bytes_.subspan(at_);
      if (left.size() < sizeof(int64_t)) return invalid_argument("storage ", in_quotes(key.text()), " is cut off");
      const auto count = little_endian<int64_t>(left.data());
      const std::optional<int64_t> size = checked_mul(count, width->second);
      if (count < 0 || !size.has_value() || static_cast<uint64_t>(*size) > left.size() - sizeof count) {
        return invalid_argument("storage ", in_quotes(key.text()), " at byte ", at_, ": ", count,
                                " elements end after the file (cut off?)");
      }
      const Bytes data = left.subspan(sizeof count, static_cast<size_t>(*size));
      if (!storages.emplace(key.text(), data).second) {
        return invalid_argument("storage ", in_quotes(key.text()), " stands twice");
      }
      at_ += sizeof count + data.size();
    }
    return ok_status();
  }

 private:
  StatusOr<TorchPickle> read_pickle(std::string_view what) {
    StatusOr<TorchPickle> pickle = TorchPickle::parse(bytes_.subspan(at_));
    if (!pickle.ok()) return with_prefix(pickle.status(), str_cat(what, " (a pickle at byte ", at_, ")"));
    at_ += pickle->num_bytes();
    return pickle;
  }

  Bytes bytes_;
  size_t at_ = 0;
};

// Calls `visit` with the name and the tensor of each entry that is one. Returns its first error.
template <typename Visit>
Status for_each_tensor(const TorchPickle& object, Visit visit) {
  const std::span<const PickleValue> items = object.items(object.root());
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i + 1].is(Kind::kTensor)) continue;
    if (!items[i].is(Kind::kString)) return invalid_argument("a tensor's name is not a string");
    RETURN_IF_ERROR(visit(items[i].text(), object.tensor(items[i + 1])));
  }
  return ok_status();
}

// A dict of tensors alone is a state dict. Anything else was saved by a training program.
Status check_state_dict(const TorchPickle& object) {
  if (!object.root().is(Kind::kDict)) return invalid_argument("the object is no dict of tensors");
  const std::span<const PickleValue> items = object.items(object.root());
  bool has_tensor = items.empty();
  std::string below;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    has_tensor |= items[i + 1].is(Kind::kTensor);
    if (below.empty() && items[i + 1].is(Kind::kDict)) below = in_quotes(items[i].text());
  }
  if (has_tensor) return ok_status();
  return invalid_argument(
      "the object has no tensors",
      below.empty() ? "" : str_cat("; a dict is below ", below, ": a training checkpoint? Save its state dict alone"));
}

StatusOr<TorchParts> read_legacy(Bytes bytes) {
  LegacyReader reader(bytes);
  TorchParts parts;
  TorchPickle keys;
  ASSIGN_OR_RETURN(parts.object, reader.read_object(keys));
  RETURN_IF_ERROR(check_state_dict(parts.object));
  std::map<std::string_view, int64_t, std::less<>> widths;
  for (const PickledStorage& storage : parts.object.storages()) {
    const int64_t width = safetensors_dtype_bytes(storage.dtype);
    if (widths.emplace(storage.key, width).first->second != width) {
      return invalid_argument("storage ", in_quotes(storage.key), " has two types");
    }
  }
  RETURN_IF_ERROR(reader.read_storages(keys, widths, parts.storages));
  return parts;
}

// ---- Tensors

// Elements [begin, end) of a storage, by bytes.
StatusOr<Bytes> storage_bytes(const TorchParts& parts, const PickledStorage& storage) {
  const auto found = parts.storages.find(storage.key);
  if (found == parts.storages.end()) return invalid_argument("storage ", in_quotes(storage.key), " is missing");
  const int64_t width = safetensors_dtype_bytes(storage.dtype);
  const std::optional<int64_t> size = checked_mul(storage.num_elements, width);
  if (!size.has_value() || static_cast<uint64_t>(*size) != found->second.size()) {
    return invalid_argument("storage ", in_quotes(storage.key), " has ", found->second.size(), " bytes, not ",
                            storage.num_elements, " elements of ", storage.dtype);
  }
  return found->second.subspan(static_cast<size_t>(storage.begin * width),
                               static_cast<size_t>((storage.end - storage.begin) * width));
}

StatusOr<StoredTensor> place_tensor(const TorchParts& parts, const PickledTensor& pickled, size_t file_bytes) {
  ASSIGN_OR_RETURN(const Bytes storage, storage_bytes(parts, pickled.storage));
  const int64_t width = safetensors_dtype_bytes(pickled.dtype);
  const std::optional<int64_t> span = strided_span(pickled.shape, pickled.strides);
  const std::optional<int64_t> elements = num_elements(pickled.shape);
  const std::optional<int64_t> bytes = elements.has_value() ? checked_mul(*elements, width) : std::nullopt;
  if (!span.has_value() || !bytes.has_value()) {
    return invalid_argument("shape ", shape_text(pickled.shape), " with strides ", shape_text(pickled.strides),
                            " is too large");
  }
  const auto storage_elements = static_cast<int64_t>(storage.size()) / width;
  if (pickled.offset > storage_elements || *span > storage_elements - pickled.offset) {
    return invalid_argument("shape ", shape_text(pickled.shape), " with strides ", shape_text(pickled.strides),
                            " from element ", pickled.offset, " on ends after the ", storage_elements,
                            " elements of its storage");
  }
  // Strides of 0 repeat elements, and could ask for any amount of memory.
  if (static_cast<uint64_t>(*bytes) > file_bytes) {
    return invalid_argument("shape ", shape_text(pickled.shape), " has more bytes than the file");
  }
  StoredTensor tensor;
  tensor.view.dtype = pickled.dtype;
  tensor.view.shape = pickled.shape;
  tensor.view.data = storage.subspan(static_cast<size_t>(pickled.offset * width), static_cast<size_t>(*span * width));
  if (!is_dense(pickled.shape, pickled.strides)) tensor.strides = pickled.strides;
  return tensor;
}

StatusOr<std::vector<StoredTensor>> place_tensors(const TorchParts& parts, size_t file_bytes) {
  RETURN_IF_ERROR(check_state_dict(parts.object));
  std::vector<StoredTensor> tensors;
  std::vector<std::string_view> names;
  RETURN_IF_ERROR(for_each_tensor(parts.object, [&](std::string_view name, const PickledTensor& pickled) {
    StatusOr<StoredTensor> tensor = place_tensor(parts, pickled, file_bytes);
    const std::string shown = in_quotes(name, 200);
    if (!tensor.ok()) return with_param(with_prefix(tensor.status(), str_cat("tensor ", shown)), name.substr(0, 200));
    tensor->view.name = name;
    tensors.push_back(*std::move(tensor));
    names.push_back(name);
    return ok_status();
  }));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) return invalid_argument("tensor ", in_quotes(*twice, 200), ": stands twice");
  return tensors;
}

bool begins_as_legacy(Bytes bytes) { return text(bytes).starts_with(kLegacyMagic); }

Status neither_form() {
  return invalid_argument("is no file of torch.save: neither a zip archive nor the form before torch 1.6");
}

}  // namespace

bool begins_as_torch_file(std::span<const std::byte> bytes) { return begins_as_zip(bytes) || begins_as_legacy(bytes); }

StatusOr<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> bytes, std::string_view file) {
  if (!begins_as_torch_file(bytes)) return with_prefix(neither_form(), file);
  const StatusOr<TorchParts> parts = begins_as_legacy(bytes) ? read_legacy(bytes) : read_archive(bytes);
  if (!parts.ok()) return with_prefix(parts.status(), file);
  StatusOr<std::vector<StoredTensor>> tensors = place_tensors(*parts, bytes.size());
  if (!tensors.ok()) return with_prefix(tensors.status(), file);
  return tensors;
}

StatusOr<TorchPickle> parse_torch_object(std::span<const std::byte> bytes, std::string_view file) {
  if (!begins_as_torch_file(bytes)) return with_prefix(neither_form(), file);
  if (begins_as_legacy(bytes)) {
    TorchPickle keys;
    StatusOr<TorchPickle> object = LegacyReader(bytes).read_object(keys);
    if (!object.ok()) return with_prefix(object.status(), file);
    return object;
  }
  StatusOr<TorchParts> parts = read_archive(bytes);
  if (!parts.ok()) return with_prefix(parts.status(), file);
  return std::move(parts->object);
}

}  // namespace transept
