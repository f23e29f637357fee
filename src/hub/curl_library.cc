#include "hub/curl_library.h"

#include <dlfcn.h>

namespace transept {
namespace {

constexpr const char* kName = "libcurl.so.4";
constexpr unsigned kLeastVersion = 0x075500;  // 7.85: CURLOPT_PROTOCOLS_STR

Status missing(std::string_view what) {
  return absl::NotFoundError(str_cat("models cannot be fetched: ", what,
                                     "; install it (Debian: libcurl4), or fetch the model on another machine"));
}

struct Loaded {
  CurlLibrary library;
  Status status;

  Loaded() { status = load(); }

  Status load() {
    void* const handle = ::dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) return missing(str_cat(kName, " cannot be loaded"));
#define TRANSEPT_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (library.name == nullptr) return missing(str_cat(kName, " has no ", #name));
    TRANSEPT_CURL_FUNCTIONS(TRANSEPT_FIND)
#undef TRANSEPT_FIND
    const curl_version_info_data* info = library.curl_version_info(CURLVERSION_NOW);
    if (info->version_num < kLeastVersion) return missing(str_cat("libcurl ", info->version, " is older than 7.85"));
    if (library.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return ok_status();
    return absl::InternalError("models cannot be fetched: libcurl cannot initialise itself");
  }
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Status load_curl() { return loaded().status; }

const CurlLibrary& curl_library() { return loaded().library; }

}  // namespace transept
