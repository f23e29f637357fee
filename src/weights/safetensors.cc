#include "weights/safetensors.h"

#include <algorithm>
#include <optional>

#include "base/checked_math.h"
#include "weights/json_scanner.h"

namespace transept {
namespace {

constexpr size_t kLengthBytes = 8;

// A header's entry before its offsets are believed.
struct Entry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

Status tensor_error(std::string_view file, std::string_view name, std::string_view reason) {
  constexpr size_t kShown = 200;  // a name may be as long as the header
  const std::string shown(name.size() > kShown ? str_cat(name.substr(0, kShown), "...") : std::string(name));
  return with_param(invalid_argument(file, ": tensor \"", shown, "\": ", reason), shown);
}

StatusOr<std::string_view> header_of(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return invalid_argument("only ", bytes.size(), " bytes: too short for a safetensors file");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  if (length > kMaxSafetensorsHeaderBytes) {
    return invalid_argument("a header of ", length, " bytes is over the ", kMaxSafetensorsHeaderBytes, " allowed");
  }
  if (length > bytes.size() - kLengthBytes) {
    return invalid_argument("the header of ", length, " bytes ends after the file of ", bytes.size());
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!header.starts_with('{')) return invalid_argument("the header does not begin with '{'");
  return header;
}

StatusOr<std::vector<int64_t>> read_integers(JsonScanner& json, size_t max_count, std::string_view what) {
  std::vector<int64_t> values;
  RETURN_IF_ERROR(json.expect('['));
  if (json.take(']')) return values;
  do {
    if (values.size() == max_count) return json.error(str_cat("more than ", max_count, " numbers in ", what));
    ASSIGN_OR_RETURN(const int64_t value, json.integer());
    values.push_back(value);
  } while (json.take(','));
  RETURN_IF_ERROR(json.expect(']'));
  return values;
}

// Reads the object after a tensor's name, member by member.
class EntryReader final {
 public:
  EntryReader(JsonScanner& json, Entry& entry) : json_(json), entry_(entry) {}

  Status read() {
    RETURN_IF_ERROR(json_.members([this](const std::string& key) { return read_member(key); }));
    if (!has_dtype_) return invalid_argument("dtype is missing");
    if (!has_shape_) return invalid_argument("shape is missing");
    if (!has_offsets_) return invalid_argument("data_offsets are missing");
    return ok_status();
  }

 private:
  Status read_member(const std::string& key) {
    if (key == "dtype") return read_once(key, has_dtype_, [this] { return read_dtype(); });
    if (key == "shape") return read_once(key, has_shape_, [this] { return read_shape(); });
    if (key == "data_offsets") return read_once(key, has_offsets_, [this] { return read_offsets(); });
    return json_.skip();
  }

  Status read_once(std::string_view key, bool& is_read, FunctionRef<Status()> read_value) {
    if (is_read) return json_.error(str_cat(key, " stands twice"));
    is_read = true;
    return read_value();
  }

  Status read_dtype() {
    ASSIGN_OR_RETURN(entry_.dtype, json_.string());
    return ok_status();
  }
  Status read_shape() {
    ASSIGN_OR_RETURN(entry_.shape, read_integers(json_, kMaxSafetensorsRank, "shape"));
    return ok_status();
  }
  Status read_offsets() {
    ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, read_integers(json_, 2, "data_offsets"));
    if (offsets.size() != 2) return json_.error("data_offsets are not two numbers");
    entry_.begin = offsets[0];
    entry_.end = offsets[1];
    return ok_status();
  }

