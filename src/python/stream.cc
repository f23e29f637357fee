#include "python/stream.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

#include "python/released_gil.h"
#include "python/wait.h"

namespace nb = nanobind;

namespace transept::python {

Notifier::Notifier() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw std::runtime_error("eventfd: no descriptor is left");
}

Notifier::~Notifier() { ::close(descriptor_); }

void Notifier::notify(std::int64_t key) {
  const MutexLock lock(mutex_);
  keys_.push_back(key);
  if (keys_.size() > 1) return;  // the descriptor is readable already
  const std::uint64_t one = 1;
  while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

std::vector<std::int64_t> Notifier::take() {
  const MutexLock lock(mutex_);
  std::uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {
  }
  return std::exchange(keys_, {});
}

RunningRequest::RunningRequest(ModelPointer model, transept_request& request, std::shared_ptr<Notifier> notifier,
                               std::int64_t key)
    : model_(std::move(model)), target_(std::make_unique<Target>(Target{std::move(notifier), key})) {
  if (target_->notifier != nullptr) {
    request.on_ready = [](void* data) {
      const Target& target = *static_cast<Target*>(data);
      target.notifier->notify(target.key);
    };
    request.on_ready_data = target_.get();
  }
  transept_stream* stream = nullptr;
  {
    const ReleasedGil release;
    detail::call(transept_submit, model_->get(), static_cast<const transept_request*>(&request), &stream);
  }
  stream_.emplace(stream);
}

std::optional<transept::Result> RunningRequest::next(std::optional<double> timeout_seconds) {
  std::optional<transept::Result> result;
  if (timeout_seconds == 0.0) return stream_->next(0);  // an event loop's: what is there
  wait_in_slices(timeout_seconds, [&](double slice) {
    result = stream_->next(slice);
    return result.has_value();
  });
  return result;
}

void define_streams(nb::module_& module) {
  nb::class_<Notifier>(module, "Notifier")
      .def(nb::init<>())
      .def("fileno", &Notifier::fileno)
      .def("take", &Notifier::take);
  nb::class_<RunningRequest>(module, "Stream")
      .def("next", &RunningRequest::next, nb::arg("timeout") = nb::none())
      .def_prop_ro("has_ended", &RunningRequest::has_ended)
      .def("abort", &RunningRequest::abort);
}

}  // namespace transept::python
