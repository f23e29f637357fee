// One file of a repository into the cache: resumed, checked, and put in its place whole. A function; each thread calls
// it with a client of its own.
#pragma once

#include <string>

#include "hub/cache_layout.h"
#include "hub/hub_client.h"

namespace transept {

struct FetchTask {
  std::string file;
  RemoteFile remote;
};

// Returns how many bytes of the blob still have to come: 0 if it is there, less than its size if a part can be resumed.
int64_t missing_bytes(const CacheRepo& cache, const FetchTask& task);

// Fetches the blob unless it is there, and links the commit's file to it. Holds the blob's lock meanwhile. Bytes come
// into ETAG.incomplete. A later call resumes it if the ETag is a SHA-256, which is checked at the end; other blobs are
// small and begin anew. The bytes are on the disk before the blob gets its name.
//
// Errors: HubClient's; kDataLoss (after two whole tries: another size or digest than the hub promised),
// kResourceExhausted (the disk is full), kInvalidArgument (a path that cannot be written), kCancelled.
Status fetch_blob(HubClient& client, const RepoName& repo, const CacheRepo& cache, const std::string& commit,
                  const FetchTask& task);

}  // namespace transept
