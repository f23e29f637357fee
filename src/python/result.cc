// Results for Python: values that are read when they are asked for.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "python/handles.h"

namespace nb = nanobind;

namespace transept::python {
namespace {

using IdArray = nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<1>>;
using Rows = nb::ndarray<nb::numpy, const float, nb::ndim<2>>;

nb::list list_of(const std::int32_t* ids, std::size_t size) {
  nb::list list;
  for (std::size_t i = 0; i < size; ++i) list.append(ids[i]);
  return list;
}

nb::object finish_reason(std::int32_t reason) {
  switch (reason) {
    case TRANSEPT_FINISH_STOP: return nb::str("stop");
    case TRANSEPT_FINISH_LENGTH: return nb::str("length");
    case TRANSEPT_FINISH_ABORT: return nb::str("abort");
    default: return nb::none();
  }
}

// UTF-8 by contract; a byte that is not becomes U+FFFD rather than an exception.
nb::str text_of(std::string_view text) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// (index, text, token ids, cumulative_logprob, beam_score, finish_reason) of an answer.
nb::tuple output_of(const transept::Result& result, std::size_t index) {
  const transept::Output output = result[index];
  return nb::make_tuple(output.index, text_of(output.text), list_of(output.token_ids.data(), output.token_ids.size()),
                        output.cumulative_logprob, output.beam_score, finish_reason(output.finish_reason));
}

// The names of CompletionOutput's attributes (python/transept/outputs.py), made once.
nb::handle name_of(const char* name) {
  PyObject* interned = PyUnicode_InternFromString(name);
  if (interned == nullptr) throw nb::python_error();
  return interned;
}

// An object of `kind` with the attributes that its constructor would set; Python's code for that takes four times as
// long after a wait.
nb::object made_output(nb::handle self, const transept::Output& output, nb::handle kind) {
  static const nb::handle kIndex = name_of("index"), kText = name_of("text"), kIds = name_of("token_ids"),
                          kLogprob = name_of("cumulative_logprob"), kReason = name_of("finish_reason"),
                          kScore = name_of("_beam_score"), kResult = name_of("_result"),
                          kLogprobs = name_of("_logprobs"), kNew = name_of("__new__"), kDict = name_of("__dict__");
  nb::dict members;
  members[kIndex] = output.index;
  members[kText] = text_of(output.text);
  members[kIds] = list_of(output.token_ids.data(), output.token_ids.size());
  members[kLogprob] = output.cumulative_logprob;
  members[kReason] = finish_reason(output.finish_reason);
  members[kScore] = output.beam_score;
  members[kResult] = self;
  members[kLogprobs] = nb::none();
  nb::object made = kind.attr(kNew)(kind);
  made.attr(kDict) = members;
  return made;
}

nb::list outputs_of(nb::handle_t<transept::Result> self, nb::handle kind) {
  const auto& result = nb::cast<const transept::Result&>(self);
  nb::list outputs;
  for (std::size_t i = 0; i < result.size(); ++i) outputs.append(made_output(self, result[i], kind));
  return outputs;
}

}  // namespace

void define_results(nb::module_& module) {
  using R = transept::Result;
  nb::class_<R>(module, "Result")
      .def("__len__", [](const R& result) { return result.size(); })
      .def("output", &output_of)
      .def("outputs", &outputs_of, nb::arg("kind"))
      .def(
          "token_ids_array",
          [](nb::handle_t<R> self, std::size_t index) {
            const transept::Output output = nb::cast<const R&>(self)[index];
            return IdArray(output.token_ids.data(), {output.token_ids.size()}, self);
          },
          "A view of the result's own memory.")
      .def("json", &R::json)
      .def_prop_ro("text", [](const R& result) { return text_of(result.text()); })
      .def_prop_ro("is_finished", &R::is_finished)
      .def_prop_ro("score", &R::score)
      .def_prop_ro("encoder_ids",
                   [](const R& result) {
                     const transept_result_info info = result.info();
                     return list_of(info.encoder_ids, info.num_encoder_ids);
                   })
      .def_prop_ro("decoder_ids",
                   [](const R& result) {
                     const transept_result_info info = result.info();
                     return list_of(info.decoder_ids, info.num_decoder_ids);
                   })
      .def_prop_ro("seconds",
                   [](const R& result) {
                     const transept_result_info info = result.info();
                     return nb::make_tuple(info.queue_seconds, info.first_token_seconds, info.total_seconds,
                                           info.audio_seconds);
                   })
      .def_prop_ro("encoder_output", [](nb::handle_t<R> self) {
        const transept_result_info info = nb::cast<const R&>(self).info();
        return Rows(info.encoder_output, {info.num_encoder_rows, info.encoder_width}, self);
      });
}

}  // namespace transept::python
