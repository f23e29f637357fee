#include "python/handles.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "python/arguments.h"
#include "python/fields.h"
#include "python/released_gil.h"
#include "python/stream.h"
#include "python/transcription.h"
#include "python/wait.h"

namespace nb = nanobind;

namespace transept::python {
namespace {

// What Python holds. Freeing the last owner ends the engine after its step.
struct PythonModel {
  ModelPointer model;
};

// The result of a load, which outlives a caller that Ctrl-C took away.
struct Load {
  Mutex mutex;
  CondVar changed;
  bool has_ended ABSL_GUARDED_BY(mutex) = false;
  ModelPointer model ABSL_GUARDED_BY(mutex);
  std::exception_ptr error ABSL_GUARDED_BY(mutex);
  std::string downloads ABSL_GUARDED_BY(mutex);                                    // a model's name; "": nothing comes
  std::int64_t done ABSL_GUARDED_BY(mutex) = 0, total ABSL_GUARDED_BY(mutex) = 0;  // bytes
};

void run_load(const std::shared_ptr<Load>& load, const std::string& name, const transept::ModelOptions& options) {
  ModelPointer model;
  std::exception_ptr error;
  try {
    model = std::make_shared<transept::Model>(name, options);
  } catch (...) {
    error = std::current_exception();
  }
  const MutexLock lock(load->mutex);
  load->has_ended = true;
  load->model = std::move(model);
  load->error = error;
  load->changed.notify_all();
}

// Tells `on_download` how much there is, where that is more than it knows.
void tell_download(Load& load, const nb::object& on_download, std::int64_t& told) {
  std::string name;
  std::int64_t done = 0, total = 0;
  {
    const MutexLock lock(load.mutex);
    if (load.downloads.empty() || load.done == told) return;
    name = load.downloads;
    done = told = load.done;
    total = load.total;
  }
  const nb::gil_scoped_acquire acquired;
  on_download(name, done, total);
}

// On a thread of its own: a model of the hub may take minutes to come, and Ctrl-C does not wait for it. `on_download`
// is called with (name, bytes that are there, bytes that there will be), on the caller's thread; None: not told.
PythonModel load_model(const std::string& name, const std::string& json, std::int32_t threads,
                       std::int32_t max_queued_requests, const nb::object& on_download) {
  const auto load = std::make_shared<Load>();
  transept::ModelOptions options;
  options.threads = threads;
  options.max_queued_requests = max_queued_requests;
  options.json = json;
  if (!on_download.is_none()) {
    options.on_download = [load](const std::string& model, std::int64_t done, std::int64_t total) {
      const MutexLock lock(load->mutex);
      load->downloads = model;
      load->done = done;
      load->total = total;
    };
  }
  std::int64_t told = -1;
  std::thread([load, name, options] { run_load(load, name, options); }).detach();
  wait_in_slices(std::nullopt, [&](double slice) {
    tell_download(*load, on_download, told);
    const MutexLock lock(load->mutex);
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<int64_t>(slice * 1e6));
    if (!load->has_ended) load->changed.wait_until(load->mutex, end);
    return load->has_ended;
  });
  {
    const ReleasedGil release;
    tell_download(*load, on_download, told);
  }
  const MutexLock lock(load->mutex);
  if (load->error != nullptr) std::rethrow_exception(load->error);
  return {std::move(load->model)};
}

std::unique_ptr<RunningRequest> submit(const PythonModel& self, nb::handle encoder, nb::handle decoder,
                                       const nb::str& fields, std::uint32_t flags, double timeout,
                                       std::shared_ptr<Notifier> notifier, std::int64_t key) {
  RequestArguments arguments(encoder, decoder, utf8_of(fields), flags, timeout);
  return std::make_unique<RunningRequest>(self.model, arguments.get(), std::move(notifier), key);
}

// The whole answer of a request of its own, by a SamplingParams: submit() and next() without a stream that Python
// holds, and without the GIL from the one to the other.
transept::Result answer(const PythonModel& self, nb::handle encoder, nb::handle params, double timeout) {
  const std::string fields = fields_json(params);
  RequestArguments arguments(encoder, nb::none(), fields, 0, timeout);
  std::optional<transept::Stream> stream;
  std::optional<transept::Result> result;
  wait_in_slices(std::nullopt, [&](double slice) {
    if (!stream.has_value()) {
      transept_stream* submitted = nullptr;
      detail::call(transept_submit, self.model->get(), static_cast<const transept_request*>(&arguments.get()),
                   &submitted);
      stream.emplace(submitted);
    }
    result = stream->next(slice);
    return result.has_value();
  });
  return *std::move(result);
}

std::unique_ptr<EncodedInput> encode(const PythonModel& self, nb::handle encoder, const nb::str& fields) {
  RequestArguments arguments(encoder, nb::none(), utf8_of(fields), 0, 0);
  transept_encoded* encoded = nullptr;
  {
    const ReleasedGil release;
    detail::call(transept_encode, self.model->get(), static_cast<const transept_request*>(&arguments.get()), &encoded);
  }
  return std::make_unique<EncodedInput>(EncodedInput{self.model, transept::Encoded(encoded)});
}

std::vector<std::int32_t> tokenize(const PythonModel& self, const nb::str& text, bool decoder_side,
                                   bool add_special_tokens, std::string source_lang, std::string target_lang) {
  transept::TokenizeOptions options;
  options.decoder_side = decoder_side;
  options.add_special_tokens = add_special_tokens;
  options.source_lang = std::move(source_lang);
  options.target_lang = std::move(target_lang);
  const std::string_view view = utf8_of(text);
  const ReleasedGil release;
  return self.model->tokenize(view, options);
}

std::string detokenize(const PythonModel& self, const std::vector<std::int32_t>& ids, bool skip_special_tokens) {
  const ReleasedGil release;
  return self.model->detokenize(ids, skip_special_tokens);
}

std::unique_ptr<Transcription> transcribe(const PythonModel& self, nb::object audio, std::string language,
                                          std::string task, std::string options) {
  return std::make_unique<Transcription>(self.model, std::move(audio), std::move(language), std::move(task),
                                         std::move(options));
}

nb::object spelling(const PythonModel& self, std::int32_t id, bool decoder_side) {
  const std::string text = self.model->token_spelling(id, decoder_side);
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace

void define_models(nb::module_& module) {
  using M = PythonModel;
  const nb::call_guard<ReleasedGil> no_gil;
  nb::class_<EncodedInput>(module, "Encoded").def_prop_ro("num_positions", [](const EncodedInput& input) {
    return input.encoded.num_positions();
  });
  nb::class_<M>(module, "Model")
      .def("submit", &submit, nb::arg("encoder").none(), nb::arg("decoder").none(), nb::arg("fields") = "",
           nb::arg("flags") = 0, nb::arg("timeout") = 0.0, nb::arg("notifier").none() = nb::none(), nb::arg("key") = 0)
      .def("answer", &answer, nb::arg("encoder"), nb::arg("params"), nb::arg("timeout"))
      .def("encode", &encode, nb::arg("encoder").none(), nb::arg("fields") = "")
      .def("tokenize", &tokenize, nb::arg("text"), nb::arg("decoder_side"), nb::arg("add_special_tokens"),
           nb::arg("source_lang"), nb::arg("target_lang"))
      .def("detokenize", &detokenize, nb::arg("ids"), nb::arg("skip_special_tokens"))
      .def("token_spelling", &spelling, nb::arg("id"), nb::arg("decoder_side"))
      .def("transcribe", &transcribe, nb::arg("audio"), nb::arg("language"), nb::arg("task"), nb::arg("options"))
      .def(
          "info", [](const M& self) { return self.model->info(); }, no_gil)
      .def(
          "stats", [](const M& self) { return self.model->stats(); }, no_gil)
      .def(
          "stop", [](const M& self) { self.model->stop(); }, no_gil)
      .def(
          "drain", [](const M& self, double timeout) { self.model->drain(timeout); }, nb::arg("timeout"), no_gil);
  module.def("load", &load_model, nb::arg("model"), nb::arg("options"), nb::arg("threads"),
             nb::arg("max_queued_requests"), nb::arg("on_download") = nb::none());
}

}  // namespace transept::python
