#include "python/transcription.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "python/arguments.h"
#include "python/released_gil.h"
#include "python/wait.h"

namespace nb = nanobind;

namespace transept::python {
namespace {

transept::Audio audio_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return transept::Audio::file(std::string(utf8_of(object)));
  if (nb::isinstance<nb::bytes>(object)) {
    const auto bytes = nb::borrow<nb::bytes>(object);
    return transept::Audio::bytes(bytes.c_str(), bytes.size());
  }
  Samples samples;
  if (!nb::try_cast(object, samples, false)) {
    throw nb::type_error("audio must be a str, bytes, or a contiguous array of float32 of one dimension");
  }
  static const float no_sample = 0;
  return transept::Audio::samples({samples.size() == 0 ? &no_sample : samples.data(), samples.size()});
}

std::chrono::steady_clock::time_point after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

nb::object words_of(const SegmentCopy& segment) {
  nb::list words;
  for (const WordCopy& word : segment.words) {
    words.append(nb::make_tuple(word.start, word.end, word.word, word.probability));
  }
  return words;
}

nb::object next_of(Transcription& transcription) {
  const std::optional<SegmentCopy> segment = transcription.next();
  if (!segment.has_value()) return nb::none();
  nb::list ids;
  for (const std::int32_t id : segment->token_ids) ids.append(id);
  return nb::make_tuple(segment->id, segment->seek, segment->start, segment->end, segment->text, ids,
                        segment->avg_logprob, segment->compression_ratio, segment->no_speech_prob, words_of(*segment),
                        segment->temperature);
}

nb::object languages_of(Transcription& transcription) {
  nb::list all;
  for (const Guess& guess : transcription.languages()) all.append(nb::make_tuple(guess.code, guess.probability));
  return all;
}

// Owns the samples that the library gave.
nb::object decode_bytes(nb::handle audio, std::int32_t sampling_rate, double max_seconds) {
  const transept::Audio source = audio_of(audio);
  const transept_audio given = source.get();
  float* samples = nullptr;
  std::size_t size = 0;
  {
    const ReleasedGil release;
    detail::call(transept_decode_audio, &given, sampling_rate, max_seconds, &samples, &size);
  }
  const nb::capsule owner(samples, [](void* memory) noexcept { transept_free(memory); });
  return nb::cast(nb::ndarray<nb::numpy, float, nb::ndim<1>>(samples, {size}, owner));
}

}  // namespace

SegmentCopy::SegmentCopy(const transept::Segment& segment)
    : id(segment.id),
      seek(segment.seek),
      start(segment.start),
      end(segment.end),
      text(segment.text),
      token_ids(segment.token_ids.begin(), segment.token_ids.end()),
      temperature(segment.temperature),
      avg_logprob(segment.avg_logprob),
      compression_ratio(segment.compression_ratio),
      no_speech_prob(segment.no_speech_prob) {
  for (const transept_word& word : segment.words) {
    words.push_back({std::string(detail::view(word.word)), word.start, word.end, word.probability});
  }
}

// Waits until the reader has taken the segment, so that one who reads no more costs no more than a window.
bool Transcription::State::add(SegmentCopy segment) {
  const MutexLock lock(mutex);
  segments.push_back(std::move(segment));
  changed.notify_all();
  while (!segments.empty() && !is_cancelled) changed.wait(mutex);
  return !is_cancelled;
}

template <typename Change>
bool Transcription::State::change(const Change& change_it) {
  const MutexLock lock(mutex);
  change_it();
  changed.notify_all();
  return !is_cancelled;
}

