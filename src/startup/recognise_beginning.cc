#include "startup/recognise_beginning.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"
#include "base/json.h"
#include "base/little_endian.h"
#include "base/quoted.h"
#include "base/utf8.h"
#include "weights/safetensors.h"

namespace transept {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

uint8_t byte_at(std::string_view head, size_t at) { return static_cast<uint8_t>(head[at]); }

bool has(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

bool begins_with(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && ascii_lower(text.substr(0, lower.size())) == lower;
}

// ---- Texts

// Whether all of it is UTF-8 without control characters but those of lines and colours. The last character may be cut.
bool is_text(std::string_view head) {
  constexpr size_t kLeast = 8;  // safetensors have no header before their ninth byte
  if (head.size() < kLeast) return false;
  for (size_t at = 0; at < head.size();) {
    const Utf8Step step = read_utf8(head.substr(at));
    if (step.kind == Utf8Step::Kind::kIncomplete && head.size() == kRecognisedBytes) return true;
    const bool is_space = has("\t\n\f\r\x1b", head[at]);
    const bool is_control = step.code_point < 0x20 || (step.code_point >= 0x7F && step.code_point < 0xA0);
    if (step.kind != Utf8Step::Kind::kValid || (is_control && !is_space)) return false;
    at += static_cast<size_t>(step.num_bytes);
  }
  return true;
}

bool is_web_page(std::string_view head) {
  constexpr size_t kPreface = 1024;  // of comments, or a line of XML
  if (begins_with(head, "<!doctype html") || begins_with(head, "<html")) return true;
  return head.starts_with('<') && ascii_lower(head.substr(0, kPreface)).find("<html") != std::string::npos;
}

// UTF-16 as bytes of ASCII, with '?' for every other character; "": it begins as none. A page has a mark of its byte
// order, or begins with '<'.
std::string narrow_utf16(std::string_view head) {
  constexpr size_t kPreface = 4096;
  const std::string_view begin = head.substr(0, 2);
  const bool is_big = begin == "\xFE\xFF" || begin == std::string_view("\0<", 2);
  if (!is_big && begin != "\xFF\xFE" && begin != std::string_view("<\0", 2)) return "";
  std::string out;
  for (size_t at = byte_at(head, 0) >= 0xFE ? 2 : 0; at + 1 < std::min(head.size(), kPreface); at += 2) {
    const char high = head[is_big ? at : at + 1], low = head[is_big ? at + 1 : at];
    out += high == '\0' ? low : '?';
  }
  return out;
}

// {"error": "..."}, {"error": {"message": "..."}}, {"message": "..."}, {"detail": "..."}, with what goes with these;
// "": it is none of them. A model's settings may have one such member, beside their own.
std::string error_in_json(std::string_view head) {
  constexpr std::string_view kMembers[] = {"error",   "message",   "Message",    "detail",   "details", "errors",
                                           "code",    "status",    "statusCode", "title",    "type",    "path",
                                           "success", "timestamp", "reason",     "requestId"};
  constexpr Json::ParseLimits kLimits = {.max_bytes = kRecognisedBytes, .max_depth = 8};
  if (!head.starts_with('{')) return "";
  const StatusOr<Json> json = Json::parse(head, kLimits);
  if (!json.ok()) return "";
  for (const auto& [name, value] : json->as_object()) {
    if (std::ranges::find(kMembers, name) == std::end(kMembers)) return "";
  }
  for (const char* key : {"error", "message", "Message", "detail"}) {
    const Json* value = json->find(key);
    if (value != nullptr && value->is_object()) value = value->find("message");
    if (value != nullptr && value->is_string() && !value->as_string().empty()) return value->as_string();
  }
  return "";
}

// What stores of objects answer: <?xml ..><Error><Code>..</Code><Message>..</Message></Error>.
std::string_view error_in_xml(std::string_view head) {
  constexpr std::string_view kBegin = "<Message>", kEnd = "</Message>";
  if (!head.starts_with('<') || head.find("<Error>") == std::string_view::npos) return "";
  const size_t begin = head.find(kBegin), end = head.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  return head.substr(begin + kBegin.size(), end - begin - kBegin.size());
}

// The line that a hub or a server answers instead of a file.
std::string_view error_in_line(std::string_view head) {
  constexpr size_t kMaxBytes = 4096;
  constexpr std::string_view kBeginnings[] = {
      "entry not found",  "repository not found", "revision not found", "not found",        "404: not found",
      "404 not found",    "404 page not found",   "access to model",    "access denied",    "401 unauthorized",
      "unauthorized",     "403 forbidden",        "forbidden",          "invalid username", "invalid credentials",
      "invalid user tok", "too many requests",    "rate limit",         "internal server",  "502 bad gateway",
      "bad gateway",      "service unavailable",  "503 service",        "gateway time",     "internal error"};
  if (head.size() > kMaxBytes) return "";
  const bool is_error = std::ranges::any_of(kBeginnings, [&](std::string_view one) { return begins_with(head, one); });
  return is_error ? head : "";
}

// The first line, cut.
std::string quoted_line(std::string_view text) {
  constexpr size_t kShown = 200;
  text = trim(text);
  return in_quotes(trim(text.substr(0, text.find('\n'))), kShown);
}

// ---- Marks

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// A header's length, then the header, which is JSON. Under its own name a file with a wrong length is one, too.
bool begins_as_safetensors(std::string_view head, std::string_view name) {
  if (head.size() <= sizeof(uint64_t) || head[8] != '{') return false;
  if (name.ends_with(".safetensors")) return true;
  const auto length = little_endian<uint64_t>(reinterpret_cast<const std::byte*>(head.data()));
  return length <= kMaxSafetensorsHeaderBytes && head.size() > 9 && has("\" }\n", head[9]);
}

// The method of an adapter, by the names of its tensors as peft, kohya's scripts and diffusers give them; "": the file
// is none.
std::string_view adapter_method(std::string_view head) {
  struct Row {
    std::string_view first, second, method;
  };
  constexpr Row kRows[] = {
      {".lora_A.", ".lora_B.", "LoRA"},     {".lora_embedding_A", ".lora_embedding_B", "LoRA"},
      {".lora_down.", ".lora_up.", "LoRA"}, {".lora.down.", ".lora.up.", "LoRA"},
      {".hada_w1_a", ".hada_w1_b", "LoHa"}, {".lokr_w1", ".lokr_w2", "LoKr"},
      {".ia3_l", ".ia3_l", "IA3"},          {"\"prompt_embeddings\"", "\"prompt_embeddings\"", "a prompt"}};
  const auto has_name = [&](std::string_view name) { return head.find(name) != std::string_view::npos; };
  for (const Row& row : kRows) {
    if (has_name(row.first) && has_name(row.second)) return row.method;
  }
  return "";
}

// What the file is packed with; "": with nothing.
std::string_view compression(std::string_view head) {
  constexpr size_t kGzipHeader = 10;
  constexpr std::string_view kXz(
      "\xFD"
      "7zXZ\0",
      6);
  // Method, flags, four bytes of time, and how hard it tried: 0, 2 or 4.
  const bool is_gzip = head.size() >= kGzipHeader && head.starts_with("\x1F\x8B\x08") && byte_at(head, 3) < 0x20;
  if (is_gzip && byte_at(head, 8) <= 4) return "gzip";
  if (head.starts_with("\x28\xB5\x2F\xFD")) return "zstd";
  if (head.starts_with(kXz)) return "xz";
  if (head.starts_with("BZh") && head.substr(0, 10).ends_with("1AY&SY")) return "bzip2";
  return "";
}

std::string_view archive(std::string_view head) {
  constexpr size_t kTarMagic = 257;
  if (head.size() > kTarMagic && head.substr(kTarMagic).starts_with("ustar")) return "a tar archive";
  if (head.starts_with("7z\xBC\xAF\x27\x1C")) return "a 7z archive";
  return "";
}

// 0x1950a86a20f9469cfc6c, with which the legacy form of torch.save begins.
constexpr std::string_view kTorchMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
constexpr std::string_view kTorchMagicInDigits = "L119547037146038801333356L\n.";

// Of protocols 2 to 5: a mark with the number, then an opcode.
bool has_pickle_mark(std::string_view head) {
  constexpr std::string_view kFirst = "\x95\x8a\x8c\x8e\x8f}]()cXUTVBCKMJGN\x88\x89";
  if (head.size() < 4 || head[0] != '\x80' || head[1] < 2 || head[1] > 5 || !has(kFirst, head[2])) return false;
  // The length of a safetensors header ends in zeros.
  return head.size() <= 8 || head.substr(3, 5) != std::string_view("\0\0\0\0\0", 5);
}

// What stands behind "cMODULE\nNAME\n", an opcode of every protocol; "": the pickle does not begin with it.
std::string_view behind_class(std::string_view head) {
  constexpr size_t kMaxName = 200;
  if (!head.starts_with('c')) return "";
  head.remove_prefix(1);
  for (int line = 0; line < 2; ++line) {
    const std::string_view name = head.substr(0, std::min(head.find('\n'), head.size()));
    const bool is_name = std::ranges::all_of(name, [](char c) {
      return c == '_' || c == '.' || (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z');
    });
    if (name.empty() || name.size() > kMaxName || !is_name || name.size() == head.size()) return "";
    head.remove_prefix(name.size() + 1);
  }
  return head;
}

// The first value of protocols 0 and 1 is put into the memo at once: by "p0\n", and by 'q' and a zero.
std::optional<int> unmarked_protocol(std::string_view head) {
  constexpr std::string_view kPut0 = "p0\n";
  constexpr std::string_view kPut1("q\0", 2);
  if (head.starts_with(kTorchMagicInDigits)) return 0;
  const std::string_view in_text =
      head.starts_with("(d") || head.starts_with("(l") ? head.substr(2) : behind_class(head);
  if (in_text.starts_with(kPut0)) return 0;
  const std::string_view in_bytes =
      head.starts_with('}') || head.starts_with(']') ? head.substr(1) : behind_class(head);
  // Zeros would be those of a length in eight bytes.
  const bool is_put = in_bytes.starts_with(kPut1) && in_bytes.size() > 2 && in_bytes[2] != '\0';
  return is_put ? std::optional(1) : std::nullopt;
}

std::optional<RecognisedFile> recognise_pickle(Bytes bytes) {
  constexpr size_t kFrame = 11;
  const std::string_view head = text(bytes);
  const std::optional<int> protocol = pickle_protocol(bytes);
  if (!protocol.has_value()) return std::nullopt;
  if (head.starts_with(kTorchMagicInDigits)) {
    return RecognisedFile{FileKind::kPickle, "a file of torch.save with a pickle_protocol below 2", ""};
  }
  const bool is_torch =
      head.substr(0, kFrame + kTorchMagic.size()).ends_with(kTorchMagic) || head.substr(2).starts_with(kTorchMagic);
  return RecognisedFile{FileKind::kPickle,
                        is_torch ? str_cat("a file of torch.save with pickle_protocol=", *protocol)
                                 : str_cat("a pickle of protocol ", *protocol, " that torch.save did not write"),
                        ""};
}

// Protocol Buffers: the version (field 1), then the name of the program that wrote it (2), or the graph (7), which
// begins with a node.
bool begins_as_onnx(std::string_view head) {
  constexpr uint8_t kMaxVersion = 63, kMaxName = 100;
  constexpr size_t kMaxLength = 10;  // bytes of a varint
  if (head.size() < 6 || head[0] != '\x08' || head[1] < 1 || byte_at(head, 1) > kMaxVersion) return false;
  const uint8_t size = byte_at(head, 3);
  if (head[2] == '\x12') return size > 0 && size <= kMaxName && is_ascii(head.substr(4, size));
  if (head[2] != '\x3A') return false;
  const std::string_view length = head.substr(3, kMaxLength);
  const auto last = std::ranges::find_if(length, [](char c) { return (c & '\x80') == 0; });
  const auto graph = static_cast<size_t>(last - length.begin()) + 4;
  return size != 0 && graph < head.size() && head[graph] == '\x0A';
}

bool is_map(uint8_t first) { return (first & 0xF0) == 0x80 || first == 0xDE || first == 0xDF; }

// MessagePack: a map; its first key is a name, and that key's value a map or an array of numpy (an extension).
bool begins_as_flax(std::string_view head) {
  if (head.empty() || head[0] == '\x80' || !is_map(byte_at(head, 0))) return false;
  const size_t count_bytes = head[0] == '\xDE' ? 2 : head[0] == '\xDF' ? 4 : 0;
  size_t at = 1 + count_bytes;
  if (at + 2 > head.size()) return false;
  const uint8_t first = byte_at(head, at++);
  size_t size = 0;
  if ((first & 0xE0) == 0xA0) {
    size = first & 0x1F;
  } else if (first == 0xD9) {
    size = byte_at(head, at++);
  }
  if (size == 0 || size >= head.size() - at || !is_ascii(head.substr(at, size))) return false;
  const uint8_t value = byte_at(head, at + size);
  return is_map(value) || (value >= 0xC7 && value <= 0xC9);
}

}  // namespace

std::optional<int> pickle_protocol(Bytes bytes) {
  const std::string_view head = text(bytes);
  return has_pickle_mark(head) ? std::optional<int>(byte_at(head, 1)) : unmarked_protocol(head);
}

std::optional<RecognisedFile> recognise_text(Bytes bytes) {
  std::string_view head = text(bytes.first(std::min(bytes.size(), kRecognisedBytes)));
  if (head.empty()) return RecognisedFile{FileKind::kEmpty, "an empty file", ""};
  if (head.starts_with("version https://git-lfs.github.com/spec/")) {
    return RecognisedFile{FileKind::kLfsPointer, "a pointer of git-lfs and not the file itself", ""};
  }
  const bool is_readable = is_text(head);
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  head = trim(head);
  if (is_web_page(head) || is_web_page(trim(narrow_utf16(head)))) {
    return RecognisedFile{FileKind::kWebPage, "a web page (HTML) and not the file itself", ""};
  }
  if (!is_readable || pickle_protocol(bytes).has_value()) return std::nullopt;
  std::string error = error_in_json(head);
  if (error.empty()) error = error_in_xml(head);
  if (error.empty()) error = error_in_line(head);
  if (!error.empty()) {
    return RecognisedFile{FileKind::kErrorReply,
                          str_cat("a server's error and not the file itself: ", quoted_line(error)), ""};
  }
  return RecognisedFile{FileKind::kText, str_cat("a text and not the file itself: ", quoted_line(head)), ""};
}

std::optional<RecognisedFile> recognise_mark(Bytes bytes, std::string_view name) {
  const std::string_view head = text(bytes.first(std::min(bytes.size(), kRecognisedBytes)));
  if (begins_as_safetensors(head, name)) {
    if (const std::string_view method = adapter_method(head); !method.empty()) {
      return RecognisedFile{FileKind::kAdapter, str_cat("an adapter (", method, "), not a model"), ""};
    }
    return RecognisedFile{FileKind::kSafetensors, "a file of safetensors", ""};
  }
  if (head.starts_with("\x89HDF\r\n\x1a\n")) return RecognisedFile{FileKind::kHdf5, "a TensorFlow model (HDF5)", ""};
  if (const std::string_view packer = compression(head); !packer.empty()) {
    return RecognisedFile{FileKind::kCompressed, str_cat("a file compressed with ", packer), ""};
  }
  if (const std::string_view form = archive(head); !form.empty()) {
    return RecognisedFile{FileKind::kArchive, std::string(form), ""};
  }
  if (std::optional<RecognisedFile> pickle = recognise_pickle(std::as_bytes(std::span(head)))) return pickle;
  const bool is_message = head.starts_with('\x08');
  if (is_message && name == "saved_model.pb") {
    return RecognisedFile{FileKind::kSavedModel, "a TensorFlow model (SavedModel)", ""};
  }
  if ((is_message && name.ends_with(".onnx")) || begins_as_onnx(head)) {
    return RecognisedFile{FileKind::kOnnx, "a graph in ONNX", ""};
  }
  const bool is_named_map = name.ends_with(".msgpack") && !head.empty() && is_map(byte_at(head, 0));
  if (is_named_map || begins_as_flax(head)) return RecognisedFile{FileKind::kFlax, "a Flax model (MessagePack)", ""};
  return std::nullopt;
}

}  // namespace transept
