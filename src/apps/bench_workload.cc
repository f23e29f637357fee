#include "apps/bench_workload.h"

#include <algorithm>
#include <charconv>

#include "base/base64.h"
#include "base/strings.h"
#include "request/request.h"

namespace transept {
namespace {

constexpr int64_t kMaxLen = 1 << 24;
constexpr int32_t kMaxImageSide = 1 << 15;
constexpr const char* kWorkload = "Workload";

// Start, and of a transcribing model the language, the task and no timestamps: what its reference decodes from.
std::vector<int32_t> decoder_prompt_of(const LoadedModel& model) {
  std::vector<int32_t> ids = {model.prompts->decoder_start_token_id()};
  const SpeechTokens* speech = model.speech_tokens.get();
  if (speech == nullptr) return ids;
  if (!speech->languages.empty()) ids.push_back(speech->languages.front().token_id);
  if (speech->transcribe.has_value()) ids.push_back(*speech->transcribe);
  if (speech->no_timestamps.has_value()) ids.push_back(*speech->no_timestamps);
  return ids;
}

// A window of audio as the model's encoder takes it; where it takes any length, of 30 seconds or what the limits allow.
std::shared_ptr<const EncoderFeatures> window_of(const LoadedModel& model) {
  const AudioProcessor* audio = model.media == nullptr ? nullptr : model.media->audio();
  if (audio == nullptr) return nullptr;
  constexpr int64_t kSeconds = 30;
  const int64_t limit = audio->max_samples_of(model.info.max_encoder_len);
  const int64_t wanted = audio->max_samples().value_or(std::min(limit, kSeconds * audio->sampling_rate()));
  return audio->features(std::vector<float>(static_cast<size_t>(wanted)));
}

Status read_image_size(const Flags& flags, BenchWorkload& work) {
  const std::string given = flags.text_or("image-size", "640x480");
  const std::vector<std::string_view> sides = split(given, 'x');
  int32_t* const found[] = {&work.image_width, &work.image_height};
  bool is_size = sides.size() == std::size(found);
  for (size_t i = 0; is_size && i < std::size(found); ++i) {
    const char* const end = sides[i].data() + sides[i].size();
    const auto [after, error] = std::from_chars(sides[i].data(), end, *found[i]);
    is_size = error == std::errc() && after == end && *found[i] >= 1 && *found[i] <= kMaxImageSide;
  }
  if (is_size) return ok_status();
  return invalid_argument(flags.name_of("image-size"), " ", given, ": expected WxH, sides from 1 to ", kMaxImageSide);
}

}  // namespace

std::vector<FlagSpec> bench_workload_flags() {
  return {
      {"input-len", "N", "32", "encoder tokens of each request (random, all different); audio: a window of noise",
       kWorkload},
      {"image-size", "WxH", "640x480", "models that read images: sides of each picture (noise, all different)",
       kWorkload},
      {"image-prompt", "TEXT", "", "models that read images: the text beside each picture", kWorkload},
      {"output-len", "N|LO-HI", "32", "tokens that each request generates, drawn from LO to HI", kWorkload},
      {"batch-size", "N", "1", "latency: requests at once", kWorkload},
      {"num-beams", "N", "1", "beam search with so many beams", kWorkload},
      {"num-prompts", "N", "64", "throughput: requests in all", kWorkload},
      {"max-concurrency", "N", "all arrive at once",
       "throughput: a closed loop of N clients, each sends its next request when its last is answered", kWorkload},
      {"repeats", "N", "5 (throughput: 1)", "measured calls after one that warms up; medians are reported", kWorkload},
      {"speculative-oracle", "SHARE", "",
       "draft each call's own answers, recorded before, with this share of right tokens: measures speculation on any "
       "weights",
       kWorkload},
      {"json", "", "", "one JSON line instead of a table", kWorkload},
  };
}

StatusOr<BenchWorkload> read_bench_workload(const Flags& flags, bool is_latency) {
  BenchWorkload work;
  ASSIGN_OR_RETURN(const int64_t input_len, flags.integer("input-len", 1, kMaxLen, 32));
  work.input_len = static_cast<int32_t>(input_len);
  RETURN_IF_ERROR(read_image_size(flags, work));
  work.image_prompt = flags.text("image-prompt");
  ASSIGN_OR_RETURN(const Flags::Range output_len, flags.range("output-len", 2, kMaxLen, {.low = 32, .high = 32}));
  work.min_output_len = static_cast<int32_t>(output_len.low);
  work.max_output_len = static_cast<int32_t>(output_len.high);
  for (const char* other : is_latency ? std::vector{"num-prompts", "max-concurrency"} : std::vector{"batch-size"}) {
    if (!flags.has(other)) continue;
    return invalid_argument(flags.name_of(other), " belongs to bench ", is_latency ? "throughput" : "latency");
  }
  if (is_latency) {
    ASSIGN_OR_RETURN(work.num_requests, flags.integer("batch-size", 1, 65536, 1));
    work.max_in_flight = work.num_requests;
  } else {
    ASSIGN_OR_RETURN(work.num_requests, flags.integer("num-prompts", 1, 1 << 24, 64));
    ASSIGN_OR_RETURN(work.max_in_flight, flags.integer("max-concurrency", 1, 1 << 24, work.num_requests));
  }
  ASSIGN_OR_RETURN(work.num_beams, flags.integer("num-beams", 1, 64, 1));
  ASSIGN_OR_RETURN(work.repeats, flags.integer("repeats", 1, 10000, is_latency ? 5 : 1));
  return work;
}

BenchInputs::BenchInputs(const BenchWorkload& work, const LoadedModel& model, uint64_t seed)
    : work_(work),
      model_(model),
      random_(seed),
      decoder_prompt_(decoder_prompt_of(model)),
      silence_(window_of(model)) {}

StatusOr<BenchInputs> BenchInputs::create(const BenchWorkload& work, const LoadedModel& model, uint64_t seed) {
  BenchInputs inputs(work, model, seed);
  if (model.media != nullptr && model.media->image() != nullptr) {
    ASSIGN_OR_RETURN(inputs.picture_, inputs.random_picture());
    inputs.decoder_prompt_ = inputs.picture_->prompt_token_ids;
  }
  RETURN_IF_ERROR(inputs.check_lengths());
  return inputs;
}

Status BenchInputs::check_lengths() const {
  if (silence_ == nullptr && !picture_.has_value() && work_.input_len > model_.info.max_encoder_len) {
    return invalid_argument("--input-len ", work_.input_len, ": the model takes ", model_.info.max_encoder_len);
  }
  const auto prompt = static_cast<int32_t>(decoder_prompt_.size()) + 1;
  if (work_.max_output_len + prompt > model_.info.max_decoder_len) {
    return invalid_argument("--output-len ", work_.max_output_len, ": the model takes ",
                            model_.info.max_decoder_len - prompt);
  }
  return ok_status();
}

std::vector<int32_t> BenchInputs::unique_ids() {
  constexpr int kMaxDraws = 1000;
  const auto vocab = static_cast<uint64_t>(model_.info.spec.encoder_vocab());
  std::vector<int32_t> ids(static_cast<size_t>(work_.input_len));
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    for (int32_t& id : ids) id = static_cast<int32_t>(random_() % vocab);
    if (seen_.insert(ids).second) break;
  }
  return ids;
}

