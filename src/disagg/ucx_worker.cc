#include "disagg/ucx_worker.h"

#include <poll.h>

#include "base/clock.h"

namespace transept {
namespace {

constexpr Duration kLongestClose = std::chrono::seconds(1);

}  // namespace

StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::create() {
  RETURN_IF_ERROR(load_ucx());
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  RETURN_IF_ERROR(worker->start());
  return worker;
}

Status UcxWorker::start() {
  const auto check = [](ucs_status_t status) {
    return status == UCS_OK ? ok_status() : absl::UnavailableError(ucx_error(status));
  };
  ucp_config_t* config = nullptr;
  RETURN_IF_ERROR(check(ucx().ucp_config_read(nullptr, nullptr, &config)));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const ucs_status_t begun = ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  ucx().ucp_config_release(config);
  RETURN_IF_ERROR(check(begun));
  ucp_worker_params_t of_worker{};
  of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  of_worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  RETURN_IF_ERROR(check(ucx().ucp_worker_create(context_, &of_worker, &worker_)));
  return check(ucx().ucp_worker_get_efd(worker_, &descriptor_));
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) ucx().ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucx().ucp_cleanup(context_);
}

void UcxWorker::wait(Duration longest) const {
  if (ucx().ucp_worker_arm(worker_) != UCS_OK) return;  // something is there already
  pollfd item{descriptor_, POLLIN, 0};
  ::poll(&item, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count()));
}

bool UcxWorker::is_over(void*& request, ucs_status_t& status) {
  if (request == nullptr) return true;
  status = ucx().ucp_request_check_status(request);
  if (status == UCS_INPROGRESS) return false;
  ucx().ucp_request_free(request);
  request = nullptr;
  return true;
}

void UcxWorker::close(ucp_ep_h endpoint) const {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucx().ucp_ep_close_nbx(endpoint, &param);
  if (UCS_PTR_IS_ERR(request)) return;
  ucs_status_t status = UCS_OK;
  const TimePoint end = steady_now() + kLongestClose;
  while (!is_over(request, status)) {
    if (steady_now() > end) return;
    progress();
  }
}

}  // namespace transept
