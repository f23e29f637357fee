#include "hub/hub_url.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

// Python: urllib.parse.quote(text, safe="").
TEST(HubUrlTest, PercentEncoding) {
  EXPECT_EQ(percent_encoded("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("a-b_c.d~e F%?#&+=@,"), "a-b_c.d~e%20F%25%3F%23%26%2B%3D%40%2C");
  EXPECT_EQ(percent_encoded("\xC3\xA4"), "%C3%A4");
  EXPECT_EQ(percent_encoded("a/b c", "/"), "a/b%20c");
}

TEST(HubUrlTest, UrlsOfTheInterface) {
  const RepoName repo{.id = "org/name", .revision = "refs/pr/1"};
  EXPECT_EQ(info_url("https://h", repo), "https://h/api/models/org/name/revision/refs%2Fpr%2F1");
  EXPECT_EQ(file_url("https://h", repo, "abc", "a b.json"), "https://h/org/name/resolve/abc/a%20b.json");
  EXPECT_EQ(tree_url("https://h", repo, "abc"), "https://h/api/models/org/name/tree/abc?recursive=true&expand=false");
}

// The unreserved characters of RFC 3986, 2.3, and their neighbours.
TEST(HubUrlTest, UnreservedCharactersStayAndTheirNeighboursDoNot) {
  EXPECT_EQ(percent_encoded("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(percent_encoded("/:@[`{,^}"), "%2F%3A%40%5B%60%7B%2C%5E%7D");
  EXPECT_EQ(percent_encoded("a/b:", "/"), "a/b%3A");
  EXPECT_EQ(percent_encoded("\xC3\xA4 \x7F"), "%C3%A4%20%7F");
}

TEST(HubUrlTest, Origins) {
  EXPECT_EQ(*url_origin("https://Host/a?b"), "https://host:443");
  EXPECT_EQ(*url_origin("HTTP://host"), "http://host:80");
  EXPECT_EQ(*url_origin("http://host:8080/a:9"), "http://host:8080");
  EXPECT_EQ(*url_origin("http://[::1]:8080/"), "http://[::1]:8080");
  EXPECT_EQ(*url_origin("http://[::1]/"), "http://[::1]:80");
  for (const char* url : {"", "host", "ftp://host", "file:///etc", "http://", "http:///a", "http://u@h/", "http://:80",
                          "http://a b/", "http://a\n", "https:/a"}) {
    EXPECT_FALSE(url_origin(url).ok()) << url;
  }
  // What one program takes for the host and another for a path ends the host.
  EXPECT_EQ(*url_origin("http://a\\@b/"), "http://a:80");
}

TEST(HubUrlTest, Redirects) {
  const auto target = [](const char* location) { return redirect_target("https://h/a/b?c=/d", location); };
  EXPECT_EQ(*target("https://other/x"), "https://other/x");
  EXPECT_EQ(*target("//other/x"), "https://other/x");
  EXPECT_EQ(*target("/x?y"), "https://h/x?y");
  EXPECT_EQ(*target("x"), "https://h/a/x");
  EXPECT_EQ(*redirect_target("https://h", "x"), "https://h/x");
  EXPECT_EQ(*redirect_target("http://h/a", "https://h/a"), "https://h/a");
  EXPECT_FALSE(target("http://h/x").ok()) << "not from https to http";
  EXPECT_FALSE(target("file:///etc/passwd").ok());
  EXPECT_FALSE(target("javascript:1/2").ok());
  EXPECT_FALSE(target("https://user@h/").ok());
}

TEST(HubUrlTest, NextPage) {
  EXPECT_EQ(next_link("<https://h/a?cursor=1>; rel=\"next\""), "https://h/a?cursor=1");
  EXPECT_EQ(next_link("<https://h/0>; rel=\"prev\", <https://h/2>; rel=\"next\""), "https://h/2");
  EXPECT_EQ(next_link("<https://h/0>; rel=\"prev\""), "");
  for (const char* header : {"", "<", ">", "><", "rel=\"next\"", "<a"}) EXPECT_EQ(next_link(header), "") << header;
}

}  // namespace
}  // namespace transept
