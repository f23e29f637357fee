// Names on the hub: repositories, revisions, files and blobs. They come from the command line and from servers, and
// become parts of URLs and paths, so each is checked here before it is used. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

inline constexpr std::string_view kMainRevision = "main";

struct RepoName {
  std::string id;                       // "openai/whisper-tiny"
  std::string revision{kMainRevision};  // a branch, a tag or a commit

  std::string text() const;  // as on the command line: "openai/whisper-tiny", "openai/whisper-tiny@v1"
};

// Whether `text` has the form ORG/NAME or ORG/NAME@REVISION. A path with another number of slashes, or that begins with
// '.', '/' or '~', has not.
bool has_repo_form(std::string_view text);

// Whether a name ends as files of models do (.bin, .gguf, .npz, .onnx, .pt, .pth, .safetensors): then it is meant as a
// path, even if it has the form of a repository ("models/ggml-tiny.bin").
bool is_model_file_name(std::string_view text);

// REQUIRES: has_repo_form(text). `revision`, if not empty, is that of a flag. Errors (kInvalidArgument): an id or a
// revision that is refused; two revisions that differ.
StatusOr<RepoName> parse_repo_name(std::string_view text, std::string_view revision = {});

// The rules of huggingface_hub: parts of 1 to 96 letters, digits, '-', '_' and '.', not first or last '-' or '.'; no
// "--", no ".."; not ending in ".git".
Status check_repo_id(std::string_view id);

// 1 to 255 letters, digits and "._-/+=@#,"; no part between slashes is empty, begins with '.', or holds "..".
Status check_revision(std::string_view revision);

// A path in a listing. Refuses what could leave a folder: an absolute path; a part that is empty, "." or ".."; a
// control character; more than 1024 bytes.
Status check_listed_path(std::string_view path);

// Whether a file of this name may be fetched: 1 to 200 letters, digits, '.', '_' and '-', not first a '.'. Everything
// that a model needs lies in the repository's top folder under such names.
bool is_plain_file_name(std::string_view name);

bool is_commit(std::string_view text);  // 40 lower-case hex digits
bool is_sha256(std::string_view text);  // 64 lower-case hex digits

// The name of a blob by its ETag header, as huggingface_hub makes it: without a leading W/ and the quotes.
std::string normalized_etag(std::string_view header);
// 1 to 128 letters, digits, '.', '_' and '-', not first a '.', and not the name of a part of a blob (".incomplete").
bool is_blob_name(std::string_view etag);

}  // namespace transept
