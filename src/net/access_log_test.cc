// Lines as they reach stderr: whole, one each, and with nothing in them that a client could forge a line with.
#include "net/access_log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/json.h"
#include "base/log_sink.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr std::string_view kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view kTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

HttpRequest a_request() {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/completions";
  request.query = "api_key=hidden";
  request.peer = "10.0.0.7";
  request.request_id = "req-1";
  request.headers = {{"Authorization", "Bearer hidden"}, {"traceparent", std::string(kTraceparent)}};
  request.body = "hidden";
  return request;
}

template <typename Write>
std::string captured(const AccessLog::Options& options, const Write& write) {
  ::testing::internal::CaptureStderr();
  write(AccessLog(options));
  return ::testing::internal::GetCapturedStderr();
}

std::string done_line(const HttpRequest& request, bool as_json) {
  return captured({.as_json = as_json}, [&](const AccessLog& log) { log.log_done(request, 200, 1.5, 321); });
}

Json json_line(const HttpRequest& request) {
  const std::string line = done_line(request, true);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  StatusOr<Json> parsed = Json::parse(line);
  EXPECT_TRUE(parsed.ok()) << line;
  return parsed.ok() ? *parsed : Json::object();
}

TEST(AccessLog, ALineOfTextHasWhatAnOperatorAsksFor) {
  const std::string line = done_line(a_request(), false);
  EXPECT_EQ(line.substr(4, 1) + line.substr(10, 1) + line.substr(23),
            str_cat("-TZ info \"POST\" \"/v1/completions\" 200 1.500s 321B 10.0.0.7 id=\"req-1\" trace=", kTrace, "\n"))
      << line;
  EXPECT_EQ(line.find("hidden"), std::string::npos) << "neither query, nor headers, nor body";
}

TEST(AccessLog, AnEncodeHasItsOwnNameAndThatOfTheClientsRequest) {
  const AccessLog::EncodeLine encode = {.transfer = "p0.12.3",
                                        .input_id = 2,
                                        .consumer = "p0",
                                        .num_positions = 1500,
                                        .outcome = "done",
                                        .seconds = 0.25,
                                        .request_id = "req-1\n",
                                        .traceparent = kTraceparent};
  const auto line = [&](bool as_json, bool is_on) {
    return captured({.as_json = as_json, .is_on = is_on}, [&](const AccessLog& log) { log.log_encode(encode); });
  };
  EXPECT_EQ(
      line(false, true).substr(24),
      str_cat(" info encode \"p0.12.3\" 2 done 0.250s 1500 positions for \"p0\" id=\"req-1\\n\" trace=", kTrace, "\n"));
  const Json json = Json::parse(line(true, true)).value();
  EXPECT_EQ(json.find("event")->as_string(), "encode");
  EXPECT_EQ(json.find("transfer")->as_string(), "p0.12.3");
  EXPECT_EQ(json.find("input_id")->as_int(), 2);
  EXPECT_EQ(json.find("outcome")->as_string(), "done");
  EXPECT_EQ(json.find("positions")->as_int(), 1500);
  EXPECT_EQ(json.find("consumer")->as_string(), "p0");
  EXPECT_EQ(json.find("request_id")->as_string(), "req-1\n");
  EXPECT_EQ(json.find("trace_id")->as_string(), kTrace);
  EXPECT_EQ(line(true, false), "");
}

TEST(AccessLog, NoticesAreJsonWhereLogsAre) {
  ::testing::internal::CaptureStderr();
  set_log_sink(write_json_notice);
  log_warning("two\nlines, \"quoted\"");
  set_log_sink(nullptr);
  log_warning("plain");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  const size_t end = lines.find('\n');
  const StatusOr<Json> line = Json::parse(lines.substr(0, end));
  ASSERT_TRUE(line.ok()) << lines;
  EXPECT_EQ(line->find("level")->as_string(), "warning");
  EXPECT_EQ(line->find("message")->as_string(), "two\nlines, \"quoted\"");
  EXPECT_EQ(lines.substr(end + 1), "warning: plain\n");
}

TEST(AccessLog, ALineOfJsonHasTheSame) {
  const Json line = json_line(a_request());
  EXPECT_EQ(line.find("event")->as_string(), "request");
  EXPECT_EQ(line.find("method")->as_string(), "POST");
  EXPECT_EQ(line.find("path")->as_string(), "/v1/completions");
  EXPECT_EQ(line.find("status")->as_int(), 200);
  EXPECT_EQ(line.find("seconds")->as_double(), 1.5);
  EXPECT_EQ(line.find("bytes")->as_int(), 321);
  EXPECT_EQ(line.find("peer")->as_string(), "10.0.0.7");
  EXPECT_EQ(line.find("request_id")->as_string(), "req-1");
  EXPECT_EQ(line.find("trace_id")->as_string(), kTrace);
  EXPECT_EQ(line.dump().find("hidden"), std::string::npos);
}

