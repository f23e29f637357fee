#include "hub/hub_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/folder_testing.h"

namespace transept {
namespace {

using Values = std::map<std::string, std::string>;

HubSettings::Getter getter(Values values) {
  values.try_emplace("HOME", "/nowhere");
  return [values](const std::string& name) {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}

HubSettings settings(Values values) { return HubSettings::from(getter(std::move(values))).value(); }

TEST(HubSettingsTest, FoldersAsHuggingfaceHubFindsThem) {
  const auto cache = [](Values values) { return settings(std::move(values)).cache_dir; };
  EXPECT_EQ(cache({}), "/nowhere/.cache/huggingface/hub");
  EXPECT_EQ(cache({{"XDG_CACHE_HOME", "/x"}}), "/x/huggingface/hub");
  EXPECT_EQ(cache({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/h"}}), "/h/hub");
  EXPECT_EQ(cache({{"HF_HOME", "/h"}, {"HUGGINGFACE_HUB_CACHE", "/l"}}), "/l");
  EXPECT_EQ(cache({{"HUGGINGFACE_HUB_CACHE", "/l"}, {"HF_HUB_CACHE", "/c"}}), "/c");
  EXPECT_EQ(cache({{"HF_HUB_CACHE", "~/c/$A/${B}d/$NONE"}, {"A", "a"}, {"B", "b"}}), "/nowhere/c/a/bd/$NONE");
  EXPECT_EQ(cache({{"HF_HUB_CACHE", ""}}), "/nowhere/.cache/huggingface/hub");
}

TEST(HubSettingsTest, PathsExpandAsInPython) {
  const auto expand = [](const char* path) { return expanded_path(path, getter({{"A", "x"}, {"A1", "y"}})); };
  EXPECT_EQ(expand("$A/$A1/${A}1"), "x/y/x1");
  EXPECT_EQ(expand("a$"), "a$");
  EXPECT_EQ(expand("${A"), "${A");
  EXPECT_EQ(expand("${}"), "${}");
  EXPECT_EQ(expand("a~/~"), "a~/~");
}

TEST(HubSettingsTest, Endpoint) {
  EXPECT_TRUE(settings({}).endpoint.starts_with("https://"));
  EXPECT_EQ(settings({{"HF_ENDPOINT", "http://mirror:80/base//"}}).endpoint, "http://mirror:80/base");
  EXPECT_TRUE(settings({}).endpoint_error.ok());
  EXPECT_FALSE(settings({{"HF_ENDPOINT", "mirror"}}).endpoint_error.ok());
  const HubSettings named = settings({{"HF_ENDPOINT", "https://me:pass@mirror/a"}, {"HF_HOME", "/h"}});
  EXPECT_EQ(error_message(named.endpoint_error), "HF_ENDPOINT: the URL \"https://***@mirror/a\": it holds a user name");
  EXPECT_EQ(named.endpoint, "");
  EXPECT_EQ(named.cache_dir, "/h/hub") << "the cache needs no endpoint";
  for (const char* endpoint : {"http:/me:pass@mirror", "http://me:pass/x@mirror", "me:pass@mirror", "http:me:pass@h"}) {
    const Status refused = settings({{"HF_ENDPOINT", endpoint}}).endpoint_error;
    EXPECT_FALSE(refused.ok());
    EXPECT_EQ(error_message(refused).find("pass"), std::string::npos) << refused;
  }
}

TEST(HubSettingsTest, Token) {
  const testing::TestFolder folder;
  folder.write("token", "  from-file\r\n");
  const Values home = {{"HF_HOME", folder.path()}};
  EXPECT_EQ(settings({}).token, "");
  EXPECT_EQ(settings(home).token, "from-file");
  EXPECT_EQ(settings({{"HF_TOKEN_PATH", folder.path() + "/token"}}).token, "from-file");
  Values both = home;
  both["HUGGING_FACE_HUB_TOKEN"] = "old";
  EXPECT_EQ(settings(both).token, "old");
  both["HF_TOKEN"] = "new\n";
  EXPECT_EQ(settings(both).token, "new");
  EXPECT_EQ(settings(both).token_from, "HF_TOKEN");
  both["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  EXPECT_EQ(settings(both).token, "");
  for (const char* token : {"two words", "a\tb", "\x01", "\xC3\xA4"}) {
    const Status status = HubSettings::from(getter({{"HF_TOKEN", token}})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << token;
    EXPECT_EQ(error_message(status).find(token), std::string::npos) << "a token is never shown";
  }
}

TEST(HubSettingsTest, Switches) {
  for (const char* value : {"1", "ON", "yes", "True"})
    EXPECT_EQ(settings({{"HF_HUB_OFFLINE", value}}).offline_by, "HF_HUB_OFFLINE") << value;
  for (const char* value : {"0", "off", "2", ""})
    EXPECT_EQ(settings({{"HF_HUB_OFFLINE", value}}).offline_by, "") << value;
  EXPECT_EQ(settings({{"TRANSFORMERS_OFFLINE", "1"}}).offline_by, "TRANSFORMERS_OFFLINE");
  EXPECT_EQ(settings({{"TRANSFORMERS_OFFLINE", "1"}, {"HF_HUB_OFFLINE", "1"}}).offline_by, "HF_HUB_OFFLINE");
  EXPECT_EQ(settings({{"TRANSFORMERS_OFFLINE", "1"}, {"HF_HUB_OFFLINE", "0"}}).offline_by, "");
  EXPECT_TRUE(settings({{"HF_HUB_DISABLE_PROGRESS_BARS", "1"}}).is_quiet);
}

TEST(HubSettingsTest, Timeouts) {
  EXPECT_EQ(settings({}).head_timeout.count(), 10);
  EXPECT_EQ(settings({{"HF_HUB_ETAG_TIMEOUT", "3"}}).head_timeout.count(), 3);
  EXPECT_EQ(settings({{"HF_HUB_DOWNLOAD_TIMEOUT", "86400"}}).stall_timeout.count(), 86400);
  for (const char* value : {"0", "-1", "x", "1s", "86401", "99999999999999999999"}) {
    EXPECT_FALSE(HubSettings::from(getter({{"HF_HUB_DOWNLOAD_TIMEOUT", value}})).ok()) << value;
  }
}

}  // namespace
}  // namespace transept
