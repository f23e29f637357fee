#include "net/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

StatusOr<std::vector<MultipartPart>> parse(std::string_view body, const MultipartLimits& limits = {}) {
  return parse_multipart(body, "B", limits);
}

std::string part(std::string_view disposition, std::string_view content, std::string_view more = "") {
  return str_cat("--B\r\nContent-Disposition: form-data; ", disposition, "\r\n", more, "\r\n", content, "\r\n");
}

std::string error_of(std::string_view body, const MultipartLimits& limits = {}) {
  const auto parts = parse(body, limits);
  return parts.ok() ? "no error" : error_message(parts.status());
}

TEST(MultipartBoundaryTest, IsRead) {
  EXPECT_EQ(*multipart_boundary("multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW"),
            "----WebKitFormBoundary7MA4YWxkTrZu0gW");
  EXPECT_EQ(*multipart_boundary("Multipart/Form-Data ; charset=utf-8;BOUNDARY=\"a b:c\" "), "a b:c");
  EXPECT_EQ(*multipart_boundary("multipart/form-data; boundary=" + std::string(70, 'x')), std::string(70, 'x'));
}

TEST(MultipartBoundaryTest, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "not multipart/form-data"},
      {"application/json", "not multipart/form-data"},
      {"multipart/form-data2; boundary=a", "not multipart/form-data"},
      {"multipart/mixed; boundary=a", "not multipart/form-data"},
      {"multipart/form-data", "no boundary"},
      {"multipart/form-data; boundary=", "no boundary"},
      {"multipart/form-data; boundary=\"\"", "no boundary"},
      {"multipart/form-data; boundary=\"a", "malformed"},
      {"multipart/form-data; boundary", "malformed"},
      {"multipart/form-data; boundary=a; boundary=b", "two boundaries"},
      {"multipart/form-data; boundary=" + std::string(71, 'x'), "longer than 70"},
      {"multipart/form-data; boundary=a\r\nb", "others than RFC 2046"},
      {"multipart/form-data; boundary=\"a \"", "others than RFC 2046"},
      {"multipart/form-data; boundary=a@b", "others than RFC 2046"},
  };
  for (const auto& [type, message] : cases) {
    const auto boundary = multipart_boundary(type);
    ASSERT_FALSE(boundary.ok()) << type;
    EXPECT_EQ(boundary.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(error_message(boundary.status()), HasSubstr(message)) << type;
  }
}

TEST(MultipartTest, ReadsFieldsAndFiles) {
  const std::string body = str_cat(
      "a preamble\r\n", part("name=\"model\"", "whisper"),
      part("name=file; filename=\"a.wav\"", std::string("\0\r\n--C\n", 7), "content-type: audio/wav\r\nX-Other: 1\r\n"),
      part("filename=\"\"; name=\"empty\"", ""), "--B--\r\nan epilogue --B\r\n");
  const auto parts = parse(body);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3);
  EXPECT_EQ((*parts)[0].name, "model");
  EXPECT_EQ((*parts)[0].filename, std::nullopt);
  EXPECT_EQ((*parts)[0].content_type, "");
  EXPECT_EQ((*parts)[0].content, "whisper");
  EXPECT_EQ((*parts)[1].name, "file");
  EXPECT_EQ((*parts)[1].filename, "a.wav");
  EXPECT_EQ((*parts)[1].content_type, "audio/wav");
  EXPECT_EQ((*parts)[1].content, std::string_view("\0\r\n--C\n", 7));
  EXPECT_EQ((*parts)[2].filename, "");
  EXPECT_EQ((*parts)[2].content, "");
}

TEST(MultipartTest, NamesAreQuotedInEveryWay) {
  const auto name_of = [](std::string_view disposition) {
    const std::string body = str_cat(part(disposition, "x"), "--B--");
    const auto parts = parse(body);
    return parts.ok() ? (*parts)[0].name + "|" + (*parts)[0].filename.value_or("none") : error_message(parts.status());
  };
  EXPECT_EQ(name_of("name=\"a;b=c\""), "a;b=c|none");
  EXPECT_EQ(name_of("name=\"a\\\"b\""), "a\"b|none");
  EXPECT_EQ(name_of("name=\"a%22b%0D%0ac%41\""), "a\"b\r\nc%41|none");
  EXPECT_EQ(name_of("NAME=granularities[] ; Filename=a.wav"), "granularities[]|a.wav");
  EXPECT_EQ(name_of("name=\"f\"; filename=\"C:\\dir\\a.wav\""), "f|C:\\dir\\a.wav");
  EXPECT_EQ(name_of("name=\"f\"; filename*=UTF-8''%e2%82%ac.wav; filename=\"e.wav\""), "f|e.wav");
  EXPECT_EQ(name_of("name=\"\xC3\xA9\""), "\xC3\xA9|none");
  EXPECT_EQ(name_of("name=\"\""), "|none");
}

