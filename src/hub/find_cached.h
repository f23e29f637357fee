// What the cache has of a model, found without the network (docs/decisions/0027-the-hub.md). Reads files, writes none:
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "hub/cache_layout.h"
#include "hub/select_files.h"

namespace transept {

struct CachedModel {
  enum class State {
    kNone,       // no config.json or no weights of the revision
    kUncertain,  // it may run, but files may be missing: there is no listing, and a file that most models have is
                 // absent
    kPartial,    // the listing names files that are missing
    kComplete,
  };
  State state = State::kNone;
  std::string commit;
  std::string snapshot;              // the folder; set unless kNone
  std::vector<std::string> missing;  // names, for messages
  // kPartial: whether config.json and whole weights in some form are there.
  bool may_run = false;
};

// Of `revision`, as refs have it. Weights of a listing are compared by size, too.
CachedModel find_cached(const CacheRepo& repo, const std::string& revision, ModelParts parts);

}  // namespace transept
