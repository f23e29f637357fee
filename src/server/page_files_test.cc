#include "server/page_files.h"
#include "base/source_dir_testing.h"
#include "server/page.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

std::string source_of(const PageFile& file) {
  const std::string name = file.path == "/" ? "index.html" : std::string(file.path.substr(6));
  std::ifstream in(source_dir() + "/src/server/page/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(PageFiles, HoldTheBytesOfTheSources) {
  ASSERT_FALSE(page_files().empty());
  for (const PageFile& file : page_files()) EXPECT_EQ(file.content, source_of(file)) << file.path;
}

TEST(PageFiles, ConnectToTheirOwnServerAloneByWebSocketsToo) {
  const auto policy = [](HttpHeaders headers) {
    HttpRequest request;
    request.headers = std::move(headers);
    const HttpResponse response = page_response(page_files()[0], request);
    return *find_header(response.headers, "Content-Security-Policy");
  };
  using ::testing::EndsWith;
  EXPECT_THAT(policy({{"Host", "localhost:81"}}), EndsWith("connect-src 'self' ws://localhost:81 wss://localhost:81"));
  EXPECT_THAT(policy({{"Host", "[::1]:81"}}), EndsWith("connect-src 'self' ws://[::1]:81 wss://[::1]:81"));
  for (const std::string host : {"", "a b", "x;script-src *", "x,y", "x'", "*"}) {
    EXPECT_THAT(policy({{"Host", host}}), EndsWith("; connect-src 'self'")) << host;
  }
  EXPECT_THAT(policy({}), EndsWith("; connect-src 'self'"));
}

TEST(PageFiles, HaveOnePathAndOneTagEach) {
  std::set<std::string_view> paths, etags;
  for (const PageFile& file : page_files()) {
    EXPECT_TRUE(file.path == "/" || file.path.starts_with("/page/")) << file.path;
    EXPECT_THAT(file.etag, ::testing::MatchesRegex("\"[0-9a-f]+\""));
    paths.insert(file.path);
    etags.insert(file.etag);
  }
  EXPECT_EQ(paths.size(), page_files().size());
  EXPECT_EQ(etags.size(), page_files().size());
  EXPECT_TRUE(paths.contains("/"));
  EXPECT_TRUE(paths.contains("/page/app.js"));
}

// A module or a style sheet of the wrong type is not loaded.
TEST(PageFiles, HaveTheTypesThatBrowsersInsistOn) {
  const auto type_of = [](std::string_view path) -> std::string_view {
    if (path == "/") return "text/html; charset=utf-8";
    if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
    if (path.ends_with(".css")) return "text/css; charset=utf-8";
    return path.ends_with(".svg") ? "image/svg+xml" : "";
  };
  for (const PageFile& file : page_files()) EXPECT_EQ(file.content_type, type_of(file.path)) << file.path;
}

// The document and the modules name only files that are there; the policy would refuse anything else.
TEST(PageFiles, NameOnlyEachOther) {
  const auto served = [](std::string_view path) {
    return std::ranges::any_of(page_files(), [&](const PageFile& file) { return file.path == path; });
  };
  for (const PageFile& file : page_files()) {
    for (const std::string_view opening : {"src=\"", "href=\"page", "from \"./", "url(\""}) {
      for (size_t at = file.content.find(opening); at != std::string_view::npos;
           at = file.content.find(opening, at + 1)) {
        const size_t begin = file.content.find('"', at) + 1;
        std::string name(file.content.substr(begin, file.content.find('"', begin) - begin));
        if (name.starts_with("./")) name.erase(0, 2);
        if (file.path != "/") name.insert(0, "page/");  // relative to the file, the document's to the root
        EXPECT_TRUE(served("/" + name)) << file.path << " names " << name;
      }
    }
    EXPECT_EQ(file.content.find(" style=\""), std::string_view::npos) << file.path;
    EXPECT_EQ(file.content.find("onclick="), std::string_view::npos) << file.path;
  }
}

}  // namespace
}  // namespace transept
