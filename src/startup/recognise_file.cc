#include "startup/recognise_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/ascii.h"
#include "base/input_file.h"
#include "base/little_endian.h"
#include "base/mmap_file.h"
#include "base/quoted.h"
#include "startup/recognise_beginning.h"
#include "weights/torch_file.h"
#include "weights/zip_directory.h"

namespace transept {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// ---- Whisper by its sizes

struct WhisperSizes {
  int64_t vocabulary = 0, audio_layers = 0, text_layers = 0, mels = 0;
};

// "" for sizes that are none of OpenAI's. large and large-v2 have the same.
std::string whisper_name(const WhisperSizes& sizes) {
  struct Row {
    int64_t audio_layers, text_layers, mels;
    std::string_view name;
    bool has_english;
  };
  constexpr Row kRows[] = {{4, 4, 80, "tiny", true},
                           {6, 6, 80, "base", true},
                           {12, 12, 80, "small", true},
                           {24, 24, 80, "medium", true},
                           {32, 32, 80, "large-v2", false},
                           {32, 32, 128, "large-v3", false},
                           {32, 4, 128, "large-v3-turbo", false}};
  for (const Row& row : kRows) {
    const bool is_row =
        sizes.audio_layers == row.audio_layers && sizes.text_layers == row.text_layers && sizes.mels == row.mels;
    if (!is_row || sizes.vocabulary < 51'864 || sizes.vocabulary > 51'866) continue;
    const bool is_english = sizes.vocabulary == 51'864;
    if (is_english && !row.has_english) return "";
    return str_cat("openai/whisper-", row.name, is_english ? ".en" : "");
  }
  return "";
}

// magic, n_vocab, n_audio_ctx, _state, _head, _layer, n_text_ctx, _state, _head, _layer, n_mels, ftype: int32 each.
std::optional<RecognisedFile> recognise_ggml(Bytes bytes) {
  constexpr int32_t kMagic = 0x67676d6c;
  std::array<int32_t, 12> header;
  if (bytes.size() < sizeof header) return std::nullopt;
  for (size_t i = 0; i < header.size(); ++i) header[i] = little_endian<int32_t>(bytes.data() + i * sizeof(int32_t));
  if (header[0] != kMagic) return std::nullopt;
  return RecognisedFile{FileKind::kWhisperCpp, "a model of whisper.cpp (ggml)",
                        whisper_name({header[1], header[5], header[9], header[10]})};
}

// ---- GGUF: magic, u32 version, u64 tensors, u64 pairs, then pairs of a string, u32 type, value

class GgufReader final {
 public:
  explicit GgufReader(Bytes bytes) : bytes_(bytes) {}

  // The strings of the general section, as far as the bytes go: keys before the first list.
  std::vector<std::pair<std::string_view, std::string_view>> strings() {
    std::vector<std::pair<std::string_view, std::string_view>> found;
    take(16);
    for (auto left = number<uint64_t>().value_or(0); left > 0; --left) {
      const std::optional<std::string_view> key = string();
      const std::optional<uint32_t> type = number<uint32_t>();
      if (!key.has_value() || !type.has_value() || *type >= kWidths.size()) break;
      if (*type == kString) {
        const std::optional<std::string_view> value = string();
        if (!value.has_value()) break;
        found.emplace_back(*key, *value);
      } else if (kWidths[*type] == 0 || !take(kWidths[*type]).has_value()) {
        break;  // a list: what says what the model is stands before it
      }
    }
    return found;
  }

 private:
  static constexpr uint32_t kString = 8;
  static constexpr std::array<size_t, 13> kWidths = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // of values, by type

