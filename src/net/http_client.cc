#include "net/http_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "net/http_chars.h"

namespace transept {
namespace {

constexpr size_t kMaxLineBytes = 64 << 10;
constexpr size_t kMaxHeaders = 256;
constexpr size_t kReadBytes = 64 << 10;
constexpr Duration kLook = std::chrono::milliseconds(100);  // Sink::is_wanted

// A number that is digits and nothing else.
template <typename Number>
std::optional<Number> parse_digits(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') return std::nullopt;
  return number;
}

bool is_control_or_space(char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; }

Status check_request(std::string_view path, const HttpHeaders& headers) {
  if (path.empty() || path.front() != '/' || std::any_of(path.begin(), path.end(), is_control_or_space)) {
    return invalid_argument("not a path: ", path);
  }
  for (const auto& [name, value] : headers) {
    if (!is_token(name) || !is_field_value(value)) return invalid_argument("not a header: ", name);
  }
  return ok_status();
}

Status not_http(std::string_view what) { return absl::DataLossError(str_cat("the answer is not HTTP: ", what)); }

Status not_wanted() { return absl::CancelledError("the answer is not wanted any more"); }

struct Head {
  int status = 0;
  bool is_http10 = false;
  HttpHeaders headers;
};

// How the end of a body is known.
struct Framing {
  bool is_chunked = false;
  std::optional<uint64_t> length;  // neither: the connection's end
  bool closes = false;
};

StatusOr<Framing> framing_of(const Head& head) {
  Framing framing;
  framing.closes = head.is_http10;
  for (const auto& [name, value] : head.headers) {
    if (equals_ignoring_case(name, "transfer-encoding")) {
      if (framing.is_chunked || !equals_ignoring_case(value, "chunked")) return not_http("transfer coding " + value);
      framing.is_chunked = true;
    } else if (equals_ignoring_case(name, "content-length")) {
      const std::optional<uint64_t> length = value.empty() ? std::nullopt : parse_digits<uint64_t>(value);
      if (!length.has_value() || framing.length.value_or(*length) != *length) return not_http("Content-Length");
      framing.length = length;
    } else if (equals_ignoring_case(name, "connection")) {
      for (const std::string_view token : split(value, ',')) {
        if (equals_ignoring_case(trim_spaces(token), "close")) framing.closes = true;
        if (equals_ignoring_case(trim_spaces(token), "keep-alive")) framing.closes = false;
      }
    }
  }
  if (framing.is_chunked && framing.length.has_value()) return not_http("Content-Length beside Transfer-Encoding");
  if (head.status == 204 || head.status == 304) return Framing{false, 0, framing.closes};
  if (!framing.is_chunked && !framing.length.has_value()) framing.closes = true;
  return framing;
}

Status read_status_line(std::string_view line, Head& head) {
  if (line.size() < 12 || line.substr(0, 7) != "HTTP/1." || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return not_http("its first line");
  }
  const std::optional<int> status = parse_digits<int>(line.substr(9, 3));
  if (!status.has_value() || *status < 100) return not_http("its status");
  head.status = *status;
  head.is_http10 = line[7] == '0';
  return ok_status();
}

}  // namespace

StatusOr<HttpUrl> HttpUrl::parse(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  const Status refused = invalid_argument("expected http://HOST[:PORT][/PATH], not ", text);
  if (!equals_ignoring_case(text.substr(0, kScheme.size()), kScheme)) {
    const bool is_tls = equals_ignoring_case(text.substr(0, 8), "https://");
    return is_tls ? unimplemented(text, ": TLS is a proxy's; http:// alone is spoken here") : refused;
  }
  text.remove_prefix(kScheme.size());
  HttpUrl url;
  const size_t slash = std::min(text.find_first_of("/?#"), text.size());
  std::string_view place = text.substr(0, slash);
  const std::string_view path = text.substr(slash);
  if (!path.empty()) url.path = path;
  if (!path.empty() && path.front() == '?') url.path.insert(0, "/");
  if (path.find('#') != std::string_view::npos || !check_request(url.path, {}).ok()) return refused;
  if (!place.empty() && place.front() == '[') {
    const size_t end = place.find(']');
    if (end == std::string_view::npos) return refused;
    url.host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
    if (url.host.find(':') == std::string::npos) return refused;
  } else {
    const size_t colon = std::min(place.find(':'), place.size());
    url.host = place.substr(0, colon);
    place.remove_prefix(colon);
  }
  if (url.host.empty() || std::any_of(url.host.begin(), url.host.end(), is_control_or_space) ||
      url.host.find('@') != std::string::npos)
    return refused;
  if (place.empty()) return url;
  const std::optional<uint16_t> port =
      place.front() == ':' && place.size() > 1 ? parse_digits<uint16_t>(place.substr(1)) : std::nullopt;
  if (port.value_or(0) == 0) return refused;
  url.port = *port;
  return url;
}

class HttpClient::Impl {
 public:
  using OnPiece = std::function<bool(std::string_view)>;

