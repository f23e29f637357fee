// What is to be encoded, as bytes: the answer of GET /v1/inputs/{request_id}/{input_id}, and a body of POST /v1/encode
// (application/x-transept-features). docs/formats/features.md has the layout. Bytes come from any process that reaches
// the server: every number is checked, and an input is refused or taken whole. Whether a model can encode it is for the
// engine to say. Pure functions: thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/encoder_item.h"

namespace transept {

inline constexpr std::string_view kFeaturesContentType = "application/x-transept-features";

// Replaces `bytes`. Not encoded: what is of one process alone (`digest`, `remote`, `content`).
void encode_input(const EncoderItem& item, std::vector<std::byte>& bytes);

// Errors: kInvalidArgument, by the field's name: another version; an item with nothing to encode; values that are not
// as many as the shape says; a number that is out of its range; bytes behind the last field.
StatusOr<EncoderItem> decode_input(std::span<const std::byte> bytes);

}  // namespace transept
