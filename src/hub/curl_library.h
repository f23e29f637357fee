// Loads libcurl when the first model is fetched, not at program start: with its dependencies (28 libraries in Debian's
// build) it costs every start 4 ms, and most runs fetch nothing. Of transfer.cc alone. Thread-safe. The library stays
// loaded until the process ends.
#pragma once

#define CURL_DISABLE_TYPECHECK  // macros in the place of functions, which the members below could not have as names
#include <curl/curl.h>

#include "base/dynamic_library.h"
#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_CURL_FUNCTIONS(X) \
  X(curl_easy_cleanup) \
  X(curl_easy_getinfo) \
  X(curl_easy_init) \
  X(curl_easy_perform) \
  X(curl_easy_setopt) \
  X(curl_easy_strerror) \
  X(curl_global_init) \
  X(curl_slist_append) \
  X(curl_slist_free_all) \
  X(curl_version_info)
// clang-format on

namespace transept {

struct CurlLibrary {
  TRANSEPT_CURL_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER)
};

// Loads and initialises the library once; later calls return the same status. Errors: kNotFound for a library that is
// missing, older than 7.85, or lacks a function; kInternal if it cannot initialise itself.
Status load_curl();

// REQUIRES: load_curl() has succeeded.
const CurlLibrary& curl_library();

}  // namespace transept
