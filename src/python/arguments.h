// Python objects as arguments of a request: views where the memory is contiguous, copies elsewhere.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/transept.h"
#include "python/handles.h"

namespace transept::python {

using Samples = nanobind::ndarray<const float, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Ids = nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// The UTF-8 of a str, which lives as long as the str. Throws UnicodeEncodeError for lone surrogates.
std::string_view utf8_of(nanobind::handle text);

// One request's parts. Points into the Python objects, which must live until the request is handed over.
class RequestArguments final {
 public:
  // `encoder`: None (the fields have it), str, ids (a list or an array of int32), EncodedInput, or (samples, rate).
  // `decoder`: None, str or ids. Throws TypeError for anything else.
  RequestArguments(nanobind::handle encoder, nanobind::handle decoder, std::string_view fields, std::uint32_t flags,
                   double timeout_seconds);
  RequestArguments(const RequestArguments&) = delete;
  RequestArguments& operator=(const RequestArguments&) = delete;

  transept_request& get() { return request_; }

 private:
  void set_encoder(nanobind::handle encoder);
  void set_decoder(nanobind::handle decoder);

  struct IdView {
    Ids array;
    std::vector<std::int32_t> copy;
    const std::int32_t* data = nullptr;
    std::size_t size = 0;
  };
  static bool read_ids(nanobind::handle object, IdView& view);

  transept_request request_ = transept_request();
  IdView encoder_ids_, decoder_ids_;
  Samples samples_;
};

}  // namespace transept::python
