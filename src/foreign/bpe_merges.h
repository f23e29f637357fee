// The merges of a byte-level BPE whose file has the tokens alone: tiktoken's rule is that a token's id is its rank. A
// pure function: thread-safe. Source: tiktoken 0.12, _educational.py (bpe_encode); transformers 5.23,
// convert_slow_tokenizer.py (TikTokenConverter).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

// Ids of the two tokens that each longer token is merged of, in order of ranks: the pieces that are left of its bytes
// when every merge of a lower rank was done. A token of which another number of pieces is left is never made, and has
// none. tokens: bytes by id; of equal ones the first counts.
std::vector<std::pair<int32_t, int32_t>> bpe_merges(std::span<const std::string_view> tokens);

}  // namespace transept
