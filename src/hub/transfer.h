// HTTP and HTTPS requests to a hub: the interface to libcurl, which no other file uses. One
// Transfer keeps one connection. Not thread-safe: each thread has its own. Proxies come from the environment as libcurl
// reads it (https_proxy, http_proxy, all_proxy, no_proxy).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "net/http.h"

namespace transept {

class Transfer final {
 public:
  struct Options {
    std::string user_agent;
    std::string ca_file;  // "": the system's certificates
    std::chrono::seconds connect_timeout{10};
  };
  struct Request {
    std::string url;  // http:// or https://
    bool is_head = false;
    HttpHeaders headers;
    std::chrono::seconds stall_timeout{10};  // longest time without a byte
  };
  struct Reply {
    int status = 0;
    HttpHeaders headers;  // those of this answer; none of a proxy's or of 1xx answers
  };
  // Takes the next bytes of a body; the reply's status and headers are complete. An error ends the transfer.
  using Sink = FunctionRef<Status(const Reply&, std::span<const std::byte>)>;

  // Loads what transfers need, and returns its name and version: "libcurl 7.88.1". Errors: load_curl's (kNotFound:
  // there is no libcurl).
  static StatusOr<std::string> library();
  // The file or folder of certificates that is trusted where Options::ca_file is "". "": libcurl does not say.
  // REQUIRES: library() has succeeded.
  static std::string default_certificates();

  // Errors: those of library().
  static StatusOr<std::unique_ptr<Transfer>> create(const Options& options);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sends one GET or HEAD and returns an answer of any status; redirects are not followed. Errors: the sink's; else
  // kUnavailable (no host, no connection, an answer that is cut or late: worth another try), kFailedPrecondition (TLS:
  // a certificate that is refused), kInvalidArgument (a malformed URL or header). Messages name the URL's host.
  StatusOr<Reply> run(const Request& request, Sink sink);

 private:
  struct Impl;
  explicit Transfer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept
