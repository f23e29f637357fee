#include "multimodal/florence_answers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "multimodal/florence_phrases.h"
#include "multimodal/python_strip.h"

namespace transept {
namespace {

using florence::find_phrases;
using florence::kBegin;
using florence::kEnd;
using florence::kPlace;
using florence::kSeparator;
using florence::label_of;
using florence::Place;
using florence::place_at;
using florence::places_from;

class Picture final {
 public:
  Picture(int64_t width, int64_t height) : width_(width), height_(height) {}

  // The middles of pairs of bins, x and y by turns, in pixels; what is left of the last pair is dropped.
  Json points(std::span<const int64_t> bins) const {
    Json list = Json::array();
    for (size_t i = 0; i + 2 <= bins.size(); i += 2) {
      list.push_back(pixel(bins[i], width_));
      list.push_back(pixel(bins[i + 1], height_));
    }
    return list;
  }

 private:
  // In float32, as the reference.
  static int64_t pixel(int64_t bin, int64_t size) {
    constexpr double kBins = 1000;
    const auto scale = static_cast<float>(static_cast<double>(size) / kBins);
    const float place = (static_cast<float>(bin) + 0.5f) * scale;
    return static_cast<int64_t>(std::min(place, static_cast<float>(std::numeric_limits<int32_t>::max())));
  }

