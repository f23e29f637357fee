// Which heads of a published Whisper's decoder align its words with the audio. Constant data: thread-safe.
// Source: openai-whisper 20250625, __init__.py, _ALIGNMENT_HEADS, as generation_config.json of openai/whisper-* has
// them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace transept {

// Pairs of a layer and a head of the published model with this vocabulary, decoder and width; of others all heads of
// the upper half of the layers, as openai-whisper takes them. Two models are one in these sizes (large-v1 and
// large-v2): the later one's.
std::vector<std::pair<int32_t, int32_t>> whisper_alignment_heads(int32_t vocab, int32_t decoder_layers,
                                                                 int32_t decoder_heads);

}  // namespace transept
