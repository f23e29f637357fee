// The GIL given away for a call that may wait.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace transept::python {

// Gives the GIL away while it lives, and takes it again. As nanobind's gil_scoped_release, but for a daemon thread
// whose interpreter has ended meanwhile: up to 3.13 CPython ends such a thread with pthread_exit(), whose unwinding no
// destructor lets through, and the process would abort. That thread waits for the process's end instead, as CPython
// itself has it since 3.14. REQUIRES: the GIL. Used by one thread.
class ReleasedGil final {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (const abi::__forced_unwind&) {  // pthread_exit()
      while (true) ::pause();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const thread_;
};

}  // namespace transept::python
