// Loads UCX when a transport over it is opened (--ec-bulk ucx), not at program start: no other process needs it, it
// starts a thread and replaces memory functions of the process. Of the ucx_ files alone, which are compiled where the
// build has its headers (TRANSEPT_UCX of ucx_bulk.cc). The library stays loaded until the process ends. Thread-safe.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include "base/dynamic_library.h"
#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_UCX_FUNCTIONS(X) \
  X(ucp_am_data_release) \
  X(ucp_am_recv_data_nbx) \
  X(ucp_am_send_nbx) \
  X(ucp_cleanup) \
  X(ucp_config_read) \
  X(ucp_config_release) \
  X(ucp_ep_close_nbx) \
  X(ucp_ep_create) \
  X(ucp_get_version_string) \
  X(ucp_init_version) \
  X(ucp_listener_create) \
  X(ucp_listener_destroy) \
  X(ucp_listener_query) \
  X(ucp_listener_reject) \
  X(ucp_request_check_status) \
  X(ucp_request_free) \
  X(ucp_worker_arm) \
  X(ucp_worker_create) \
  X(ucp_worker_destroy) \
  X(ucp_worker_get_efd) \
  X(ucp_worker_progress) \
  X(ucp_worker_set_am_recv_handler) \
  X(ucp_worker_signal) \
  X(ucs_log_push_handler) \
  X(ucs_status_string)
// clang-format on

namespace transept {

struct UcxLibrary {
  TRANSEPT_UCX_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER)
};

// Loads the library once; later calls return the same status. What it logs becomes the program's log. Errors: kNotFound
// for a library that is missing or lacks a function.
Status load_ucx();

// REQUIRES: load_ucx() has succeeded.
const UcxLibrary& ucx();

inline std::string ucx_error(ucs_status_t status) { return str_cat("UCX: ", ucx().ucs_status_string(status)); }

}  // namespace transept
