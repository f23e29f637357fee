#include "core/prefix_root.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace transept {
namespace {

EncoderDecoderInputs inputs() {
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids({1, 2, 3});
  inputs.prompt_token_ids = {4, 5};
  return inputs;
}

std::string root_of(const std::function<void(EncoderDecoderInputs&)>& change) {
  EncoderDecoderInputs changed = inputs();
  change(changed);
  changed.make_digests();
  return digest_hex(prefix_root(changed));
}

TEST(PrefixRoot, DiffersWithAllThatTheKvDependsOn) {
  const std::string plain = root_of([](EncoderDecoderInputs&) {});
  EXPECT_EQ(root_of([](EncoderDecoderInputs& in) { in.prompt_token_ids = {9}; }), plain) << "the chain has the ids";
  EXPECT_EQ(root_of([](EncoderDecoderInputs& in) { in.encoder_prompt = "text"; }), plain);
  const std::set<std::string> all = {
      plain,
      root_of([](EncoderDecoderInputs& in) { in.items.clear(); }),
      root_of([](EncoderDecoderInputs& in) {
        in.set_encoder_ids({1, 2, 4});
      }),
      root_of([](EncoderDecoderInputs& in) { in.items.push_back(in.items[0]); }),
      root_of([](EncoderDecoderInputs& in) { in.cache_salt = "s"; }),
      root_of([](EncoderDecoderInputs& in) { in.items.clear(), in.cache_salt = "s"; }),
      root_of([](EncoderDecoderInputs& in) { in.items[0].consumers = Consumers::kSplice; }),
      root_of([](EncoderDecoderInputs& in) { in.items[0].splice_offset = 1; }),
      root_of([](EncoderDecoderInputs& in) {
        in.layout.ranges = {{0, 0, 3, 0}};
      }),
      root_of([](EncoderDecoderInputs& in) {
        in.layout.ranges = {{0, 0, 2, 0}};
      }),
      root_of([](EncoderDecoderInputs& in) {
        in.layout.ranges = {{0, 0, 3, 1}};
      }),
  };
  EXPECT_EQ(all.size(), 11u);
}

TEST(PrefixRoot, SaltsAreOfTheItemsToo) {
  EncoderDecoderInputs a = inputs(), b = inputs();
  a.cache_salt = "a", b.cache_salt = "b";
  a.make_digests(), b.make_digests();
  EXPECT_NE(a.items[0].digest, b.items[0].digest);
  b.cache_salt = "a";
  b.items[0].digest.reset();
  b.make_digests();
  EXPECT_EQ(a.items[0].digest, b.items[0].digest);
}

}  // namespace
}  // namespace transept
