#include "apps/images_job.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "apps/ordered_run.h"

namespace transept {
namespace {

// Those that are decoded, and some that are not: an error is better than silence.
constexpr std::string_view kExtensions[] = {"jpg", "jpeg", "jpe",  "jfif", "png",  "apng", "webp", "gif",
                                            "bmp", "tif",  "tiff", "heic", "heif", "avif", "jp2",  "pdf"};
constexpr FileKind kImageFiles = {.noun = "image", .extensions = kExtensions};

// The id of a line that is a result; none: a failure.
StatusOr<std::optional<std::string>> result_id(const std::string& line) {
  ASSIGN_OR_RETURN(const Json json, Json::parse(line));
  const Json* id = json.is_object() ? json.find("id") : nullptr;
  if (id == nullptr || !id->is_string()) return invalid_argument("is no result of generate --image");
  if (json.find("error") != nullptr) return std::optional<std::string>();
  return std::optional<std::string>(id->as_string());
}

}  // namespace

FoundFiles find_images(std::span<const std::string> arguments, bool recursive) {
  return find_files(arguments, kImageFiles, recursive);
}

StatusOr<std::set<std::string>> keep_image_results(const std::string& path) {
  std::set<std::string> done;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return done;
  if (!std::filesystem::is_regular_file(path, error)) return invalid_argument(path, ": is no file");
  std::ifstream in(path, std::ios::binary);
  const std::string kept_path = path + ".part";
  std::ofstream out(kept_path, std::ios::binary | std::ios::trunc);
  Status status;
  std::string line;
  for (int64_t number = 1; status.ok() && std::getline(in, line); ++number) {
    if (in.eof()) break;  // no line end: it was cut short
    const StatusOr<std::optional<std::string>> id = result_id(line);
    if (!id.ok()) {
      status = with_prefix(id.status(), str_cat(path, ": line ", number));
    } else if (id->has_value() && done.insert(**id).second) {
      out << line << '\n';
    }
  }
  if (status.ok() && in.bad()) status = invalid_argument(path, ": cannot be read");
  out.close();
  if (status.ok() && out.fail()) status = invalid_argument(kept_path, ": cannot be written");
  if (status.ok() && std::rename(kept_path.c_str(), path.c_str()) != 0) {
    status = invalid_argument(path, ": ", std::strerror(errno));
  }
  if (!status.ok()) {
    std::filesystem::remove(kept_path, error);
    return status;
  }
  return done;
}

ImagesJob::ImagesJob(FoundFiles files, std::optional<std::string> prompt, const std::set<std::string>& done,
                     std::optional<Shard> shard)
    : GenerateJob(true, shard), files_(std::move(files)), prompt_(std::move(prompt)) {
  keep_shard(shard, files_.inputs);
  std::erase_if(files_.inputs, [&](const FoundFile& file) { return done.contains(file.path); });
}

Status ImagesJob::begin(const LoadedModel& model) {
  if (model.media->image() == nullptr) {
    return invalid_argument("--image: this model (", model.info.spec.family, ") takes no images");
  }
  return GenerateJob::begin(model);
}

Job::Next ImagesJob::next(OrderedRun& run) {
  const size_t index = run.num_added();
  if (index == files_.inputs.size()) return Next::kEnd;
  const FoundFile& file = files_.inputs[index];
  JobItem item = this->item(Json(file.path), file.index);
  if (!file.problem.ok()) {
    run.add_failure(std::move(item), file.problem);
    return Next::kAdded;
  }
  Json media = Json::object(), prompt = Json::object(), body = Json::object();
  media.set("image", file.path);
  if (prompt_.has_value()) prompt.set("prompt", *prompt_);
  prompt.set("multi_modal_data", std::move(media));
  body.set("prompt", std::move(prompt));
  run.add_request(body, std::move(item));
  return Next::kAdded;
}

}  // namespace transept
