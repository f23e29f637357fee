#include "load/live_meter.h"

#include <utility>

namespace transept {
namespace {

std::string text_of(const Json& event, std::string_view name) {
  const Json* value = event.find(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

}  // namespace

LiveMeter::Turn& LiveMeter::turn_of(const Json& event) { return open_[text_of(event, "item_id")]; }

void LiveMeter::take(const Json& event, TimePoint now) {
  constexpr std::string_view kTranscription = "conversation.item.input_audio_transcription.";
  if (!event.is_object()) return;
  std::string type = text_of(event, "type");
  if (type.starts_with(kTranscription)) type.erase(0, kTranscription.size());
  if (type == "session.updated") {
    is_ready_ = true;
  } else if (type == "input_audio_buffer.speech_started") {
    const Json* start = event.find("audio_start_ms");
    if (start != nullptr && start->is_number()) turn_of(event).start_s = start->as_double() / 1000;
  } else if (type == "input_audio_buffer.speech_stopped") {
    Turn& turn = turn_of(event);
    turn.stopped = now;
    turn.has_stopped = true;
    turn.measure.num_early_bytes = turn.measure.told.size();
  } else if (type == "delta") {
    Turn& turn = turn_of(event);
    if (turn.measure.first_text_s < 0 && turn.start_s >= 0) {
      turn.measure.first_text_s = seconds(now - first_sample_) - turn.start_s;
    }
    if (!turn.has_stopped) ++turn.measure.num_deltas;
    turn.measure.told += text_of(event, "delta");
  } else if (type == "transept.hypothesis") {
    Turn& turn = turn_of(event);
    if (turn.has_hypothesis) ended_.hops.push_back(seconds(now - turn.hypothesis));
    turn.hypothesis = now;
    turn.has_hypothesis = true;
  } else if (type == "completed" || type == "failed") {
    Turn turn = std::move(turn_of(event));
    open_.erase(text_of(event, "item_id"));
    if (turn.has_stopped) turn.measure.completed_s = seconds(now - turn.stopped);
    turn.measure.transcript = text_of(event, "transcript");
    turn.measure.has_failed = type == "failed";
    turn.measure.is_revised = type == "completed" && !turn.measure.transcript.starts_with(turn.measure.told);
    ended_.turns.push_back(std::move(turn.measure));
  } else if (type == "error" && ended_.error.empty()) {
    const Json* error = event.find("error");
    if (error != nullptr && error->is_object()) ended_.error = text_of(*error, "message");
    if (ended_.error.empty()) ended_.error = "an error without a message";
  }
}

LiveSessionMeasure LiveMeter::measured() const {
  LiveSessionMeasure all = ended_;
  for (const auto& [item, turn] : open_) all.turns.push_back(turn.measure);
  return all;
}

}  // namespace transept
