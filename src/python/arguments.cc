#include "python/arguments.h"

#include <nanobind/stl/vector.h>

#include <utility>

namespace nb = nanobind;

namespace transept::python {
namespace {

const std::int32_t kNoId = 0;  // an empty list is given, and refused as empty

[[noreturn]] void refuse(const char* side, nb::handle object) {
  const nb::str type = nb::str(nb::handle(Py_TYPE(object.ptr())));
  throw nb::type_error((std::string("the ") + side + " prompt cannot be a " + type.c_str()).c_str());
}

}  // namespace

std::string_view utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<std::size_t>(size)};
}

RequestArguments::RequestArguments(nb::handle encoder, nb::handle decoder, std::string_view fields, std::uint32_t flags,
                                   double timeout_seconds) {
  request_.struct_size = sizeof request_;
  request_.flags = flags;
  request_.timeout_seconds = timeout_seconds;
  request_.fields_json = {fields.data(), fields.size()};
  set_encoder(encoder);
  set_decoder(decoder);
}

bool RequestArguments::read_ids(nb::handle object, IdView& view) {
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    if (!nb::try_cast(object, view.copy)) throw nb::type_error("ids of a prompt are whole numbers of 32 bits");
    view.data = view.copy.empty() ? &kNoId : view.copy.data();
    view.size = view.copy.size();
    return true;
  }
  if (!nb::try_cast(object, view.array, false)) return false;
  view.data = view.array.size() == 0 ? &kNoId : view.array.data();
  view.size = view.array.size();
  return true;
}

void RequestArguments::set_encoder(nb::handle encoder) {
  if (encoder.is_none()) return;
  if (nb::isinstance<nb::str>(encoder)) {
    const std::string_view text = utf8_of(encoder);
    request_.prompt = {text.data(), text.size()};
  } else if (nb::isinstance<EncodedInput>(encoder)) {
    request_.encoded = nb::cast<EncodedInput&>(encoder).encoded.get();
  } else if (nb::isinstance<nb::tuple>(encoder) && nb::len(encoder) == 2 && nb::try_cast(encoder[0], samples_, false)) {
    request_.samples = samples_.data();
    request_.num_samples = samples_.size();
    request_.sampling_rate = nb::cast<std::int32_t>(encoder[1]);
  } else if (read_ids(encoder, encoder_ids_)) {
    request_.prompt_ids = encoder_ids_.data;
    request_.num_prompt_ids = encoder_ids_.size;
  } else {
    refuse("encoder", encoder);
  }
}

void RequestArguments::set_decoder(nb::handle decoder) {
  if (decoder.is_none()) return;
  if (nb::isinstance<nb::str>(decoder)) {
    const std::string_view text = utf8_of(decoder);
    request_.decoder_prompt = {text.data(), text.size()};
  } else if (read_ids(decoder, decoder_ids_)) {
    request_.decoder_ids = decoder_ids_.data;
    request_.num_decoder_ids = decoder_ids_.size;
  } else {
    refuse("decoder", decoder);
  }
}

}  // namespace transept::python
