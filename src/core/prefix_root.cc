#include "core/prefix_root.h"

#include "base/check.h"

namespace transept {

ContentDigest prefix_root(const EncoderDecoderInputs& inputs) {
  DigestBuilder builder;
  builder.add_text("prefix");
  builder.add_text(inputs.cache_salt);
  builder.add_number(static_cast<int64_t>(inputs.items.size()));
  for (const EncoderItem& item : inputs.items) {
    CHECK(item.digest.has_value(), "an item without a digest");
    builder.add_bytes(item.digest->bytes);
    builder.add_number(static_cast<int64_t>(item.consumers));
    builder.add_number(item.splice_offset);
  }
  builder.add_number(static_cast<int64_t>(inputs.layout.ranges.size()));
  for (const RowRange& range : inputs.layout.ranges) {
    for (const int32_t number : {range.first_token, range.key_begin, range.key_end, int32_t{range.kind}}) {
      builder.add_number(number);
    }
  }
  return builder.finish();
}

}  // namespace transept
