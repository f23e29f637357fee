// `transept generate --image`: a request for each picture, a JSON line for each result. Used by one thread.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "apps/found_files.h"
#include "apps/generate_job.h"

namespace transept {

// find_files() of pictures.
FoundFiles find_images(std::span<const std::string> arguments, bool recursive);

// Results of an earlier run, by the path that was their picture's. Rewrites `path` without what is no result: failures,
// which are tried again, and a line that was cut short. No such file: no results. Errors: the file is none of `generate
// --image`, or cannot be read or written; it is unchanged then.
StatusOr<std::set<std::string>> keep_image_results(const std::string& path);

class ImagesJob final : public GenerateJob {
 public:
  // `prompt`: the text beside every picture. `done`: paths that are left out.
  ImagesJob(FoundFiles files, std::optional<std::string> prompt, const std::set<std::string>& done,
            std::optional<Shard> shard);

  std::string_view unit() const override { return "images"; }
  std::optional<int64_t> total() const override { return static_cast<int64_t>(files_.inputs.size()); }

  // Errors: the model takes no images.
  Status begin(const LoadedModel& model) override;
  Next next(OrderedRun& run) override;

 private:
  FoundFiles files_;
  std::optional<std::string> prompt_;
};

}  // namespace transept
