#include "hub/curl_library.h"

namespace transept {
namespace {

constexpr unsigned kLeastVersion = 0x075500;  // 7.85: CURLOPT_PROTOCOLS_STR

Status missing_library(std::string_view what) {
  return not_found("models cannot be fetched: ", what,
                   "; install it (Debian: libcurl4), or fetch the model on another machine");
}

Status find_functions(CurlLibrary& functions) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::open("libcurl.so.4"));
  TRANSEPT_CURL_FUNCTIONS(TRANSEPT_FIND_FUNCTION)
  return ok_status();
}

Status load(CurlLibrary& functions) {
  if (const Status found = find_functions(functions); !found.ok()) return missing_library(error_message(found));
  const curl_version_info_data* info = functions.curl_version_info(CURLVERSION_NOW);
  if (info->version_num < kLeastVersion)
    return missing_library(str_cat("libcurl ", info->version, " is older than 7.85"));
  if (functions.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return ok_status();
  return absl::InternalError("models cannot be fetched: libcurl cannot initialise itself");
}

const LoadedOnce<CurlLibrary>& loaded() {
  static const LoadedOnce<CurlLibrary> loaded(load);
  return loaded;
}

}  // namespace

Status load_curl() { return loaded().status; }

const CurlLibrary& curl_library() { return loaded().functions; }

}  // namespace transept
