// A model's files from the hub into the cache: what it holds is asked for, what the engine reads of it is fetched, and
// the cache is as huggingface_hub.snapshot_download would leave it with those files for patterns. A function:
// thread-safe; several processes may fetch one model at a time.
#pragma once

#include <functional>
#include <string>

#include "hub/fetch_control.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"
#include "hub/select_files.h"

namespace transept {

struct FetchOptions {
  ModelParts parts = ModelParts::kAll;
  int num_workers = 8;  // files at once, as huggingface_hub
  int max_tries = 6;    // of a request, and of a body without a byte between them
  // Called with the snapshot's folder once its small files are there: an error ends the fetch before any weights come.
  std::function<Status(const std::string& folder)> accept;
  FetchControl::OnProgress on_progress;  // bytes; one call at a time, from any thread
};

struct FetchedModel {
  std::string commit;
  std::string snapshot;   // the folder
  int64_t num_bytes = 0;  // of files that the hub has sent
};

// Asks the hub what the revision is now, even if the cache has it. The ref is written when all files are there. Errors:
// settings.endpoint_error; those of HubClient, select_files and fetch_blob; accept()'s, as kUnimplemented;
// kInvalidArgument for a shard that the repository lacks; kResourceExhausted, before anything is fetched, if the disk
// has less room than the files take.
StatusOr<FetchedModel> fetch_model(const HubSettings& settings, const RepoName& repo, const FetchOptions& options);

}  // namespace transept
