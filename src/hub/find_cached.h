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
    kPartial,    // the listing names files that are missing or cut
    kComplete,
  };
  State state = State::kNone;
  std::string commit;
  std::string snapshot;              // the folder; set unless kNone
  std::vector<std::string> missing;  // names, for messages; of a file that was cut, also how much of it is there
  // kPartial: whether config.json and whole weights in some form are there, and nothing beside them was cut.
  bool may_run = false;
};

// Of `revision`, as refs have it. Files of a listing are compared by size, too (hub/whole_file.h).
CachedModel find_cached(const CacheRepo& repo, const std::string& revision, ModelParts parts);

// What messages say of a cache that has not all of a model: "does not have it", "lacks tokenizer.json of it".
std::string words_on_lack(const CachedModel& cached);

}  // namespace transept