  std::optional<Bytes> take(uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const Bytes taken = bytes_.first(static_cast<size_t>(size));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  std::optional<T> number() {
    const std::optional<Bytes> taken = take(sizeof(T));
    return taken.has_value() ? std::optional(little_endian<T>(taken->data())) : std::nullopt;
  }
  std::optional<std::string_view> string() {
    const std::optional<uint64_t> size = number<uint64_t>();
    const std::optional<Bytes> taken = size.has_value() ? take(*size) : std::nullopt;
    return taken.has_value() ? std::optional(text(*taken)) : std::nullopt;
  }

  Bytes bytes_;
};

// The last two parts of an address.
std::string hub_name(std::string_view address) {
  const std::vector<std::string_view> parts = split(address, '/');
  return parts.size() < 2 ? "" : str_cat(parts[parts.size() - 2], "/", parts.back());
}

std::optional<RecognisedFile> recognise_gguf(Bytes bytes) {
  if (!text(bytes).starts_with("GGUF")) return std::nullopt;
  RecognisedFile file{FileKind::kGguf, "a GGUF file (llama.cpp)", ""};
  for (const auto& [key, value] : GgufReader(bytes).strings()) {
    if (key == "general.architecture")
      file.what = str_cat("a GGUF file (llama.cpp) of architecture ", in_quotes(value));
    if (key == "general.base_model.0.repo_url") file.original = hub_name(value);
  }
  return file;
}

// ---- CTranslate2's model.bin: u32 version, then the name of a spec: u16 length, text with a 0 at its end

std::optional<RecognisedFile> recognise_ctranslate2(Bytes bytes) {
  constexpr uint32_t kMaxVersion = 100;
  constexpr size_t kHeader = 6;
  if (bytes.size() < kHeader) return std::nullopt;
  const auto version = little_endian<uint32_t>(bytes.data());
  const size_t size = little_endian<uint16_t>(bytes.data() + sizeof version);
  if (version == 0 || version > kMaxVersion || size < 5 || size > 100 || size > bytes.size() - kHeader) {
    return std::nullopt;
  }
  std::string_view spec = text(bytes.subspan(kHeader, size));
  if (spec.back() != '\0') return std::nullopt;
  spec.remove_suffix(1);
  const bool is_name = std::ranges::all_of(
      spec, [](char c) { return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'); });
  if (!is_name || !spec.ends_with("Spec")) return std::nullopt;
  return RecognisedFile{FileKind::kCTranslate2, str_cat("a model of CTranslate2 (", spec, ")"), ""};
}

// ---- Zip archives and the legacy form of torch.save

int64_t number_at(const TorchPickle& pickle, const PickleValue& dict, std::string_view key) {
  const PickleValue* value = pickle.find(dict, key);
  return value != nullptr && value->is(PickleKind::kInt) ? value->number() : 0;
}

constexpr std::string_view kObject = "/data.pkl";  // torch.save writes FOLDER/data.pkl

// Of the object in an archive; nullopt: it cannot be read.
std::optional<int> object_protocol(Bytes bytes) {
  const StatusOr<std::vector<ZipEntry>> entries = read_zip_directory(bytes);
  if (!entries.ok()) return std::nullopt;
  const auto object =
      std::ranges::find_if(*entries, [](const ZipEntry& entry) { return entry.name.ends_with(kObject); });
  return object == entries->end() ? std::nullopt : pickle_protocol(object->data);
}

RecognisedFile recognise_torch(Bytes bytes) {
  constexpr int kRead = 2;  // the protocol that torch.save takes unless it is told another
  const StatusOr<TorchPickle> pickle = parse_torch_object(bytes, "");
  if (!pickle.ok()) {
    if (const std::optional<int> protocol = object_protocol(bytes); protocol.value_or(kRead) != kRead) {
      return {FileKind::kPickle, str_cat("a file of torch.save with pickle_protocol=", *protocol), ""};
    }
    if (error_message(pickle.status()).find("TorchScript") != std::string::npos) {
      return {FileKind::kTorchScript, "a program of PyTorch (TorchScript)", ""};
    }
    return {FileKind::kTorch, "a file of torch.save", ""};
  }
  const PickleValue* dims = pickle->find(pickle->root(), "dims");
  if (dims == nullptr || pickle->find(pickle->root(), "model_state_dict") == nullptr) {
    return {FileKind::kTorch, "a file of torch.save", ""};
  }
  const WhisperSizes sizes = {number_at(*pickle, *dims, "n_vocab"), number_at(*pickle, *dims, "n_audio_layer"),
                              number_at(*pickle, *dims, "n_text_layer"), number_at(*pickle, *dims, "n_mels")};
  return {FileKind::kOpenAiWhisper, "a model of the openai-whisper package", whisper_name(sizes)};
}

// Scripts have constants.pkl beside the object. A directory that cannot be read (entries are
// compressed, say) is looked through for that name: the object is the first entry, and the directory is at the end.
bool has_torch_object(Bytes bytes) {
  constexpr size_t kFirst = size_t{1} << 20, kLast = size_t{16} << 20;
  const StatusOr<std::vector<ZipEntry>> entries = read_zip_directory(bytes);
  if (!entries.ok()) {
    const std::string_view first = text(bytes.first(std::min(bytes.size(), kFirst)));
    const std::string_view last = text(bytes.last(std::min(bytes.size(), kLast)));
    return first.find(kObject) != std::string_view::npos || last.find(kObject) != std::string_view::npos;
  }
  return std::ranges::any_of(*entries, [](const ZipEntry& entry) {
    return entry.name.ends_with(kObject) || entry.name.ends_with("/constants.pkl");
  });
}

std::optional<RecognisedFile> recognise_archive(Bytes bytes, std::string_view name) {
  if (!begins_as_torch_file(bytes)) return std::nullopt;
  if (name.ends_with(".ot")) return RecognisedFile{FileKind::kRust, "a model of rust-bert (.ot)", ""};
  constexpr size_t kLocalHeader = 30, kNameLength = 26;
  if (name.ends_with(".npz") && bytes.size() > kLocalHeader) {
    const size_t size = little_endian<uint16_t>(bytes.data() + kNameLength);
    if (text(bytes.subspan(kLocalHeader)).substr(0, size).ends_with(".npy")) {
      return RecognisedFile{FileKind::kNumpyArchive, "a model of Marian (.npz)", ""};
    }
  }
  if (begins_as_zip(bytes) && !has_torch_object(bytes)) {
    return RecognisedFile{FileKind::kArchive, "a zip archive, and none of torch.save", ""};
  }
  return recognise_torch(bytes);
}

}  // namespace

std::optional<RecognisedFile> recognise_bytes(std::span<const std::byte> bytes, std::string_view name) {
  std::optional<RecognisedFile> found = recognise_text(bytes);
  if (!found.has_value()) found = recognise_ggml(bytes);
  if (!found.has_value()) found = recognise_gguf(bytes);
  if (!found.has_value()) found = recognise_archive(bytes, name);
  if (!found.has_value()) found = recognise_ctranslate2(bytes);
  if (!found.has_value()) found = recognise_mark(bytes, name);
  return found;
}

std::optional<RecognisedFile> recognise_file(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const StatusOr<std::unique_ptr<InputFile>> file = InputFile::open(path);
  if (!file.ok()) return std::nullopt;
  std::vector<std::byte> head(std::min(kRecognisedBytes, (*file)->size()));
  if (!(*file)->read(0, head).ok()) return std::nullopt;
  if (!begins_as_torch_file(head)) return recognise_bytes(head, name);
  const StatusOr<std::unique_ptr<MmapFile>> whole = MmapFile::open(path);
  return whole.ok() ? recognise_bytes((*whole)->bytes(), name) : std::nullopt;
}

}  // namespace transept
