#include "foreign/whisper_alignment.h"

#include <initializer_list>

namespace transept {
namespace {

struct Published {
  int32_t vocab, layers, heads;
  std::initializer_list<std::pair<int32_t, int32_t>> aligning;
};

}  // namespace

std::vector<std::pair<int32_t, int32_t>> whisper_alignment_heads(int32_t vocab, int32_t decoder_layers,
                                                                 int32_t decoder_heads) {
  // clang-format off
  static const Published kPublished[] = {
      {51864, 4, 6, {{1, 0}, {2, 0}, {2, 5}, {3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}}},  // tiny.en
      {51865, 4, 6, {{2, 2}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}}},                  // tiny
      {51864, 6, 8, {{3, 3}, {4, 7}, {5, 1}, {5, 5}, {5, 7}}},                          // base.en
      {51865, 6, 8, {{3, 1}, {4, 2}, {4, 3}, {4, 7}, {5, 1}, {5, 2}, {5, 4}, {5, 6}}},  // base
      {51864, 12, 12, {{6, 6}, {7, 0}, {7, 3}, {7, 8}, {8, 2}, {8, 5}, {8, 7}, {9, 0}, {9, 4}, {9, 8}, {9, 10}, {10, 0},
                       {10, 1}, {10, 2}, {10, 3}, {10, 6}, {10, 11}, {11, 2}, {11, 4}}},                     // small.en
      {51865, 12, 12, {{5, 3}, {5, 9}, {8, 0}, {8, 4}, {8, 7}, {8, 8}, {9, 0}, {9, 7}, {9, 9}, {10, 5}}},    // small
      {51864, 24, 16, {{11, 4}, {14, 1}, {14, 12}, {14, 14}, {15, 4}, {16, 0}, {16, 4}, {16, 9}, {17, 12}, {17, 14},
                       {18, 7}, {18, 10}, {18, 15}, {20, 0}, {20, 3}, {20, 9}, {20, 14}, {21, 12}}},         // medium.en
      {51865, 24, 16, {{13, 15}, {15, 4}, {15, 15}, {16, 1}, {20, 0}, {23, 4}}},                             // medium
      {51865, 32, 20, {{10, 12}, {13, 17}, {16, 11}, {16, 12}, {16, 13}, {17, 15}, {17, 16}, {18, 4}, {18, 11}, {18, 19},
                       {19, 11}, {21, 2}, {21, 3}, {22, 3}, {22, 9}, {22, 12}, {23, 5}, {23, 7}, {23, 13}, {25, 5},
                       {26, 1}, {26, 12}, {27, 15}}},                                                        // large-v2
      {51866, 32, 20, {{7, 0}, {10, 17}, {12, 18}, {13, 12}, {16, 1}, {17, 14}, {19, 11}, {21, 4}, {24, 1},
                       {25, 6}}},                                                                            // large-v3
      {51866, 4, 20, {{2, 4}, {2, 11}, {3, 3}, {3, 6}, {3, 11}, {3, 14}}},                                   // turbo
  };
  // clang-format on
  for (const Published& model : kPublished) {
    if (model.vocab == vocab && model.layers == decoder_layers && model.heads == decoder_heads) return model.aligning;
  }
  std::vector<std::pair<int32_t, int32_t>> heads;
  for (int32_t layer = decoder_layers / 2; layer < decoder_layers; ++layer) {
    for (int32_t head = 0; head < decoder_heads; ++head) heads.emplace_back(layer, head);
  }
  return heads;
}

}  // namespace transept