  int64_t width_, height_;
};

struct Instances {
  Json shapes = Json::array(), labels = Json::array();
};

struct Task {
  std::string_view word;
  Json (*answer)(std::string_view text, const Picture& picture, std::span<const std::string_view> banned);
};

Json object_of(std::initializer_list<std::pair<const char*, Json>> members) {
  Json object = Json::object();
  for (const auto& [key, value] : members) object.set(key, value);
  return object;
}

Instances find_boxes(std::string_view text, const Picture& picture, bool are_empty,
                     std::span<const std::string_view> banned) {
  Instances found;
  for (const std::string_view phrase : find_phrases(text, are_empty, false)) {
    const std::optional<std::string_view> label = label_of(phrase, false);
    if (!label.has_value() || std::ranges::find(banned, *label) != banned.end()) continue;
    size_t end = 0;
    const std::vector<int64_t> bins = places_from(phrase, phrase.find(kPlace), end);
    for (size_t i = 0; i + 4 <= bins.size(); i += 4) {
      found.shapes.push_back(picture.points(std::span(bins).subspan(i, 4)));
      found.labels.push_back(florence::without_others_than_ascii(*label));
    }
  }
  return found;
}

// The parts between <poly> and </poly>; the whole phrase if it has not both.
std::vector<std::string_view> polygon_texts(std::string_view phrase) {
  if (phrase.find(kBegin) == std::string_view::npos || phrase.find(kEnd) == std::string_view::npos) return {phrase};
  std::vector<std::string_view> texts;
  for (size_t at = phrase.find(kBegin); at != std::string_view::npos; at = phrase.find(kBegin, at)) {
    const size_t begin = at + kBegin.size(), end = phrase.find(kEnd, begin);
    if (end == std::string_view::npos) break;
    texts.push_back(phrase.substr(begin, end - begin));
    at = end + kEnd.size();
  }
  return texts;
}

// Runs of places in front of a separator or at the end. Nothing: there is none.
std::optional<Json> polygons_of(std::string_view text, const Picture& picture) {
  std::optional<Json> polygons;
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    size_t end = 0;
    const std::vector<int64_t> bins = places_from(text, at, end);
    if (bins.empty()) {
      ++at;
      continue;
    }
    at = end;
    if (end < text.size() && !text.substr(end).starts_with(kSeparator)) continue;
    if (!polygons.has_value()) polygons = Json::array();
    polygons->push_back(picture.points(bins));
  }
  return polygons;
}

Instances find_polygons(std::string_view text, const Picture& picture, bool are_empty) {
  Instances found;
  for (const std::string_view phrase : find_phrases(text, are_empty, true)) {
    const std::optional<Place> first = place_at(phrase, 0);
    const std::optional<std::string_view> label = label_of(phrase.substr(first.has_value() ? first->end : 0), true);
    if (!label.has_value()) continue;
    for (const std::string_view part : polygon_texts(phrase)) {
      std::optional<Json> polygons = polygons_of(part, picture);
      if (!polygons.has_value()) continue;
      found.shapes.push_back(*std::move(polygons));
      found.labels.push_back(std::string(*label));
    }
  }
  return found;
}

Json boxes(std::string_view text, const Picture& picture, std::span<const std::string_view> /*banned*/) {
  Instances found = find_boxes(text, picture, false, {});
  return object_of({{"bboxes", std::move(found.shapes)}, {"labels", std::move(found.labels)}});
}

Json boxes_alone(std::string_view text, const Picture& picture, std::span<const std::string_view> /*banned*/) {
  Instances found = find_boxes(text, picture, true, {});
  return object_of({{"bboxes", std::move(found.shapes)}, {"labels", std::move(found.labels)}});
}

Json grounding(std::string_view text, const Picture& picture, std::span<const std::string_view> banned) {
  Instances found = find_boxes(text, picture, false, banned);
  return object_of({{"bboxes", std::move(found.shapes)}, {"labels", std::move(found.labels)}});
}

Json polygons(std::string_view text, const Picture& picture, std::span<const std::string_view> /*banned*/) {
  Instances found = find_polygons(text, picture, true);
  return object_of({{"polygons", std::move(found.shapes)}, {"labels", std::move(found.labels)}});
}

Json boxes_or_polygons(std::string_view text, const Picture& picture, std::span<const std::string_view> /*banned*/) {
  const bool has_polygons = text.find(kBegin) != std::string_view::npos;
  Instances of_boxes, of_polygons;
  (has_polygons ? of_polygons : of_boxes) =
      has_polygons ? find_polygons(text, picture, false) : find_boxes(text, picture, false, {});
  return object_of({{"bboxes", std::move(of_boxes.shapes)},
                    {"bboxes_labels", std::move(of_boxes.labels)},
                    {"polygons", std::move(of_polygons.shapes)},
                    {"polygons_labels", std::move(of_polygons.labels)}});
}

// At least a character of one line, and eight places behind it: the first that are.
Json quads(std::string_view text, const Picture& picture, std::span<const std::string_view> /*banned*/) {
  constexpr size_t kNumbers = 8;
  Instances found;
  // The first place from which on there are eight, searched once for all beginnings.
  size_t begin = 0, place = 0, end = 0;
  std::vector<int64_t> bins;
  while (begin < text.size()) {
    for (place = std::max(place, begin + 1); place < text.size(); ++place) {
      place = text.find('<', place);
      if (place == std::string_view::npos) break;
      end = place;
      bins.clear();
      for (size_t i = 0; i < kNumbers; ++i) {
        const std::optional<Place> one = place_at(text, end);
        if (!one.has_value()) break;
        bins.push_back(one->bin);
        end = one->end;
      }
      if (bins.size() == kNumbers) break;
    }
    if (place >= text.size()) break;
    const std::string_view label = text.substr(begin, place - begin);
    if (const size_t line_end = label.rfind('\n'); line_end != std::string_view::npos) {
      begin += line_end + 1;
      continue;
    }
    found.shapes.push_back(picture.points(bins));
    found.labels.push_back(std::string(python_strip(label)));
    begin = end;
  }
  return object_of({{"quad_boxes", std::move(found.shapes)}, {"labels", std::move(found.labels)}});
}

constexpr Task kTasks[] = {
    {"<OCR_WITH_REGION>", quads},
    {"<OD>", boxes},
    {"<DENSE_REGION_CAPTION>", boxes},
    {"<CAPTION_TO_PHRASE_GROUNDING>", grounding},
    {"<REFERRING_EXPRESSION_SEGMENTATION>", polygons},
    {"<REGION_TO_SEGMENTATION>", polygons},
    {"<OPEN_VOCABULARY_DETECTION>", boxes_or_polygons},
    {"<REGION_PROPOSAL>", boxes_alone},
};

constexpr std::string_view kBanned[] = {
    "it",        "I",        "me",         "mine",      "you",        "your",          "yours",      "he",
    "him",       "his",      "she",        "her",       "hers",       "they",          "them",       "their",
    "theirs",    "one",      "oneself",    "we",        "us",         "our",           "ours",       "its",
    "myself",    "yourself", "himself",    "herself",   "itself",     "ourselves",     "yourselves", "themselves",
    "this",      "that",     "these",      "those",     "who",        "whom",          "whose",      "which",
    "what",      "all",      "another",    "any",       "anybody",    "anyone",        "anything",   "each",
    "everybody", "everyone", "everything", "few",       "many",       "nobody",        "none",       "several",
    "some",      "somebody", "someone",    "something", "each other", "one another",   "the image",  "image",
    "images",    "the",      "a",          "an",        "a group",    "other objects", "lots",       "a set",
};

}  // namespace

std::span<const std::string_view> florence_banned_phrases() { return kBanned; }

Json florence_answer(std::string_view task, std::string_view text, int64_t width, int64_t height,
                     std::span<const std::string_view> banned_phrases) {
  std::string rest(text);
  for (const std::string_view special : {"<s>", "</s>"}) florence::remove_all(rest, special);
  const auto* known = std::ranges::find(kTasks, task, &Task::word);
  Json answer;
  if (known == std::end(kTasks)) {
    answer = Json(std::string(python_strip(rest)));
  } else {
    florence::remove_all(rest, "<pad>");
    answer = known->answer(rest, Picture(width, height), banned_phrases);
  }
  Json object = Json::object();
  object.set(task, std::move(answer));
  return object;
}

}  // namespace transept