  Impl(std::string host, uint16_t port, const Options& options)
      : host_(std::move(host)), port_(port), options_(options) {}

  StatusOr<Reply> pass(std::string_view head, std::string_view body, const Sink& sink) {
    sink_ = &sink;
    StatusOr<Reply> reply = exchange(head, body, &sink.on_piece);
    sink_ = nullptr;
    return reply;
  }

  // `head` is the request's, complete. on_piece: null for answers that are wanted whole.
  StatusOr<Reply> exchange(std::string_view head, std::string_view body, const OnPiece* on_piece) {
    deadline_ = SteadyClock().now() + options_.timeout;
    const bool was_open = socket_.is_idle();
    StatusOr<Reply> reply = try_exchange(head, body, on_piece);
    if (was_open && absl::IsUnavailable(reply.status()) && !answer_began_) {
      // The server closed it between two requests.
      socket_.close();
      reply = try_exchange(head, body, on_piece);
    }
    if (!reply.ok()) socket_.close();
    return reply;
  }

  bool is_connected() const { return socket_.is_idle(); }

  std::string request_head(std::string_view method, std::string_view path, const HttpHeaders& headers) const {
    std::string head = str_cat(method, " ", path, " HTTP/1.1\r\n");
    if (find_header(headers, "Host") == nullptr) head += host_header();
    for (const auto& [name, value] : headers) head += str_cat(name, ": ", value, "\r\n");
    return head;
  }

 private:
  std::string host_header() const {
    const bool is_ipv6 = host_.find(':') != std::string::npos;
    const std::string port = port_ == 80 ? "" : str_cat(":", port_);
    return str_cat("Host: ", is_ipv6 ? "[" : "", host_, is_ipv6 ? "]" : "", port, "\r\n");
  }

  StatusOr<Reply> try_exchange(std::string_view head, std::string_view body, const OnPiece* on_piece) {
    answer_began_ = false;
    in_.clear();
    read_ = 0;
    if (!socket_.is_idle()) {
      const TimePoint connect_by = std::min(deadline_, SteadyClock().now() + options_.connect_timeout);
      RETURN_IF_ERROR(socket_.connect(host_, port_, connect_by));
    }
    ASSIGN_OR_RETURN(const bool was_sent, socket_.send(head, body, deadline_));
    Head answer;
    do {
      ASSIGN_OR_RETURN(answer, read_head());
      if (answer.status < 200 && !was_sent) return not_http("it came before the request was read");
      if (answer.status == 101) return switch_protocols(std::move(answer));
    } while (answer.status < 200);
    ASSIGN_OR_RETURN(const Framing framing, framing_of(answer));
    Reply reply{answer.status, std::move(answer.headers), {}};
    if (sink_ != nullptr && !sink_->on_head(reply.status, reply.headers)) return not_wanted();
    const bool is_passed_on = sink_ != nullptr || answer.status == 200;
    RETURN_IF_ERROR(read_body(framing, reply, is_passed_on ? on_piece : nullptr));
    if (framing.closes || !was_sent || read_ != in_.size()) socket_.close();
    return reply;
  }