Transcription::Transcription(ModelPointer model, nb::object audio, std::string language, std::string task,
                             std::string json)
    : process_(::getpid()),
      model_(std::move(model)),
      audio_(std::move(audio)),
      state_(new State),
      cancellation_(new transept::Cancellation) {
  const transept::Audio source = audio_of(audio_);
  transept::TranscribeOptions options;
  options.language = std::move(language);
  options.task = std::move(task);
  options.json = std::move(json);
  options.cancellation = cancellation_;
  options.on_segment = [this](const transept::Segment& segment) { return state_->add(SegmentCopy(segment)); };
  options.on_progress = [this](double done, double) {
    return state_->change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { state_->done_seconds = done; });
  };
  options.on_duration = [this](double seconds) {
    return state_->change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { state_->duration = seconds; });
  };
  options.on_languages = [this](transept::Span<transept_language> languages) {
    return state_->change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      state_->has_languages = true;
      for (const transept_language& guess : languages) {
        state_->languages.push_back({std::string(detail::view(guess.code)), guess.probability});
      }
    });
  };
  thread_ = new std::thread([this, source, options] { run(source, options); });
}

void Transcription::run(const transept::Audio& audio, const transept::TranscribeOptions& options) {
  std::exception_ptr error;
  std::string language;
  try {
    language = model_->transcribe(audio, options).language();
  } catch (...) {
    error = std::current_exception();
  }
  state_->change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    state_->has_ended = true;
    state_->error = error;
    if (error == nullptr) state_->language = language;
  });
}

Transcription::~Transcription() {
  if (::getpid() != process_) return;  // the thread is the parent's; what it holds stays
  {
    const ReleasedGil release;
    cancel();
    thread_->join();
  }
  delete thread_;
  delete cancellation_;
  delete state_;
}

void Transcription::check_process() const {
  if (::getpid() == process_) return;
  throw transept::Error(TRANSEPT_FORKED, "the transcription belongs to the parent process; load models after the fork",
                        "");
}

template <typename Predicate>
void Transcription::wait_for(const Predicate& is_there) {
  check_process();
  wait_in_slices(std::nullopt, [&](double slice) {
    const MutexLock lock(state_->mutex);
    if (!is_there(*state_) && !state_->has_ended) state_->changed.wait_until(state_->mutex, after(slice));
    return is_there(*state_) || state_->has_ended;
  });
  const MutexLock lock(state_->mutex);
  if (!is_there(*state_) && state_->error != nullptr) std::rethrow_exception(state_->error);
}

std::optional<double> Transcription::duration() {
  wait_for([](const State& state) ABSL_NO_THREAD_SAFETY_ANALYSIS { return state.duration.has_value(); });
  const MutexLock lock(state_->mutex);
  return state_->duration;
}

std::vector<Guess> Transcription::languages() {
  wait_for([](const State& state) ABSL_NO_THREAD_SAFETY_ANALYSIS { return state.has_languages; });
  const MutexLock lock(state_->mutex);
  return state_->languages;
}

std::optional<SegmentCopy> Transcription::next() {
  wait_for([](const State& state) ABSL_NO_THREAD_SAFETY_ANALYSIS { return !state.segments.empty(); });
  const MutexLock lock(state_->mutex);
  if (state_->segments.empty()) return std::nullopt;
  std::optional<SegmentCopy> segment(std::move(state_->segments.front()));
  state_->segments.pop_front();
  state_->changed.notify_all();
  return segment;
}

std::optional<std::string> Transcription::language() {
  check_process();
  const MutexLock lock(state_->mutex);
  return state_->language;
}

double Transcription::done_seconds() {
  check_process();
  const MutexLock lock(state_->mutex);
  return state_->done_seconds;
}

void Transcription::cancel() {
  check_process();
  state_->change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { state_->is_cancelled = true; });
  cancellation_->cancel();
}

void define_transcriptions(nb::module_& module) {
  nb::class_<Transcription>(module, "Transcription")
      .def("duration", &Transcription::duration)
      .def("languages", &languages_of)
      .def("next", &next_of)
      .def("language", &Transcription::language)
      .def_prop_ro("done_seconds", &Transcription::done_seconds)
      .def("cancel", &Transcription::cancel);
  module.def("decode_audio", &decode_bytes, nb::arg("audio"), nb::arg("sampling_rate") = 16000,
             nb::arg("max_seconds") = 0.0);
}

}  // namespace transept::python