// A line that only begins like the boundary is content; padding behind it is none.
TEST(MultipartTest, TheBoundaryIsAWholeLine) {
  const std::string body =
      "--B \t\r\nContent-Disposition: form-data; name=a\r\n\r\n--B1\r\n--Bx--\r\n--B--x\r\nend\r\n--B--";
  const auto parts = parse(body);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1);
  EXPECT_EQ((*parts)[0].content, "--B1\r\n--Bx--\r\n--B--x\r\nend");
}

// RFC 2046: headers may be followed by the delimiter, whose CRLF is the empty line's.
TEST(MultipartTest, APartMayHaveNoContentAtAll) {
  const std::string body = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n--B--\r\n";
  const auto parts = parse(body);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1);
  EXPECT_EQ((*parts)[0].content, "");
}

TEST(MultipartTest, NoPartsAreNoError) {
  EXPECT_EQ(parse("--B--\r\n")->size(), 0);
  EXPECT_EQ(parse("preamble\r\n--B--")->size(), 0);
}

TEST(MultipartTest, SaysWhatIsMalformed) {
  const std::string good = part("name=a", "x");
  EXPECT_THAT(error_of(""), HasSubstr("closing boundary"));
  EXPECT_THAT(error_of(good), HasSubstr("closing boundary"));
  EXPECT_THAT(error_of(good + "--B-"), HasSubstr("closing boundary"));
  EXPECT_THAT(error_of(good + "--B\r\n"), HasSubstr("CRLF"));
  EXPECT_THAT(error_of("--B\r\n\r\nx\r\n--B--"), HasSubstr("no name"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--"), HasSubstr("no name"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--"), HasSubstr("not form-data"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--B--"), HasSubstr("malformed"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: form-data; name\r\n\r\nx\r\n--B--"), HasSubstr("malformed"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: form-data name=a\r\n\r\nx\r\n--B--"), HasSubstr("not form-data"));
  EXPECT_THAT(error_of("--B\nContent-Disposition: form-data; name=a\n\nx\n--B--"), HasSubstr("closing boundary"));
  EXPECT_THAT(error_of("--B\r\nContent-Disposition: form-data; name=a\n\r\nx\r\n--B--"), HasSubstr("CRLF"));
  EXPECT_THAT(error_of(part("name=a; name=b", "x") + "--B--"), HasSubstr("two names"));
  EXPECT_THAT(error_of(part("name=a; filename=b; filename=c", "x") + "--B--"), HasSubstr("two file names"));
  EXPECT_THAT(error_of(part("name=a", "x", "Content-Disposition: form-data; name=b\r\n") + "--B--"),
              HasSubstr("two Content-Dispositions"));
  EXPECT_THAT(error_of(part("name=a", "x", "No colon\r\n") + "--B--"), HasSubstr("malformed"));
  EXPECT_THAT(error_of(part("name=a", "x", " folded: x\r\n") + "--B--"), HasSubstr("malformed"));
  EXPECT_THAT(error_of(part("name=a", "x", "Content-Transfer-Encoding: base64\r\n") + "--B--"),
              HasSubstr("Content-Transfer-Encoding"));
  EXPECT_EQ(error_of(part("name=a", "x", "Content-Transfer-Encoding: 8BIT\r\n") + "--B--"), "no error");
}

TEST(MultipartTest, LimitsNameBothNumbersAndTheField) {
  MultipartLimits limits{.max_parts = 2, .max_part_header_bytes = 60, .max_field_bytes = 4};
  const auto two = part("name=a", "1234") + part("name=b; filename=c", "123456789");
  EXPECT_EQ(error_of(two + "--B--", limits), "no error");
  EXPECT_EQ(error_of(two + part("name=c", "") + "--B--", limits), "the form has 3 parts or more, more than 2");
  const std::string long_field = part("name=prompt", "12345") + "--B--";
  const Status status = parse(long_field, limits).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error_message(status), "the field has 5 bytes, more than 4");
  EXPECT_EQ(error_param(status), "prompt");
  const std::string long_header = part("name=a", "x", "X-Long: " + std::string(60, 'x') + "\r\n") + "--B--";
  EXPECT_EQ(error_of(long_header, limits), "a part's headers are larger than 60 bytes");
  EXPECT_EQ(error_param(parse(long_header, limits).status()), "a");
}

}  // namespace
}  // namespace transept
