#include "hub/transfer.h"

#include <pthread.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/check.h"
#include "hub/curl_library.h"
#include "hub/hub_url.h"

namespace transept {
namespace {

constexpr int64_t kBufferBytes = 512 * 1024;  // the most that libcurl takes
constexpr size_t kMaxHeaders = 256, kMaxHeaderBytes = size_t{64} << 10;

struct HeaderList {
  curl_slist* list = nullptr;
  ~HeaderList() { curl_library().curl_slist_free_all(list); }
  void add(const std::string& line) {
    curl_slist* longer = curl_library().curl_slist_append(list, line.c_str());
    CHECK(longer != nullptr);
    list = longer;
  }
};

// TLS writes to connections that the server may have closed. SIGPIPE, which would end the process, goes to the thread
// that writes: it is held back there, and taken away.
class NoPipeSignal final {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kNow{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &kNow) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

bool is_header_text(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  }
  return true;
}

Status status_of(CURLcode code, std::string_view host, const char* detail) {
  const std::string message = str_cat(host, ": ", *detail != 0 ? detail : curl_library().curl_easy_strerror(code));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM: return absl::FailedPreconditionError(message);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_FUNCTION_ARGUMENT: return absl::InvalidArgumentError(message);
    default: return absl::UnavailableError(message);
  }
}

}  // namespace

struct Transfer::Impl {
  CURL* curl = nullptr;
  std::array<char, CURL_ERROR_SIZE> detail{};
  // Of the transfer that runs.
  const Sink* sink = nullptr;
  Reply reply;
  size_t header_bytes = 0;
  Status status;

  ~Impl() { curl_library().curl_easy_cleanup(curl); }

  template <typename Value>
  void set(CURLoption option, Value value) {
    CHECK(curl_library().curl_easy_setopt(curl, option, value) == CURLE_OK);
  }

  // Of one line, with its end. A status line begins another answer: of a proxy, a 100 Continue, or the one that counts.
  static size_t on_header(const char* data, size_t size, size_t count, void* self) {
    Impl& impl = *static_cast<Impl*>(self);
    const std::string_view line = trim({data, size * count});
    impl.header_bytes += size * count;
    if (line.starts_with("HTTP/")) {
      impl.reply = {};
    } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
      if (impl.header_bytes > kMaxHeaderBytes || impl.reply.headers.size() == kMaxHeaders) {
        impl.status = absl::UnavailableError("the answer has too many headers");
        return 0;
      }
      impl.reply.headers.emplace_back(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
    }
    return size * count;
  }

  static size_t on_body(const char* data, size_t size, size_t count, void* self) {
    Impl& impl = *static_cast<Impl*>(self);
    impl.read_status();
    impl.status = (*impl.sink)(impl.reply, std::as_bytes(std::span(data, size * count)));
    return impl.status.ok() ? size * count : 0;
  }

  void read_status() {
    long code = 0;  // NOLINT(google-runtime-int): libcurl's type
    curl_library().curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    reply.status = static_cast<int>(code);
  }
};

Transfer::Transfer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transfer::~Transfer() = default;

StatusOr<std::string> Transfer::library() {
  RETURN_IF_ERROR(load_curl());
  return str_cat("libcurl ", curl_library().curl_version_info(CURLVERSION_NOW)->version);
}

std::string Transfer::default_certificates() {
  const curl_version_info_data* info = curl_library().curl_version_info(CURLVERSION_NOW);
  if (info->age < CURLVERSION_SEVENTH) return "";
  return info->cainfo != nullptr ? info->cainfo : info->capath != nullptr ? info->capath : "";
}

StatusOr<std::unique_ptr<Transfer>> Transfer::create(const Options& options) {
  RETURN_IF_ERROR(load_curl());
  auto impl = std::make_unique<Impl>();
  impl->curl = curl_library().curl_easy_init();
  if (impl->curl == nullptr) return resource_exhausted("libcurl has no memory for another transfer");
  impl->set(CURLOPT_ERRORBUFFER, impl->detail.data());
  impl->set(CURLOPT_PROTOCOLS_STR, "http,https");
  impl->set(CURLOPT_NOSIGNAL, 1L);
  impl->set(CURLOPT_NOPROGRESS, 1L);
  impl->set(CURLOPT_FOLLOWLOCATION, 0L);
  impl->set(CURLOPT_BUFFERSIZE, kBufferBytes);  // libcurl refuses it once there is a connection
  impl->set(CURLOPT_CONNECTTIMEOUT, static_cast<int64_t>(options.connect_timeout.count()));
  impl->set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  impl->set(CURLOPT_USERAGENT, options.user_agent.c_str());
  impl->set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!options.ca_file.empty()) impl->set(CURLOPT_CAINFO, options.ca_file.c_str());
  impl->set(CURLOPT_HEADERFUNCTION, &Impl::on_header);
  impl->set(CURLOPT_HEADERDATA, static_cast<void*>(impl.get()));
  impl->set(CURLOPT_WRITEFUNCTION, &Impl::on_body);
  impl->set(CURLOPT_WRITEDATA, static_cast<void*>(impl.get()));
  return std::unique_ptr<Transfer>(new Transfer(std::move(impl)));
}

StatusOr<Transfer::Reply> Transfer::run(const Request& request, Sink sink) {
  ASSIGN_OR_RETURN(const std::string origin, url_origin(request.url));
  HeaderList headers;
  for (const auto& [name, value] : request.headers) {
    if (!is_header_text(name) || !is_header_text(value)) {
      return invalid_argument("the header ", name, " holds a control character");
    }
    headers.add(str_cat(name, ": ", value));
  }
  Impl& impl = *impl_;
  impl.detail[0] = 0;
  impl.sink = &sink;
  impl.reply = {};
  impl.header_bytes = 0;
  impl.status = ok_status();
  impl.set(CURLOPT_URL, request.url.c_str());
  impl.set(request.is_head ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1L);  // each undoes the other
  impl.set(CURLOPT_HTTPHEADER, headers.list);
  impl.set(CURLOPT_LOW_SPEED_TIME, static_cast<int64_t>(request.stall_timeout.count()));
  const NoPipeSignal no_pipe_signal;
  const CURLcode code = curl_library().curl_easy_perform(impl.curl);
  impl.set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));  // the list ends here
  impl.read_status();
  RETURN_IF_ERROR(impl.status);
  if (code != CURLE_OK) return status_of(code, origin.substr(origin.find("//") + 2), impl.detail.data());
  return std::move(impl.reply);
}

}  // namespace transept
