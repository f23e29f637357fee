// Any bytes as what a hub and a cache say: listings in their three forms, the index of shards, names, headers. Reading
// must end, and whatever is taken must keep inside a folder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hub/hub_url.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"
#include "hub/retry.h"
#include "hub/select_files.h"

namespace {

using namespace transept;

void require(bool holds) {
  if (!holds) std::abort();
}

bool stays_inside(const std::string& path) {
  return !path.empty() && path.front() != '/' && path != ".." && !path.starts_with("../") && !path.ends_with("/..") &&
         path.find("/../") == std::string::npos && path.find('\0') == std::string::npos;
}

void check_files(const StatusOr<std::vector<ListedFile>>& files) {
  if (!files.ok()) return;
  for (const ListedFile& file : *files) require(stays_inside(file.path) && file.content_size() >= 0);
  const std::string copy = tree_copy(*files);
  const auto again = parse_tree_copy(copy);
  require(again.ok() && tree_copy(*again) == copy);
}

void check_names(std::string_view text) {
  const std::string etag = normalized_etag(text);
  if (is_blob_name(etag)) require(etag.find('/') == std::string::npos && stays_inside(etag));
  if (has_repo_form(text)) {
    if (const auto name = parse_repo_name(text); name.ok()) {
      require(stays_inside(name->revision) && stays_inside(name->id));
    }
  }
  if (const auto target = redirect_target("https://host/a", text); target.ok()) {
    require(target->starts_with("https://") || target->starts_with("HTTPS://") ||
            url_origin(*target)->starts_with("https://"));
  }
  next_link(text);
  requested_wait({{"Retry-After", std::string(text)}, {"RateLimit", std::string(text)}}, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto info = parse_repo_info(text); info.ok()) {
    require(is_commit(info->commit));
    for (const std::string& path : info->paths) require(stays_inside(path));
    if (const auto selected = select_files(info->paths, ModelParts::kAll); selected.ok()) {
      for (const std::string& file : selected->small) require(is_plain_file_name(file));
    }
  }
  check_files(parse_tree_page(text));
  check_files(parse_tree_copy(text));
  if (const auto shards = parse_shards(text); shards.ok()) {
    for (const std::string& shard : *shards) require(is_plain_file_name(shard) && stays_inside(shard));
  }
  check_names(text);
  return 0;
}
