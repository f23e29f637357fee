// Any bytes as messages of a client of /v1/realtime, one a line: each is refused with a named error, or read; and a
// configuration that was taken is in range, and can be told.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "server/realtime_dialect.h"

namespace transept {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_error(const RealtimeError& error) {
  require(!error.code.empty() && !error.type.empty() && !error.message.empty());
  require(error.message.size() < 4096 && error.param.size() < 4096);
}

void check_config(const RealtimeConfig& config) {
  const LiveOptions options = config.live_options();
  require(options.sampling_rate >= kMinLiveRate && options.sampling_rate <= kMaxLiveRate);
  require(config.format.kind == RealtimeFormat::Kind::kPcm || config.format.rate == RealtimeFormat::kTelephoneRate);
  require(config.model.empty() || config.model == "a" || config.model == "b");
  require(options.prompt.size() <= 64);
  if (!options.turn_detection.has_value()) return;
  const LiveTurnDetection& turns = *options.turn_detection;
  require(turns.threshold >= 0 && turns.threshold <= 1);
  require(turns.prefix_padding_ms >= 0 && turns.prefix_padding_ms <= 10000);
  require(turns.silence_duration_ms >= 20 && turns.silence_duration_ms <= 10000);
}

// What was read without Json: with a member more, Json reads it.
void require_same_by_json(std::string_view text, const RealtimeMessage& message) {
  std::string more(text);
  more.insert(more.find('{') + 1, R"("x": 0, )");
  RealtimeMessage by_json;
  require(!parse_message(more, {.max_bytes = 8192, .max_depth = 16}, by_json).has_value());
  require(!by_json.audio.has_value() && by_json.type == message.type && by_json.event_id == message.event_id);
  ClientEvent event;
  require(!read_audio(by_json, event).has_value() && event.audio == *message.audio);
}

class Client final {
 public:
  explicit Client(const RealtimeDialect& dialect) : dialect_(&dialect) { dialect.begin(view_.config); }

  void send(std::string_view text) {
    RealtimeMessage message;
    ClientEvent event;
    RealtimeFailure error = parse_message(text, {.max_bytes = 4096, .max_depth = 16}, message);
    require(message.event_id.size() <= kMaxEventIdBytes);
    if (message.audio.has_value()) require_same_by_json(text, message);
    if (!error.has_value()) {
      (void)choose_dialect(message, *dialect_);
      error = dialect_->read(message, event);
    }
    RealtimeConfig config = view_.config;
    const bool updates = !error.has_value() && event.kind == ClientEvent::Kind::kUpdate;
    if (updates) error = dialect_->read_update(message, {.models = models_, .max_text_bytes = 64}, config);
    RealtimeEvents events(ids_);
    if (error.has_value()) {
      check_error(*error);
      dialect_->error(*error, message.event_id, events);
      require(events.events().size() == 1);
    } else if (updates) {
      check_config(config);
      view_.config = config;
      dialect_->updated(view_, events);
    } else if (event.kind == ClientEvent::Kind::kAppend) {
      samples_.clear();
      audio_.read(view_.config.format, event.audio, samples_);
      require(samples_.size() <= event.audio.size() + 1);
    }
    for (const auto& sent : events.events()) {
      require(is_valid_utf8(sent.text));
      const StatusOr<Json> json = Json::parse(sent.text);
      require(json.ok() && json->find("type")->as_string() == sent.type);
    }
  }

 private:
  const std::vector<std::string> models_ = {"a", "b"};
  const RealtimeDialect* dialect_;
  RealtimeView view_;
  RealtimeIds ids_{"k"};
  RealtimeAudio audio_;
  std::vector<int16_t> samples_;
};

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const RealtimeDialect* dialect : {&openai_dialect(), &beta_dialect(), &vllm_dialect()}) {
    Client client(*dialect);
    for (const std::string_view line : split(text, '\n')) client.send(line);
  }
  return 0;
}