TEST(AccessLog, ControlCharactersAndQuotesCannotForgeALine) {
  HttpRequest request = a_request();
  // A line end, quotes, DEL, an escape sequence, C1, a line separator, a turned direction, no UTF-8, a fine umlaut.
  request.path = "/a\nb\r\"\\\x7F\x1B[31m\xC2\x9B\xE2\x80\xA8\xE2\x80\xAE\xFF\xC3\xA4";
  const std::string text = done_line(request, false);
  EXPECT_NE(text.find(R"("/a\nb\x0d\"\\\x7f\x1b[31m\u{9b}\u{2028}\u{202e}\xff)"
                      "\xC3\xA4\""),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);

  const std::string json = done_line(request, true);
  for (const char c : json.substr(0, json.size() - 1)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << json;
  for (const char* bad : {"\x7F", "\xC2\x9B", "\xE2\x80\xA8", "\xE2\x80\xAE"}) {
    EXPECT_EQ(json.find(bad), std::string::npos) << json;
  }
  EXPECT_EQ(json_line(request).find("path")->as_string(),
            "/a\nb\r\"\\\x7F\x1B[31m\xC2\x9B\xE2\x80\xA8\xE2\x80\xAE\xEF\xBF\xBD\xC3\xA4");
}

TEST(AccessLog, ALongPathIsCut) {
  HttpRequest request = a_request();
  request.path = "/" + std::string(8000, 'x');
  EXPECT_LT(done_line(request, false).size(), 1300u);
  EXPECT_EQ(json_line(request).find("path")->as_string().size(), 1003u);
}

TEST(AccessLog, OnlyAValidTraceparentIsLogged) {
  const std::string id(kTrace), parent = "00f067aa0ba902b7";
  const auto logged = [](const std::string& header) {
    HttpRequest request = a_request();
    request.headers = {{"TraceParent", header}};
    const Json line = json_line(request);
    return line.find("trace_id") != nullptr;
  };
  EXPECT_TRUE(logged("00-" + id + "-" + parent + "-00"));
  EXPECT_TRUE(logged("01-" + id + "-" + parent + "-01-more of a later version"));
  const std::string zeros(32, '0'), tail = str_cat("-", parent, "-01");
  for (const std::string& bad :
       {std::string(), str_cat("00-", id), str_cat("00-", zeros, tail), str_cat("00-", id, "-0000000000000000-01"),
        str_cat("ff-", id, tail), str_cat("00-", id, tail, "-more"), str_cat("01-", id, tail, "more"),
        str_cat("00-", id.substr(1), "g", tail), str_cat("00-4BF92F3577B34DA6A3CE929D0E0E4736", tail),
        str_cat("00_", id, tail), str_cat("00-", id, "-", parent, "-0x"), str_cat("0 -", id, tail),
        str_cat("00-", id, "-", parent, "-1")}) {
    EXPECT_FALSE(logged(bad)) << bad;
  }
}

TEST(AccessLog, OffMeansRequestsAndNotWhatWentWrong) {
  const AccessLog::Options off = {.is_on = false};
  EXPECT_EQ(captured(off, [](const AccessLog& log) { log.log_done(a_request(), 200, 1, 1); }), "");
  const std::string line = captured(off, [](const AccessLog& log) { log.log_internal("req-2", "it\nbroke"); });
  EXPECT_NE(line.find(R"(error internal "it\nbroke" id="req-2")"), std::string::npos) << line;
}

TEST(AccessLog, PromptsAreLoggedIfAskedForAndCut) {
  const std::string prompt = "\xC3\xA4" + std::string(5000, 'p');
  const auto write = [&](const AccessLog& log) { log.log_prompt("req-3", prompt); };
  EXPECT_EQ(captured({}, write), "") << "never unless asked";
  EXPECT_EQ(captured({.as_json = true}, write), "");
  const std::string text = captured({.with_prompts = true}, write);
  EXPECT_NE(text.find("\xC3\xA4" + std::string(1999, 'p') + "...\""), std::string::npos) << text;
  const std::string json = captured({.as_json = true, .with_prompts = true}, write);
  EXPECT_EQ(Json::parse(json)->find("prompt")->as_string(), "\xC3\xA4" + std::string(1999, 'p') + "...");
  EXPECT_EQ(Json::parse(json)->find("request_id")->as_string(), "req-3");
}

TEST(AccessLog, LinesOfThreadsDoNotRunIntoEachOther) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string out = captured({.as_json = true}, [](const AccessLog& log) {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log] {
        for (int i = 0; i < kLines; ++i) log.log_done(a_request(), 200, 0.1, 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  int count = 0;
  for (const std::string_view line : split(std::string_view(out).substr(0, out.size() - 1), '\n')) {
    EXPECT_TRUE(Json::parse(line).ok()) << line;
    ++count;
  }
  EXPECT_EQ(count, kThreads * kLines);
}

}  // namespace
}  // namespace transept
