#include "hub/repo_name.h"

#include <algorithm>

#include "base/quoted.h"

namespace transept {
namespace {

constexpr size_t kMaxIdPart = 96, kMaxRevision = 255, kMaxListedPath = 1024, kMaxFileName = 200, kMaxBlobName = 128;

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool is_name_char(char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; }
bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool is_name(std::string_view text, size_t max_size) {
  return !text.empty() && text.size() <= max_size && std::all_of(text.begin(), text.end(), is_name_char);
}

std::string_view without_revision(std::string_view text) { return text.substr(0, text.find('@')); }

// Words of \b in huggingface_hub's pattern: '_' is a letter there.
bool is_edge(char c) { return is_alphanumeric(c) || c == '_'; }

}  // namespace

std::string RepoName::text() const { return revision == kMainRevision ? id : str_cat(id, "@", revision); }

bool has_repo_form(std::string_view text) {
  const std::vector<std::string_view> parts = split(without_revision(text), '/');
  return parts.size() == 2 && text.front() != '.' && is_name(parts[0], text.size()) && is_name(parts[1], text.size());
}

bool is_model_file_name(std::string_view text) {
  static constexpr std::string_view kEnds[] = {".bin", ".gguf", ".npz", ".onnx", ".pt", ".pth", ".safetensors"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return text.ends_with(end); });
}

StatusOr<RepoName> parse_repo_name(std::string_view text, std::string_view revision) {
  RepoName name;
  name.id = without_revision(text);
  RETURN_IF_ERROR(check_repo_id(name.id));
  if (!revision.empty()) name.revision = revision;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string_view own = text.substr(at + 1);
    if (!revision.empty() && own != revision) {
      return invalid_argument(in_quotes(text), ": names the revision ", in_quotes(own), ", and --revision is ",
                              in_quotes(revision));
    }
    name.revision = own;
  }
  RETURN_IF_ERROR(check_revision(name.revision));
  return name;
}

Status check_repo_id(std::string_view id) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument(in_quotes(id), " is no repository's name: ", why);
  };
  const std::vector<std::string_view> parts = split(id, '/');
  if (parts.size() != 2) return refused("expected ORG/NAME");
  for (const std::string_view part : parts) {
    if (!is_name(part, kMaxIdPart)) return refused("ORG and NAME are 1 to 96 letters, digits, '-', '_' and '.'");
    if (!is_edge(part.front()) || !is_edge(part.back())) return refused("'-' and '.' are neither first nor last");
  }
  if (id.find("--") != std::string_view::npos || id.find("..") != std::string_view::npos) {
    return refused("it holds \"--\" or \"..\"");
  }
  if (id.ends_with(".git")) return refused("it ends in .git");
  return ok_status();
}

Status check_revision(std::string_view revision) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument(in_quotes(revision), " is no revision's name: ", why);
  };
  if (revision.empty() || revision.size() > kMaxRevision) return refused("expected 1 to 255 characters");
  for (const char c : revision) {
    if (!is_name_char(c) && std::string_view("/+=@#,").find(c) == std::string_view::npos) {
      return refused("expected letters, digits and ._-/+=@#,");
    }
  }
  if (revision.find("..") != std::string_view::npos) return refused("it holds \"..\"");
  for (const std::string_view part : split(revision, '/')) {
    if (part.empty() || part.front() == '.') return refused("a part between slashes is empty or begins with '.'");
  }
  return ok_status();
}

Status check_listed_path(std::string_view path) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument("the repository lists ", in_quotes(path), ": ", why);
  };
  if (path.empty() || path.size() > kMaxListedPath) return refused("expected 1 to 1024 bytes");
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return refused("it holds a control character");
  }
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return refused("such a path could leave the folder");
  }
  return ok_status();
}

bool is_plain_file_name(std::string_view name) { return is_name(name, kMaxFileName) && name.front() != '.'; }

bool is_commit(std::string_view text) { return text.size() == 40 && std::all_of(text.begin(), text.end(), is_hex); }
bool is_sha256(std::string_view text) { return text.size() == 64 && std::all_of(text.begin(), text.end(), is_hex); }

std::string normalized_etag(std::string_view header) {
  const size_t begin = header.find_first_not_of("W/");
  std::string_view etag = begin == std::string_view::npos ? std::string_view() : header.substr(begin);
  while (etag.starts_with('"')) etag.remove_prefix(1);
  while (etag.ends_with('"')) etag.remove_suffix(1);
  return std::string(etag);
}

bool is_blob_name(std::string_view etag) {
  return is_name(etag, kMaxBlobName) && etag.front() != '.' && !etag.ends_with(".incomplete");
}

}  // namespace transept
