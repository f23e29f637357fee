#include "net/http_request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace transept {
namespace {

using State = HttpRequestParser::State;

constexpr HttpRequestParser::Limits kLimits{.max_request_line_bytes = 40, .max_header_bytes = 100, .max_headers = 4};
constexpr size_t kMaxBodyBytes = 20;

struct Outcome {
  State state;
  HttpHead head;
  std::string body, rest;
  HttpError error;
};

Outcome parse(std::string_view bytes, size_t piece_bytes) {
  HttpRequestParser parser(kLimits);
  std::string rest;
  for (size_t i = 0; i < bytes.size(); i += piece_bytes) {
    std::string_view piece = bytes.substr(i, piece_bytes);
    piece.remove_prefix(parser.feed(piece));
    if (parser.state() == State::kHeadDone) {
      parser.read_body(kMaxBodyBytes);
      piece.remove_prefix(parser.feed(piece));
    }
    rest.append(piece);
  }
  return {parser.state(), parser.head(), parser.take_body(), rest, parser.error()};
}

// However the bytes are cut, it is the same request.
Outcome parse(std::string_view bytes) {
  Outcome whole = parse(bytes, bytes.size());
  for (size_t piece = 1; piece < bytes.size(); ++piece) {
    const Outcome cut = parse(bytes, piece);
    EXPECT_EQ(cut.state, whole.state) << bytes;
    EXPECT_EQ(cut.error.reason, whole.error.reason) << bytes;
    EXPECT_EQ(cut.error.status, whole.error.status) << bytes;
    EXPECT_EQ(cut.body, whole.body) << bytes;
    EXPECT_EQ(cut.head.request.headers, whole.head.request.headers);
    EXPECT_TRUE(whole.state != State::kComplete || cut.rest == whole.rest) << bytes;
  }
  return whole;
}

std::string error_of(std::string_view bytes) {
  const Outcome outcome = parse(bytes);
  return outcome.state == State::kFailed ? str_cat(outcome.error.status, ' ', outcome.error.reason)
                                         : str_cat("no error, state ", static_cast<int>(outcome.state));
}

std::string with_headers(std::string_view headers) {
  return str_cat("POST /a HTTP/1.1\r\nHost: a\r\n", headers, "\r\n");
}

std::string chunked(std::string_view body) {
  return with_headers("Transfer-Encoding: chunked\r\n") + std::string(body);
}

TEST(HttpRequestParserTest, ReadsARequestAndNothingBehindIt) {
  const Outcome got =
      parse("POST /a%20b?c=%20 HTTP/1.1\r\nHost: a:80\r\nX: \t b c \r\nContent-Length: 3\r\n\r\nabcGET /");
  ASSERT_EQ(got.state, State::kComplete) << got.error.reason;
  EXPECT_EQ(got.head.request.method, "POST");
  EXPECT_EQ(got.head.request.path, "/a b");
  EXPECT_EQ(got.head.request.query, "c=%20");
  EXPECT_EQ(got.head.request.headers, (HttpHeaders{{"Host", "a:80"}, {"X", "b c"}, {"Content-Length", "3"}}));
  EXPECT_TRUE(got.head.keep_alive);
  EXPECT_EQ(got.body, "abc");
  EXPECT_EQ(got.rest, "GET /");
}

TEST(HttpRequestParserTest, ReadsChunks) {
  const Outcome got = parse(chunked("3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET"));
  ASSERT_EQ(got.state, State::kComplete) << got.error.reason;
  EXPECT_EQ(got.body, "abc0123456789");
  EXPECT_EQ(got.rest, "GET");
  EXPECT_EQ(find_header(got.head.request.headers, "Trailer"), nullptr);
  EXPECT_EQ(parse(chunked("0\r\n\r\n")).state, State::kComplete);
}

// RFC 9112, 11.2: two programs must not see two requests in the same bytes.
TEST(HttpRequestParserTest, RefusesSmuggling) {
  const std::pair<std::string, std::string> cases[] = {
      {with_headers("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "400 both Content-Length and"},
      {with_headers("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), "400 both Content-Length and"},
      {with_headers("Content-Length: 3\r\nContent-Length: 3\r\n"), "400 more than one Content-Length"},
      {with_headers("Content-Length: 3, 3\r\n"), "400 the Content-Length is not"},
      {with_headers("Content-Length: +3\r\n"), "400 the Content-Length is not"},
      {with_headers("Content-Length: -3\r\n"), "400 the Content-Length is not"},
      {with_headers("Content-Length: 0x3\r\n"), "400 the Content-Length is not"},
      {with_headers("Content-Length: 3 3\r\n"), "400 the Content-Length is not"},
      {with_headers("Content-Length:\r\n"), "400 the Content-Length is not"},
      {with_headers("Transfer-Encoding: identity\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding:\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: xchunked\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: chunked;a=b\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: \"chunked\"\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: chunked, gzip\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: chunked, chunked\r\n"), "400 the Transfer-Encoding is not"},
      {with_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), "400 the Transfer-Encoding"},
      {with_headers("Transfer-Encoding: \vchunked\r\n"), "400 a header's value"},
      {with_headers("Transfer-Encoding: gzip, chunked\r\n"), "501 no other Transfer-Encoding"},
      {with_headers("Transfer-Encoding : chunked\r\n"), "400 a header's name"},
      {with_headers("Content-Length\t: 3\r\n"), "400 a header's name"},
      {with_headers(" Content-Length: 3\r\n"), "400 a header is folded"},
      {with_headers("X: a\r\n\tb\r\n"), "400 a header is folded"},
      {with_headers("No colon\r\n"), "400 a header has no colon"},
      {with_headers(": x\r\n"), "400 a header's name"},
      {with_headers(std::string("X: a\0b\r\n", 8)), "400 a header's value"},
      {with_headers("X: a\rContent-Length: 3\r\n"), "400 CR inside a line"},
      {with_headers("X: a\nContent-Length: 3\r\n"), "400 a line ends with LF alone"},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", "400 a line ends with LF alone"},
      {"GET / HTTP/1.1\r\nHost: a\n\n", "400 a line ends with LF alone"},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", "400 a line ends with LF alone"},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "400 CR inside a line"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 Transfer-Encoding in an HTTP/1.0"},
      {"GET / HTTP/1.1\r\n\r\n", "400 the Host header is missing"},
      {with_headers("HOST: a\r\n"), "400 more than one Host"},
      {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "400 the Host header is malformed"},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400 the Host header is malformed"},
      {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "400 the Host header is malformed"},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 the Host header is malformed"},
  };
  for (const auto& [bytes, error] : cases) EXPECT_THAT(error_of(bytes), ::testing::StartsWith(error)) << bytes;
}

TEST(HttpRequestParserTest, RefusesMalformedChunks) {
  for (const char* size : {"", " 1", "1 ", "0x1", "+1", "-1", "g", "1;\x01", "1 ;a", "1\t", "_1", "1,1",
                           "0000000000000001", "fffffffffffffffff", "1.0"}) {
    EXPECT_EQ(error_of(chunked(str_cat(size, "\r\na\r\n0\r\n\r\n"))), "400 a chunk's size is malformed") << size;
  }
  EXPECT_EQ(error_of(chunked("1;" + std::string(300, 'x'))), "400 the line of a chunk's size is too long");
  EXPECT_EQ(error_of(chunked("1\na\r\n0\r\n\r\n")), "400 a line ends with LF alone");
  EXPECT_EQ(error_of(chunked("1\r\na\n0\r\n\r\n")), "400 a line ends with LF alone");
  EXPECT_EQ(error_of(chunked("1\r\nab\r\n0\r\n\r\n")), "400 a chunk is longer than its size");
  EXPECT_EQ(error_of(chunked("1\r\na0\r\n\r\n")), "400 a chunk is longer than its size");
  EXPECT_EQ(error_of(chunked("0\r\nTrailer : x\r\n\r\n")), "400 a header's name is malformed");
  EXPECT_EQ(error_of(chunked("0\r\n\n")), "400 a line ends with LF alone");
}

TEST(HttpRequestParserTest, RefusesMalformedRequestLines) {
  for (const char* line : {"GET /",
                           "GET  / HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           " GET / HTTP/1.1",
                           "GET / HTTP/1.1 x",
                           "GET\t/ HTTP/1.1",
                           "G@T / HTTP/1.1",
                           "/ HTTP/1.1",
                           "GET / http/1.1",
                           "GET / HTTP/1",
                           "GET / HTTP/1.10",
                           "GET / HTTP/a.1",
                           "GET /\x7F HTTP/1.1",
                           "GET /\xC3\xA9 HTTP/1.1",
                           "GET /# HTTP/1.1",
                           "GET * HTTP/1.1",
                           "CONNECT a:80 HTTP/1.1",
                           "GET a HTTP/1.1",
                           "GET ftp://a/ HTTP/1.1",
                           "GET http:// HTTP/1.1",
                           "GET http://u@a/ HTTP/1.1",
                           "GET /% HTTP/1.1",
                           "GET /%0a HTTP/1.1",
                           "GET /%00 HTTP/1.1",
                           "GET /%ff HTTP/1.1"}) {
    EXPECT_THAT(error_of(str_cat(line, "\r\nHost: a\r\n\r\n")), ::testing::StartsWith("400 ")) << line;
  }
  EXPECT_THAT(error_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ::testing::StartsWith("505 "));
  EXPECT_THAT(error_of("GET / HTTP/0.9\r\n\r\n"), ::testing::StartsWith("505 "));
  // What is not HTTP at all is told at its first byte.
  EXPECT_EQ(error_of("\x16\x03\x01"), "400 this is not an HTTP request");
}

TEST(HttpRequestParserTest, OneEmptyLineBeforeARequestIsPassedOver) {
  HttpRequestParser parser(kLimits);
  EXPECT_EQ(parser.feed("\r\n"), 2);
  EXPECT_FALSE(parser.has_begun());
  parser.feed("G");
  EXPECT_TRUE(parser.has_begun());
  EXPECT_EQ(parse("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").state, State::kComplete);
  EXPECT_EQ(error_of("\r\n\r\nGET"), "400 this is not an HTTP request");
  EXPECT_EQ(error_of("\nGET"), "400 this is not an HTTP request");
  EXPECT_EQ(error_of("\rGET"), "400 CR inside a line");
}

// The authority of an absolute target goes before the Host header.
TEST(HttpRequestParserTest, ReadsAbsoluteTargets) {
  Outcome got = parse("GET HTTP://b:81/p?q HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n");
  ASSERT_EQ(got.state, State::kComplete) << got.error.reason;
  EXPECT_EQ(got.head.request.path, "/p");
  EXPECT_EQ(got.head.request.query, "q");
  EXPECT_EQ(got.head.request.headers, (HttpHeaders{{"Host", "b:81"}, {"X", "y"}}));
  got = parse("GET http://b?q HTTP/1.0\r\n\r\n");
  ASSERT_EQ(got.state, State::kComplete) << got.error.reason;
  EXPECT_EQ(got.head.request.path, "/");
  EXPECT_EQ(got.head.request.query, "q");
  EXPECT_EQ(error_of("GET http://b/ HTTP/1.1\r\n\r\n"), "400 the Host header is missing");
  EXPECT_EQ(error_of("GET http://b/ HTTP/1.1\r\nHost: b\r\nHost: b\r\n\r\n"), "400 more than one Host header");
}

TEST(HttpRequestParserTest, LimitsAreExact) {
  const std::string target(40 - std::string("GET  HTTP/1.1").size(), '/');
  EXPECT_EQ(parse(str_cat("GET ", target, " HTTP/1.1\r\nHost: a\r\n\r\n")).state, State::kComplete);
  EXPECT_EQ(error_of(str_cat("GET ", target, "/ HTTP/1.1\r\n")), "414 the request line is longer than 40 bytes");
  EXPECT_THAT(error_of(std::string(42, 'G')), ::testing::StartsWith("414 "));
  // Host: a CRLF is 9 bytes.
  EXPECT_EQ(parse(with_headers("X: " + std::string(100 - 9 - 5, 'x') + "\r\n")).state, State::kComplete);
  EXPECT_THAT(error_of(with_headers("X: " + std::string(100 - 9 - 2, 'x') + "\r\n")), ::testing::StartsWith("431 "));
  EXPECT_EQ(parse(with_headers("A:\r\nB:\r\nC:\r\n")).state, State::kComplete);
  EXPECT_THAT(error_of(with_headers("A:\r\nB:\r\nC:\r\nD:\r\n")), ::testing::StartsWith("431 "));
  // Trailers share the headers' room.
  EXPECT_THAT(error_of(chunked("0\r\nA:\r\nB:\r\nC:\r\n\r\n")), ::testing::StartsWith("431 "));
  EXPECT_THAT(error_of(chunked("0\r\nA: " + std::string(100, 'x'))), ::testing::StartsWith("431 "));
}

TEST(HttpRequestParserTest, BodiesHaveABound) {
  EXPECT_EQ(parse(with_headers("Content-Length: 20\r\n") + std::string(20, 'x')).state, State::kComplete);
  EXPECT_EQ(error_of(with_headers("Content-Length: 21\r\n")), "413 the body has 21 bytes; at most 20 are taken");
  EXPECT_EQ(error_of(with_headers("Content-Length: 99999999999999999999999\r\n")),
            "413 the Content-Length is too large");
  EXPECT_EQ(parse(chunked("A\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n")).state, State::kComplete);
  EXPECT_EQ(error_of(chunked("A\r\n0123456789\r\nB\r\n")), "413 the body is larger than 20 bytes");
  EXPECT_EQ(error_of(chunked("fffffffffffffff\r\n")), "413 the body is larger than 20 bytes");
}

TEST(HttpRequestParserTest, ReadsWhatTheConnectionIsFor) {
  const auto keeps_alive = [](std::string_view version, std::string_view header) {
    const Outcome got = parse(str_cat("GET / HTTP/", version, "\r\nHost: a\r\n", header, "\r\n"));
    EXPECT_EQ(got.state, State::kComplete) << got.error.reason;
    return got.head.keep_alive;
  };
  EXPECT_TRUE(keeps_alive("1.1", ""));
  EXPECT_TRUE(keeps_alive("1.7", ""));
  EXPECT_FALSE(keeps_alive("1.1", "Connection: x, CLOSE\r\n"));
  EXPECT_FALSE(keeps_alive("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_FALSE(keeps_alive("1.0", ""));
  EXPECT_TRUE(keeps_alive("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_TRUE(parse(with_headers("Expect: 100-Continue\r\n")).head.expects_continue);
  EXPECT_THAT(error_of(with_headers("Expect: 200\r\n")), ::testing::StartsWith("417 "));
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").head.expects_continue);
}

}  // namespace
}  // namespace transept
