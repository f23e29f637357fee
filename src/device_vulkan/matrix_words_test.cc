// Words of matrices as devices take them, of this folder's kernels and of what is none.
#include "device_vulkan/matrix_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "device_vulkan/kernels.h"

namespace transept {
namespace {

// Of SPIR-V's specification: KHR and NV.
constexpr uint32_t kType = 4456, kLoad = 4457, kStore = 4458, kMulAdd = 4459, kFirstNv = 5358, kLastNv = 5362;
constexpr uint32_t kExtension = 10, kCapability = 17, kConstant = 43;

struct Read {
  std::map<uint32_t, int> counts;              // of ops
  std::map<uint32_t, uint32_t> constants;      // by id
  std::vector<uint32_t> uses, layouts, masks;  // of types, of loads and stores, of products (0: none)
  std::set<uint32_t> capabilities;
  std::vector<std::string> extensions;
  uint32_t largest_new = 0;  // id
};

Read read(std::span<const uint32_t> words) {
  Read read;
  std::vector<uint32_t> uses, layouts;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xFFFF, size = words[at] >> 16;
    const uint32_t* word = &words[at];
    ++read.counts[op];
    if (op == kConstant) read.constants[word[2]] = word[3], read.largest_new = std::max(read.largest_new, word[2]);
    if (op == kCapability) read.capabilities.insert(word[1]);
    if (op == kExtension) read.extensions.emplace_back(reinterpret_cast<const char*>(word + 1));
    if (op == kType) uses.push_back(word[6]);
    if (op == kLoad) layouts.push_back(word[4]);
    if (op == kStore) layouts.push_back(word[3]);
    if (op == kMulAdd) read.masks.push_back(size == 7 ? word[6] : 0);
  }
  for (const uint32_t id : uses) read.uses.push_back(read.constants.at(id));
  for (const uint32_t id : layouts) read.layouts.push_back(read.constants.at(id));
  return read;
}

TEST(MatrixWordsTest, KernelsOfMatricesBecomeThoseOfTheExtension) {
  int num_kernels = 0;
  for (const VulkanShader& shader : vulkan_shaders()) {
    if (shader.tile == ShaderTile::kNone) continue;
    SCOPED_TRACE(shader.spec->name);
    ++num_kernels;
    for (const std::span<const uint32_t> words : {shader.words, shader.reversed}) {
      const auto translated = khr_matrix_words(words);
      ASSERT_TRUE(translated.ok()) << translated.status();
      const Read is = read(*translated), was = read(words);
      for (uint32_t op = kFirstNv; op <= kLastNv; ++op) EXPECT_EQ(is.counts.count(op), 0u) << op;
      EXPECT_TRUE(is.capabilities.contains(6022));
      EXPECT_FALSE(is.capabilities.contains(5357));
      EXPECT_EQ(std::count(is.extensions.begin(), is.extensions.end(), "SPV_KHR_cooperative_matrix"), 1);
      EXPECT_EQ(std::count(is.extensions.begin(), is.extensions.end(), "SPV_NV_cooperative_matrix"), 0);
      // Sums, and both sides of a product.
      EXPECT_EQ(std::set<uint32_t>(is.uses.begin(), is.uses.end()), (std::set<uint32_t>{0, 1, 2}));
      // float16 weights lie by rows, others by columns; inputs and sums by rows.
      const bool by_columns = shader.spec->name.find("product_matrix_float16") == std::string_view::npos;
      EXPECT_EQ(std::count(is.layouts.begin(), is.layouts.end(), 1u), by_columns ? 1 : 0);
      const bool is_int8 = shader.tile == ShaderTile::kInt8;
      EXPECT_EQ(is.masks, is_int8 ? std::vector<uint32_t>{15} : (std::vector<uint32_t>{0, 0}));
      EXPECT_EQ((*translated)[3], words[3] + 3) << "ids";
      EXPECT_EQ(is.largest_new, words[3] + 2);
      EXPECT_EQ(is.counts.at(kConstant), was.counts.at(kConstant) + 3);
    }
  }
  EXPECT_EQ(num_kernels, 24);
}

TEST(MatrixWordsTest, WhatIsNoKernelOfMatricesIsRefused) {
  const std::span<const uint32_t> words = find_shader("product_matrix_float16")->words;
  EXPECT_FALSE(khr_matrix_words({}).ok());
  EXPECT_FALSE(khr_matrix_words(find_shader("layer_norm")->words).ok());
  EXPECT_FALSE(khr_matrix_words(words.first(6)).ok());
  EXPECT_FALSE(khr_matrix_words(words.first(5)).ok());
  for (const uint32_t op : {5358u, 5359u, 5360u, 5361u}) {
    std::vector<uint32_t> broken(words.begin(), words.end());
    for (size_t at = 5; at < broken.size(); at += broken[at] >> 16) {
      if ((broken[at] & 0xFFFF) != op) continue;
      // Dimensions that are none, and a constant that is no bool; a product of no known type.
      const size_t place = op == 5358 ? 4 : op == 5359 ? 5 : op == 5360 ? 4 : 1;
      broken[at + place] = 0;
      break;
    }
    EXPECT_FALSE(khr_matrix_words(broken).ok()) << op;
  }
  std::vector<uint32_t> stuck(words.begin(), words.end());
  stuck[5] &= 0xFFFF;
  EXPECT_FALSE(khr_matrix_words(stuck).ok());
}

}  // namespace
}  // namespace transept
