// What Florence-2's answers say, by task (transformers' Florence2Processor.post_process_generation): boxes, polygons
// and labels from texts with places (`<loc_0>` to `<loc_999>`), in pixels of the picture that was sent. Pure functions:
// thread-safe, in time linear in the text.
//
// Where the reference differs: it takes digits of any script in a place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"

namespace transept {

// Phrases that <CAPTION_TO_PHRASE_GROUNDING> gives no boxes, as published files have them (processor_config.json:
// post_processor_config.phrase_grounding.banned_grounding_tokens).
std::span<const std::string_view> florence_banned_phrases();

// Returns {task: answer}. text: the answer's, with its places; the special tokens <s>, </s> and <pad> are left out.
// width, height: of the picture that was sent, in pixels. The answer, by task:
//   <OD>, <DENSE_REGION_CAPTION>, <REGION_PROPOSAL>, <CAPTION_TO_PHRASE_GROUNDING>:
//       {"bboxes": [[x, y, x, y], ..], "labels": [..]}
//   <OCR_WITH_REGION>: {"quad_boxes": [[x, y, x, y, x, y, x, y], ..], "labels": [..]}
//   <REFERRING_EXPRESSION_SEGMENTATION>, <REGION_TO_SEGMENTATION>:
//       {"polygons": [[[x, y, ..], ..], ..], "labels": [..]}
//   <OPEN_VOCABULARY_DETECTION>: {"bboxes", "bboxes_labels", "polygons", "polygons_labels"}
//   any other: the text, without white space at its ends.
// REQUIRES: valid UTF-8.
Json florence_answer(std::string_view task, std::string_view text, int64_t width, int64_t height,
                     std::span<const std::string_view> banned_phrases = florence_banned_phrases());

}  // namespace transept