  // What was asked for, and nothing else, is spoken from here on.
  StatusOr<Reply> switch_protocols(Head answer) {
    const std::string* const upgrade = find_header(answer.headers, "Upgrade");
    if (sink_ == nullptr || !sink_->on_upgrade || upgrade == nullptr || !equals_ignoring_case(*upgrade, "websocket")) {
      return not_http("it switches to a protocol that was not asked for");
    }
    sink_->on_upgrade(answer.headers, std::move(socket_), in_.substr(read_));
    return Reply{answer.status, std::move(answer.headers), {}};
  }

  // More bytes into in_. False: the connection's end.
  StatusOr<bool> fill() {
    if (read_ == in_.size()) {
      in_.clear();
      read_ = 0;
    }
    const size_t before = in_.size();
    in_.resize(before + kReadBytes);
    const StatusOr<size_t> num = read_some(std::span(in_).subspan(before));
    in_.resize(before + (num.ok() ? *num : 0));
    RETURN_IF_ERROR(num.status());
    answer_began_ |= *num > 0;
    return *num > 0;
  }

  StatusOr<size_t> read_some(std::span<char> to) {
    if (sink_ == nullptr) return socket_.read(to, deadline_);
    while (true) {
      const TimePoint look_at = SteadyClock().now() + kLook;
      StatusOr<size_t> num = socket_.read(to, std::min(deadline_, look_at));
      if (!absl::IsDeadlineExceeded(num.status()) || look_at >= deadline_) return num;
      if (!sink_->is_wanted()) return not_wanted();
    }
  }

  // Without its CRLF.
  StatusOr<std::string> read_line() {
    size_t searched = 0;
    while (true) {
      const size_t end = in_.find('\n', read_ + searched);
      if (end != std::string::npos) {
        if (end == read_ || in_[end - 1] != '\r') return not_http("a line ends without CR");
        std::string line = in_.substr(read_, end - 1 - read_);
        read_ = end + 1;
        return line;
      }
      searched = in_.size() - read_;
      if (searched > kMaxLineBytes) return not_http("a line is too long");
      ASSIGN_OR_RETURN(const bool is_more, fill());
      if (is_more) continue;
      if (!answer_began_) return absl::UnavailableError("the connection ended without an answer");
      return absl::DataLossError("the answer was cut short");
    }
  }

  StatusOr<Head> read_head() {
    Head head;
    ASSIGN_OR_RETURN(std::string line, read_line());
    RETURN_IF_ERROR(read_status_line(line, head));
    while (true) {
      ASSIGN_OR_RETURN(line, read_line());
      if (line.empty()) return head;
      const size_t colon = line.find(':');
      if (colon == std::string::npos || !is_token(std::string_view(line).substr(0, colon))) return not_http("a header");
      if (head.headers.size() == kMaxHeaders) return not_http("too many headers");
      head.headers.emplace_back(line.substr(0, colon), trim_spaces(std::string_view(line).substr(colon + 1)));
    }
  }

  Status take(std::string_view piece, Reply& reply, const OnPiece* on_piece) {
    taken_ += piece.size();
    if (taken_ > options_.max_body_bytes) {
      return resource_exhausted("the answer has more than ", options_.max_body_bytes, " bytes");
    }
    if (on_piece == nullptr) {
      reply.body += piece;
    } else if (!(*on_piece)(piece)) {
      return not_wanted();
    }
    return ok_status();
  }

  // `length` bytes (nullopt: to the connection's end), handed over as they come.
  Status read_bytes(std::optional<uint64_t> length, Reply& reply, const OnPiece* on_piece) {
    while (!length.has_value() || *length > 0) {
      if (read_ == in_.size()) {
        ASSIGN_OR_RETURN(const bool is_more, fill());
        if (!is_more) return length.has_value() ? absl::DataLossError("the answer was cut short") : ok_status();
      }
      const size_t have = in_.size() - read_;
      const size_t num = length.has_value() ? static_cast<size_t>(std::min<uint64_t>(*length, have)) : have;
      const std::string_view piece = std::string_view(in_).substr(read_, num);
      read_ += num;
      if (length.has_value()) *length -= num;
      RETURN_IF_ERROR(take(piece, reply, on_piece));
    }
    return ok_status();
  }

