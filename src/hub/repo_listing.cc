#include "hub/repo_listing.h"

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "hub/repo_name.h"

namespace transept {
namespace {

constexpr int64_t kTreeFormat = 1;

StatusOr<Json> parse(std::string_view text) { return Json::parse(text, {.max_bytes = kMaxAnswerBytes}); }

StatusOr<std::string> text_field(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr || !value->is_string()) return invalid_argument(key, ": expected a string");
  return value->as_string();
}

StatusOr<int64_t> size_field(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (value == nullptr || !value->is_int() || value->as_int() < 0) return invalid_argument(key, ": expected a size");
  return value->as_int();
}

bool is_given(const Json* value) { return value != nullptr && !value->is_null(); }

// For the copy alone: nothing here fetches by it, so another form is no error.
std::optional<std::string> xet_field(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  const bool is_hash = value != nullptr && value->is_string() && is_sha256(value->as_string());
  return is_hash ? std::optional<std::string>(value->as_string()) : std::nullopt;
}

Status read_lfs(const std::string& sha256, int64_t size, ListedFile& file) {
  if (!is_sha256(sha256)) return invalid_argument("the SHA-256 of ", file.path, ": expected 64 hex digits");
  file.lfs_sha256 = sha256;
  file.lfs_size = size;
  return ok_status();
}

Status check_count(size_t count) {
  return count <= kMaxListedFiles
             ? ok_status()
             : invalid_argument("more than the ", kMaxListedFiles, " files allowed in a repository");
}

StatusOr<ListedFile> read_tree_entry(const Json& entry) {
  ListedFile file;
  ASSIGN_OR_RETURN(file.path, text_field(entry, "path"));
  RETURN_IF_ERROR(check_listed_path(file.path));
  ASSIGN_OR_RETURN(file.size, size_field(entry, "size"));
  ASSIGN_OR_RETURN(file.blob_id, text_field(entry, "oid"));
  if (const Json* lfs = entry.find("lfs"); is_given(lfs)) {
    ASSIGN_OR_RETURN(const std::string sha256, text_field(*lfs, "oid"));
    ASSIGN_OR_RETURN(const int64_t size, size_field(*lfs, "size"));
    RETURN_IF_ERROR(read_lfs(sha256, size, file));
  }
  file.xet_hash = xet_field(entry, "xetHash");
  return file;
}

StatusOr<ListedFile> read_copied_entry(const std::string& path, const Json& entry) {
  ListedFile file;
  file.path = path;
  RETURN_IF_ERROR(check_listed_path(path));
  ASSIGN_OR_RETURN(file.size, size_field(entry, "size"));
  ASSIGN_OR_RETURN(file.blob_id, text_field(entry, "blob_id"));
  if (is_given(entry.find("lfs_sha256"))) {
    ASSIGN_OR_RETURN(const std::string sha256, text_field(entry, "lfs_sha256"));
    ASSIGN_OR_RETURN(const int64_t size, size_field(entry, "lfs_size"));
    RETURN_IF_ERROR(read_lfs(sha256, size, file));
  }
  file.xet_hash = xet_field(entry, "xet_hash");
  return file;
}

// As Python's json writes strings: ASCII alone, UTF-16 escapes for the rest.
void append_ascii_json(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto escape = [&](uint32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 15];
  };
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = read_utf8(text.substr(at));
    const uint32_t c = step.kind == Utf8Step::Kind::kValid ? step.code_point : 0xFFFD;
    at += static_cast<size_t>(step.num_bytes);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c >= 0x10000) {
      escape(0xD800 + ((c - 0x10000) >> 10));
      escape(0xDC00 + ((c - 0x10000) & 0x3FF));
    } else if (c >= 0x7F || c < 0x20) {
      escape(c);
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

void append_member(std::string& out, std::string_view key, std::string_view value, bool is_first = false) {
  out += is_first ? "\n   " : ",\n   ";
  append_ascii_json(out, key);
  out += ": ";
  out += value;
}

std::string literal(std::string_view text) {
  std::string out;
  append_ascii_json(out, text);
  return out;
}

}  // namespace

StatusOr<RepoInfo> parse_repo_info(std::string_view json) {
  ASSIGN_OR_RETURN(const Json object, parse(json));
  RepoInfo info;
  ASSIGN_OR_RETURN(info.commit, text_field(object, "sha"));
  if (!is_commit(info.commit)) return invalid_argument("sha: expected a commit of 40 hex digits");
  const Json* siblings = object.find("siblings");
  if (!is_given(siblings)) return info;
  if (!siblings->is_array()) return invalid_argument("siblings: expected a list");
  RETURN_IF_ERROR(check_count(siblings->as_array().size()));
  for (const Json& sibling : siblings->as_array()) {
    ASSIGN_OR_RETURN(std::string path, text_field(sibling, "rfilename"));
    RETURN_IF_ERROR(check_listed_path(path));
    info.paths.push_back(std::move(path));
  }
  return info;
}

StatusOr<std::vector<ListedFile>> parse_tree_page(std::string_view json) {
  ASSIGN_OR_RETURN(const Json list, parse(json));
  if (!list.is_array()) return invalid_argument("expected a list of files");
  RETURN_IF_ERROR(check_count(list.as_array().size()));
  std::vector<ListedFile> files;
  for (const Json& entry : list.as_array()) {
    ASSIGN_OR_RETURN(const std::string type, text_field(entry, "type"));
    if (type != "file") continue;
    ASSIGN_OR_RETURN(ListedFile file, read_tree_entry(entry));
    files.push_back(std::move(file));
  }
  return files;
}

StatusOr<std::vector<ListedFile>> parse_tree_copy(std::string_view json) {
  ASSIGN_OR_RETURN(const Json object, parse(json));
  const Json* version = object.find("format_version");
  if (version == nullptr || !version->is_int() || version->as_int() != kTreeFormat) {
    return invalid_argument("format_version: expected ", kTreeFormat);
  }
  const Json* entries = object.find("files");
  if (entries == nullptr || !entries->is_object()) return invalid_argument("files: expected an object");
  RETURN_IF_ERROR(check_count(entries->as_object().size()));
  std::vector<ListedFile> files;
  for (const auto& [path, entry] : entries->as_object()) {
    ASSIGN_OR_RETURN(ListedFile file, read_copied_entry(path, entry));
    files.push_back(std::move(file));
  }
  return files;
}

std::string tree_copy(std::vector<ListedFile> files) {
  // Of a path that is listed twice, the last one counts, as in Python's dict.
  std::reverse(files.begin(), files.end());
  std::stable_sort(files.begin(), files.end(),
                   [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; });
  files.erase(std::unique(files.begin(), files.end(),
                          [](const ListedFile& a, const ListedFile& b) { return a.path == b.path; }),
              files.end());
  std::string out = str_cat("{\n \"format_version\": ", kTreeFormat, ",\n \"files\": {");
  for (size_t i = 0; i < files.size(); ++i) {
    const ListedFile& file = files[i];
    out += i == 0 ? "\n  " : ",\n  ";
    append_ascii_json(out, file.path);
    out += ": {";
    append_member(out, "size", str_cat(file.size), true);
    append_member(out, "blob_id", literal(file.blob_id));
    if (file.lfs_sha256.has_value()) {
      append_member(out, "lfs_sha256", literal(*file.lfs_sha256));
      append_member(out, "lfs_size", str_cat(*file.lfs_size));
    }
    if (file.xet_hash.has_value()) append_member(out, "xet_hash", literal(*file.xet_hash));
    out += "\n  }";
  }
  out += files.empty() ? "}\n}" : "\n }\n}";
  return out;
}

}  // namespace transept