// Uniform in [-1, 1): about what log-mel frames are, and samples of loud noise.
std::shared_ptr<const EncoderFeatures> BenchInputs::random_features() {
  auto features = std::make_shared<EncoderFeatures>(*silence_);
  for (float& value : features->values) {
    value = static_cast<float>(static_cast<int32_t>(random_() >> 40) - (1 << 23)) * (1.0f / (1 << 23));
  }
  return features;
}

// Noise, and the prompt beside it, as a request brings them.
StatusOr<EncoderDecoderInputs> BenchInputs::random_picture() {
  std::string pixels(static_cast<size_t>(work_.image_width) * static_cast<size_t>(work_.image_height) * 3, '\0');
  for (char& level : pixels) level = static_cast<char>(random_() >> 56);
  Json image = Json::object();
  image.set("rgb", encode_base64(pixels));
  image.set("width", work_.image_width);
  image.set("height", work_.image_height);
  Json prompt = Json::object();
  if (work_.image_prompt.has_value()) prompt.set("prompt", *work_.image_prompt);
  prompt.set("multi_modal_data", Json(Json::Object{{"image", std::move(image)}}));
  Json request = Json::object();
  request.set("prompt", std::move(prompt));
  ASSIGN_OR_RETURN(const ParsedRequest parsed, parse_request(request, Json(0)));
  return model_.prompts->process(parsed.prompt, PromptProcessor::Options(parsed.prompt_options));
}

int32_t BenchInputs::input_len() const {
  if (picture_.has_value()) return picture_->num_encoder_tokens();
  return silence_ == nullptr ? work_.input_len : silence_->num_positions;
}

StatusOr<std::vector<BenchInputs::Request>> BenchInputs::draw() {
  std::vector<Request> requests(static_cast<size_t>(work_.num_requests));
  std::uniform_int_distribution<int32_t> length(work_.min_output_len, work_.max_output_len);
  for (Request& request : requests) {
    if (picture_.has_value()) {
      ASSIGN_OR_RETURN(request.inputs, random_picture());
    } else if (silence_ != nullptr) {
      request.inputs.set_encoder_features(random_features());
    } else {
      request.inputs.set_encoder_ids(unique_ids());
    }
    if (!picture_.has_value()) request.inputs.prompt_token_ids = decoder_prompt_;
    request.params.max_tokens = length(random_);
    request.params.ignore_eos = true;
    request.params.skip_cumulative_logprob = true;  // as the server does
    request.params.num_beams = static_cast<int32_t>(work_.num_beams);
    request.params.eos_token_ids = model_.generation.eos_token_ids;
  }
  return requests;
}

}  // namespace transept