  Status read_chunks(Reply& reply, const OnPiece* on_piece) {
    while (true) {
      ASSIGN_OR_RETURN(const std::string line, read_line());
      const std::string_view digits = trim_spaces(std::string_view(line).substr(0, line.find(';')));
      const std::optional<uint64_t> size = digits.empty() ? std::nullopt : parse_digits<uint64_t>(digits, 16);
      if (!size.has_value()) return not_http("a chunk's size");
      if (*size == 0) break;
      RETURN_IF_ERROR(read_bytes(size, reply, on_piece));
      ASSIGN_OR_RETURN(const std::string end, read_line());
      if (!end.empty()) return not_http("a chunk is longer than its size");
    }
    for (size_t i = 0; i <= kMaxHeaders; ++i) {
      ASSIGN_OR_RETURN(const std::string trailer, read_line());
      if (trailer.empty()) return ok_status();
    }
    return not_http("too many trailers");
  }

  Status read_body(const Framing& framing, Reply& reply, const OnPiece* on_piece) {
    taken_ = 0;
    Status status = framing.is_chunked ? read_chunks(reply, on_piece) : read_bytes(framing.length, reply, on_piece);
    // A reset in the middle of a body is a body cut short.
    if (absl::IsUnavailable(status)) return absl::DataLossError(error_message(status));
    return status;
  }

  std::string host_;
  uint16_t port_;
  Options options_;
  ClientSocket socket_;
  TimePoint deadline_;
  std::string in_;    // what was read from the connection, and of it
  size_t read_ = 0;   // so much was taken
  size_t taken_ = 0;  // bytes of the body
  bool answer_began_ = false;
  const Sink* sink_ = nullptr;  // of pass()
};

HttpClient::HttpClient(std::string host, uint16_t port, const Options& options)
    : impl_(std::make_unique<Impl>(std::move(host), port, options)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;

bool HttpClient::is_connected() const { return impl_->is_connected(); }

StatusOr<HttpClient::Reply> HttpClient::get(std::string_view path, const HttpHeaders& headers) {
  RETURN_IF_ERROR(check_request(path, headers));
  return impl_->exchange(impl_->request_head("GET", path, headers) + "\r\n", "", nullptr);
}

namespace {

HttpHeaders with_body(const HttpHeaders& headers, std::string_view content_type, std::string_view body) {
  HttpHeaders all = {{"Content-Type", std::string(content_type)}, {"Content-Length", str_cat(body.size())}};
  all.insert(all.end(), headers.begin(), headers.end());
  return all;
}

}  // namespace

StatusOr<HttpClient::Reply> HttpClient::post(std::string_view path, std::string_view content_type,
                                             std::string_view body, const HttpHeaders& headers) {
  const HttpHeaders all = with_body(headers, content_type, body);
  RETURN_IF_ERROR(check_request(path, all));
  return impl_->exchange(impl_->request_head("POST", path, all) + "\r\n", body, nullptr);
}

Status HttpClient::pass(std::string_view method, std::string_view path, const HttpHeaders& headers,
                        std::string_view body, const Sink& sink) {
  HttpHeaders all = headers;
  if (!body.empty() || method == "POST") all.emplace_back("Content-Length", str_cat(body.size()));
  RETURN_IF_ERROR(check_request(path, all));
  return impl_->pass(impl_->request_head(method, path, all) + "\r\n", body, sink).status();
}

StatusOr<HttpClient::Reply> HttpClient::post_streamed(std::string_view path, std::string_view content_type,
                                                      std::string_view body,
                                                      const std::function<bool(std::string_view)>& on_piece,
                                                      const HttpHeaders& headers) {
  const HttpHeaders all = with_body(headers, content_type, body);
  RETURN_IF_ERROR(check_request(path, all));
  return impl_->exchange(impl_->request_head("POST", path, all) + "\r\n", body, &on_piece);
}

}  // namespace transept
