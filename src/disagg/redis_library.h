// Loads hiredis when the first connection to a Redis server is opened, not at program start: only processes whose
// broker is redis:// need it, and packages do not depend on it. Of redis_value.cc alone: it makes commands and reads
// replies, net/client_socket.h has the connection, whose deadlines and ends hiredis does not have. The library stays
// loaded until the process ends. Thread-safe.
#pragma once

#include <hiredis/hiredis.h>

#include "base/dynamic_library.h"
#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_REDIS_FUNCTIONS(X) \
  X(redisFormatCommandArgv) \
  X(redisFreeCommand) \
  X(redisReaderCreateWithFunctions) \
  X(redisReaderFeed) \
  X(redisReaderFree) \
  X(redisReaderGetReply)
// clang-format on

namespace transept {

struct RedisLibrary {
  TRANSEPT_REDIS_FUNCTIONS(TRANSEPT_FUNCTION_MEMBER)
};

// Loads the library once; later calls return the same status. Errors: kNotFound for a library that is missing, of
// another version than the headers of the build (hiredis changes its structures with each), or lacks a function.
Status load_redis();

// REQUIRES: load_redis() has succeeded.
const RedisLibrary& redis_library();

}  // namespace transept
