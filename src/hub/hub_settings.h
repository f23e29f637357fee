// What the environment says about the hub and its cache: the variables of huggingface_hub, with its defaults
// (constants.py of version 2.4). A variable that is set to "" is taken as not set. A value.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

struct HubSettings {
  std::string endpoint;    // HF_ENDPOINT, without a slash at its end; "" beside endpoint_error
  Status endpoint_error;   // why HF_ENDPOINT is no http or https URL: of what needs the network, and of nothing else
  std::string cache_dir;   // HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, ...
  std::string token;       // HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file HF_TOKEN_PATH ($HF_HOME/token); "": none
  std::string token_from;  // where it came from, for messages
  std::string ca_file;     // CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE or SSL_CERT_FILE; "": the system's
  std::string offline_by;  // what forbids the network: HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE, or a caller's; "": nothing
  bool is_quiet = false;   // HF_HUB_DISABLE_PROGRESS_BARS
  std::chrono::seconds head_timeout{10};   // HF_HUB_ETAG_TIMEOUT: of a request for metadata
  std::chrono::seconds stall_timeout{10};  // HF_HUB_DOWNLOAD_TIMEOUT: without a byte, and of connecting

  using Getter = std::function<std::optional<std::string>(const std::string& name)>;

  // Errors (kInvalidArgument), naming the variable: a timeout that is not 1 to 86400; a token with a space or control
  // character inside (the token is never shown).
  static StatusOr<HubSettings> from(const Getter& variable);
  static StatusOr<HubSettings> from_environment();

  // Sets token, without the ends of lines and spaces around it, and token_from. Errors: from()'s of a token.
  Status use_token(std::string_view text, const std::string& from);
  // Links and messages then hold for a process that stands elsewhere, too.
  void make_cache_dir_absolute();
};

// Replaces a leading "~" by the home folder, then $NAME and ${NAME} by variables; unknown ones stay.
std::string expanded_path(std::string path, const HubSettings::Getter& variable);

}  // namespace transept
