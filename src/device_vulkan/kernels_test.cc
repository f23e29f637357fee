// What kernels declare against what their shaders say: each binding's decorations are its Use, and the bytes beside the
// operands are the arguments'. A kernel cannot write what its shader reads only, so a declaration cannot be too small.
#include "device_vulkan/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace transept {
namespace {

// Of SPIR-V's specification, 3.
constexpr uint32_t kTypePointer = 32, kVariable = 59, kDecorate = 71, kMemberDecorate = 72, kAtomicLoad = 227,
                   kAtomicIAdd = 234, kAtomicAnd = 240, kAtomicOr = 241, kAtomicXor = 242, kAtomicFAdd = 6035;
constexpr uint32_t kNonWritable = 24, kNonReadable = 25, kBinding = 33, kOffset = 35, kPushConstant = 9;

struct Declared {
  std::map<uint32_t, Use> operands;  // by binding
  uint32_t push_bytes = 0;
  bool counts = false, has_bit_atomics = false, has_other_atomics = false;
};

Declared read(std::span<const uint32_t> words) {
  std::map<uint32_t, uint32_t> pointees, storage, types, bindings, ends;
  std::set<uint32_t> not_written, not_read;
  Declared declared;
  for (size_t at = 5; at < words.size();) {
    const uint32_t op = words[at] & 0xFFFF, size = words[at] >> 16;
    const uint32_t* word = &words[at];
    if (op == kTypePointer) pointees[word[1]] = word[3], storage[word[1]] = word[2];
    if (op == kVariable) types[word[2]] = word[1];
    if (op == kDecorate && word[2] == kBinding) bindings[word[1]] = word[3];
    if (op == kMemberDecorate && word[3] == kNonWritable) not_written.insert(word[1]);
    if (op == kMemberDecorate && word[3] == kNonReadable) not_read.insert(word[1]);
    if (op == kMemberDecorate && word[3] == kOffset) ends[word[1]] = std::max(ends[word[1]], word[4] + 4);
    const bool is_of_bits = op == kAtomicAnd || op == kAtomicOr;
    declared.has_bit_atomics |= is_of_bits;
    declared.has_other_atomics |=
        ((op >= kAtomicLoad && op <= kAtomicXor) || op == kAtomicFAdd) && !is_of_bits && op != kAtomicIAdd;
    declared.counts |= op == kAtomicIAdd;
    if (size == 0) break;
    at += size;
  }
  for (const auto& [variable, binding] : bindings) {
    const uint32_t type = pointees[types[variable]];
    declared.operands[binding] = not_written.contains(type) ? Use::kRead
                                 : not_read.contains(type)  ? Use::kWrite
                                                            : Use::kReadWrite;
  }
  for (const auto& [variable, pointer] : types) {
    if (storage[pointer] == kPushConstant) declared.push_bytes = ends[pointees[pointer]];
  }
  return declared;
}

template <size_t M, size_t N>
bool is_one_of(const KernelSpec (&kernels)[M][N], const KernelSpec& spec) {
  return std::any_of(&kernels[0][0], &kernels[0][0] + M * N,
                     [&](const KernelSpec& kernel) { return &kernel == &spec; });
}

TEST(KernelsTest, DeclareWhatTheirShadersDo) {
  EXPECT_EQ(vulkan_shaders().size(), 113u);
  std::set<std::string_view> names;
  for (const VulkanShader& shader : vulkan_shaders()) {
    const KernelSpec& spec = *shader.spec;
    SCOPED_TRACE(spec.name);
    EXPECT_TRUE(names.insert(spec.name).second);
    EXPECT_EQ(find_shader(spec.name), &shader);
    for (const std::span<const uint32_t> words : {shader.words, shader.reversed}) {
      ASSERT_GT(words.size(), 5u);
      ASSERT_EQ(words[0], 0x07230203u);
      const Declared declared = read(words);
      ASSERT_EQ(declared.operands.size(), spec.operands.size());
      for (size_t i = 0; i < spec.operands.size(); ++i) {
        EXPECT_EQ(declared.operands.at(static_cast<uint32_t>(i)), spec.operands[i]) << "operand " << i;
      }
      EXPECT_EQ(declared.push_bytes, kMaxOperands + spec.argument_bytes);
      EXPECT_LE(declared.push_bytes, kPushBytes);
      // Of which order does not matter: rows that share a word put bits of their own.
      EXPECT_EQ(declared.has_bit_atomics, spec.name.find("write_kv_") != std::string_view::npos);
      EXPECT_FALSE(declared.has_other_atomics);
      EXPECT_EQ(declared.counts, is_one_of(kProductTailKernels, spec) || is_one_of(kAttentionOutKernels, spec) ||
                                     spec.name.ends_with("_round"))
          << "of groups that have come";
    }
    EXPECT_FALSE(std::ranges::equal(shader.words, shader.reversed));
  }
  EXPECT_EQ(find_shader("nothing"), nullptr);
}

}  // namespace
}  // namespace transept