  JsonScanner& json_;
  Entry& entry_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

// Other programs write here what they like; of that nothing is kept, and nothing is wrong.
Status read_metadata(JsonScanner& json, SafetensorsMetadata& metadata) {
  if (!json.next_is('{')) return json.skip();
  return json.members([&](std::string key) {
    if (!key.starts_with(kOwnMetadata)) return json.skip();
    ASSIGN_OR_RETURN(std::string value, json.string());
    if (metadata.size() == kMaxSafetensorsTensors) return json.error("too much metadata");
    const auto [place, is_new] = metadata.emplace(std::move(key), std::move(value));
    return is_new ? ok_status() : json.error(str_cat(place->first.substr(0, 200), " stands twice"));
  });
}

StatusOr<std::vector<Entry>> read_entries(std::string_view header, std::string_view file,
                                          SafetensorsMetadata* metadata) {
  std::vector<Entry> entries;
  JsonScanner json(header);
  Status refused;  // an error that names a tensor, and so needs no "header" before it
  const auto read_tensor = [&](std::string name) {
    if (name == "__metadata__") return metadata == nullptr ? json.skip() : read_metadata(json, *metadata);
    if (entries.size() == kMaxSafetensorsTensors) {
      return refused = invalid_argument(file, ": more than the ", kMaxSafetensorsTensors, " tensors allowed");
    }
    Entry& entry = entries.emplace_back();
    entry.name = std::move(name);
    const Status status = EntryReader(json, entry).read();
    return status.ok() ? status : refused = tensor_error(file, entry.name, error_message(status));
  };
  Status status = json.members(read_tensor);
  if (!refused.ok()) return refused;
  if (status.ok()) status = json.end();
  if (!status.ok()) return with_prefix(status, str_cat(file, ": header"));
  return entries;
}

// The size that dtype and shape demand is the size that the offsets span.
Status check_size(const Entry& entry, std::string_view file) {
  const int64_t element = safetensors_dtype_bytes(entry.dtype);
  if (element == 0) return tensor_error(file, entry.name, str_cat("dtype ", entry.dtype, " is not supported"));
  std::optional<int64_t> bytes = element;
  for (const int64_t dim : entry.shape) {
    if (bytes.has_value()) bytes = checked_mul(*bytes, dim);
  }
  // A zero after an overflow makes no tensor sensible either.
  if (!bytes.has_value()) {
    return tensor_error(file, entry.name, str_cat("shape ", shape_text(entry.shape), " is too large"));
  }
  if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
    return tensor_error(file, entry.name,
                        str_cat("data_offsets [", entry.begin, ", ", entry.end, "] are not the ", *bytes,
                                " bytes of shape ", shape_text(entry.shape), " in ", entry.dtype));
  }
  return ok_status();
}

Status check_unique(const std::vector<Entry>& entries, std::string_view file) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(&entry.name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto twice =
      std::adjacent_find(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a == *b; });
  return twice == names.end() ? ok_status() : tensor_error(file, **twice, "stands twice");
}

}  // namespace

StatusOr<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view file,
                                                           SafetensorsMetadata* metadata) {
  const StatusOr<std::string_view> header = header_of(bytes);
  if (!header.ok()) return with_prefix(header.status(), file);
  ASSIGN_OR_RETURN(std::vector<Entry> entries, read_entries(*header, file, metadata));
  RETURN_IF_ERROR(check_unique(entries, file));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });

  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header->size());
  const auto data_bytes = static_cast<int64_t>(data.size());
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(entries.size());
  int64_t offset = 0;
  for (Entry& entry : entries) {
    RETURN_IF_ERROR(check_size(entry, file));
    if (entry.begin != offset) {
      return tensor_error(file, entry.name,
                          str_cat("data begins at ", entry.begin, " and not at ", offset,
                                  ", where the tensor before it ends (a gap or an overlap)"));
    }
    if (entry.end > data_bytes) {
      return tensor_error(
          file, entry.name,
          str_cat("data ends at ", entry.end, ", after the ", data_bytes, " data bytes of the file (cut off?)"));
    }
    offset = entry.end;
    const auto begin = static_cast<size_t>(entry.begin);
    tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                       data.subspan(begin, static_cast<size_t>(entry.end) - begin)});
  }
  if (offset != data_bytes) {
    return invalid_argument(file, ": the tensors end at byte ", offset, " of ", data_bytes, " data bytes");
  }
  return tensors;
}

int64_t safetensors_dtype_bytes(std::string_view dtype) {
  struct Row {
    std::string_view name;
    int64_t bytes;
  };
  constexpr Row kRows[] = {{"F32", 4},     {"BF16", 2}, {"F16", 2}, {"F64", 8},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                           {"F8_E8M0", 1}, {"I64", 8},  {"I32", 4}, {"I16", 2},  {"I8", 1},      {"U64", 8},
                           {"U32", 4},     {"U16", 2},  {"U8", 1},  {"BOOL", 1}, {"C64", 8}};
  for (const Row& row : kRows) {
    if (row.name == dtype) return row.bytes;
  }
  return 0;
}

std::string_view safetensors_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "F32";
    case DType::kBFloat16: return "BF16";
    case DType::kFloat16: return "F16";
    case DType::kInt32: return "I32";
    case DType::kInt64: return "I64";
    case DType::kInt8: return "I8";
    case DType::kUInt8: return "U8";
  }
  return "";
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    append_to(text, shape[i]);
  }
  return text + "]";
}

}  // namespace transept
