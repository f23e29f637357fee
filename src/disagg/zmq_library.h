// Loads libzmq when the first of its sockets is opened, not at program start: only processes with --role or --epd need
// it, and packages do not depend on it. The library stays loaded until the process ends. Thread-safe.
#pragma once

#include <zmq.h>

#include "base/dynamic_library.h"
#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_ZMQ_FUNCTIONS(X) \
  X(zmq_bind) \
  X(zmq_close) \
  X(zmq_connect) \
  X(zmq_ctx_new) \
  X(zmq_ctx_set) \
  X(zmq_ctx_term) \
  X(zmq_errno) \
  X(zmq_getsockopt) \
  X(zmq_msg_close) \
  X(zmq_msg_data) \
  X(zmq_msg_init) \
  X(zmq_msg_init_data) \
  X(zmq_msg_init_size) \
  X(zmq_msg_more) \
  X(zmq_msg_recv) \
  X(zmq_msg_send) \
  X(zmq_msg_size) \
  X(zmq_poll) \
  X(zmq_setsockopt) \
  X(zmq_socket) \
  X(zmq_strerror) \
  X(zmq_version)
// clang-format on

namespace transept {

struct ZmqLibrary {
  TRANSEPT_ZMQ_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER)
};

// Loads the library once; later calls return the same status. Errors: kNotFound for a library that is missing, older
// than 4.3, or lacks a function.
Status load_zmq();

// REQUIRES: load_zmq() has succeeded.
const ZmqLibrary& zmq();

}  // namespace transept
