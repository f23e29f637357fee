// CTranslate2's model.bin: what it holds, and files that are none.
#include "foreign/ct2_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign/ct2_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::Ct2Writer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::span<const std::byte> ct2_span(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

std::string ct2_error(std::string_view bytes) {
  const auto parsed = Ct2File::parse(ct2_span(bytes), "model.bin");
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : error_message(parsed.status());
}

Ct2Writer small_ct2_file(uint32_t version = 6) {
  Ct2Writer file("TransformerSpec", version);
  file.floats("b/weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.integer("num_heads", 4);
  file.flag("pre_norm", 1);
  file.alias("a/weight", "b/weight");
  file.alias("c/weight", "a/weight");
  return file;
}

TEST(Ct2File, IsReadWhole) {
  Ct2Writer written = small_ct2_file();
  written.variable("half", {1}, 4, std::string(2, '\1'));
  written.variable("brain", {}, 5, std::string("\x80\x3f", 2));
  written.variable("word", {}, 3, Ct2Writer::bytes_of<int32_t>({-70000}));
  const std::string bytes = written.bytes();
  const auto model = Ct2File::parse(ct2_span(bytes), "model.bin");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->spec(), "TransformerSpec");
  EXPECT_EQ(model->version(), 6u);
  EXPECT_EQ(model->revision(), 7u);
  EXPECT_EQ(model->variables().size(), 6u);
  const Ct2File::Variable* weight = model->find("b/weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->shape, ElementsAre(2, 3));
  EXPECT_EQ(weight->dtype, "F32");
  EXPECT_EQ(weight->data.size(), 24u);
  EXPECT_EQ(model->find("a/weight"), weight);
  EXPECT_EQ(model->find("c/weight"), weight) << "an alias of an alias";
  EXPECT_EQ(model->find("d/weight"), nullptr);
  EXPECT_EQ(model->scalar("num_heads"), 4);
  EXPECT_EQ(model->scalar("pre_norm"), 1);
  EXPECT_EQ(model->scalar("brain"), 1);
  EXPECT_EQ(model->scalar("word"), -70000);
  EXPECT_EQ(model->scalar("half"), std::nullopt) << "a list of one is no scalar";
  EXPECT_EQ(model->find("half")->dtype, "F16");
}

TEST(Ct2File, OlderVersionsHaveSizesForTypes) {
  for (const uint32_t version : {3u, 4u, 5u}) {
    const std::string bytes = small_ct2_file(version).bytes();
    const auto model = Ct2File::parse(ct2_span(bytes), "model.bin");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->find("b/weight")->dtype, "F32");
    EXPECT_EQ(model->scalar("num_heads"), 4);
    EXPECT_EQ(model->find("num_heads")->dtype, "I16");
    EXPECT_EQ(model->find("pre_norm")->dtype, "I8");
  }
  EXPECT_THAT(ct2_error(small_ct2_file(2).bytes()),
              HasSubstr("version 2 of CTranslate2's form is not supported; 3 to 6 are"));
  EXPECT_THAT(ct2_error(small_ct2_file(99).bytes()), HasSubstr("version 99"));
  Ct2Writer eight("TransformerSpec", 3);
  eight.variable("x", {1}, 8, std::string(8, '\0'));
  EXPECT_THAT(ct2_error(eight.bytes()), HasSubstr("elements of size 8"));
}

TEST(Ct2File, CutAnywhereIsAnErrorThatNamesTheFile) {
  for (const uint32_t version : {3u, 6u}) {
    const std::string whole = small_ct2_file(version).bytes();
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THAT(ct2_error(whole.substr(0, size)), StartsWith("model.bin: ")) << size;
    }
    EXPECT_THAT(ct2_error(whole + 'x'), HasSubstr("has 1 bytes behind its end"));
  }
}

TEST(Ct2File, VariablesAreChecked) {
  const auto with = [](const std::vector<uint32_t>& shape, uint8_t type, std::string_view name = "x", size_t size = 8) {
    Ct2Writer file;
    file.variable(name, shape, type, std::string(size, 'x'));
    return ct2_error(file.bytes());
  };
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0), AllOf(HasSubstr("variable \"x\""), HasSubstr("5 dimensions")));
  EXPECT_THAT(with({2, 0}, 0), HasSubstr("dimension 1 is 0"));
  EXPECT_THAT(with({2}, 6), HasSubstr("type 6 is not supported"));
  EXPECT_THAT(with({3}, 0), HasSubstr("has 8 bytes, which are not those of its shape"));
  EXPECT_THAT(with({}, 0), HasSubstr("has 8 bytes"));
  EXPECT_THAT(with({1u << 31, 1u << 31, 1u << 31, 1u << 31}, 1), HasSubstr("not those of its shape"));
  EXPECT_THAT(with({2}, 0, ""), HasSubstr("variable 0"));
  EXPECT_THAT(with({2}, 0, std::string("a\0b", 3)), HasSubstr("variable 0"));
  EXPECT_THAT(with({2}, 0, std::string(5000, 'n')), HasSubstr("variable 0"));
  Ct2Writer twice = small_ct2_file();
  twice.flag("pre_norm", 0);
  EXPECT_THAT(ct2_error(twice.bytes()), HasSubstr("variable \"pre_norm\": is there twice"));
}

TEST(Ct2File, AliasesAreChecked) {
  const auto with = [](std::initializer_list<std::pair<const char*, const char*>> aliases) {
    Ct2Writer file = small_ct2_file();
    for (const auto& [alias, name] : aliases) file.alias(alias, name);
    return ct2_error(file.bytes());
  };
  EXPECT_THAT(with({{"x", "nowhere"}}), AllOf(HasSubstr("\"x\""), HasSubstr("\"nowhere\", which is missing")));
  EXPECT_THAT(with({{"x", "x"}}), HasSubstr("\"x\": is an alias of itself"));
  EXPECT_THAT(with({{"x", "y"}, {"y", "z"}, {"z", "y"}}), HasSubstr("is an alias of itself"));
  EXPECT_THAT(with({{"a/weight", "b/weight"}}), HasSubstr("\"a/weight\": is there twice"));
  EXPECT_THAT(with({{"b/weight", "num_heads"}}), HasSubstr("\"b/weight\": is there twice"));
}

TEST(Ct2File, IsToldByItsSpec) {
  EXPECT_EQ(ct2_spec(ct2_span(small_ct2_file(99).bytes())), "TransformerSpec");
  EXPECT_EQ(ct2_spec(ct2_span(Ct2Writer("Wav2Vec2Spec").bytes())), "Wav2Vec2Spec");
  EXPECT_EQ(ct2_spec(ct2_span(Ct2Writer("Model").bytes())), std::nullopt);
  EXPECT_EQ(ct2_spec(ct2_span(Ct2Writer("../Spec").bytes())), std::nullopt);
  EXPECT_EQ(ct2_spec(ct2_span(Ct2Writer("TransformerSpec", 101).bytes())), std::nullopt);
  EXPECT_EQ(ct2_spec({}), std::nullopt);
}

}  // namespace
}  // namespace transept
