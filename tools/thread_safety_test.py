"""What clang builds is refused where it touches a guarded member without its mutex, by the options of cmake/transept.cmake."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from repo import ROOT

CLANG = "clang++-14"
COUNTER = """#include "base/mutex.h"
namespace transept {
class Counter final {
 public:
  void add() {
    const MutexLock lock(mutex_);
    add_locked();
  }
  int count() const {
    const MutexLock lock(mutex_);
    return count_;
  }
  void wait() {
    const MutexLock lock(mutex_);
    while (count_ == 0) changed_.wait(mutex_);
  }

 private:
  void add_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++count_;
    changed_.notify_all();
  }
  mutable Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
}  // namespace transept
"""
LOCK = "    const MutexLock lock(mutex_);\n"


def options_of_clang():
    """Of the lines that CMake takes where the compiler is clang, and of those that it always takes."""
    text = (ROOT / "cmake" / "transept.cmake").read_text(encoding="utf-8")
    of_clang = re.search(r'CMAKE_CXX_COMPILER_ID MATCHES "Clang"\)\n(.*?)endif', text, re.DOTALL).group(1)
    return [*re.findall(r"-W[\w-]+", of_clang), *re.findall(r"-Werror\b", text)]


@unittest.skipUnless(shutil.which(CLANG), f"{CLANG} is not installed (./dev setup)")
class ThreadSafety(unittest.TestCase):
    def errors(self, source):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "counter.cc"
            file.write_text(source)
            command = [CLANG, "-fsyntax-only", "-std=c++20", f"-I{ROOT / 'src'}", *options_of_clang(), str(file)]
            return subprocess.run(command, capture_output=True, text=True).stderr

    def assert_refused(self, before, after, message):
        self.assertIn(before, COUNTER)
        self.assertIn(message, self.errors(COUNTER.replace(before, after)))

    def test_what_is_guarded_passes(self):
        self.assertEqual(self.errors(COUNTER), "")

    def test_a_read_without_the_mutex_is_refused(self):
        self.assert_refused(LOCK + "    return count_;", "    return count_;", "error: reading variable 'count_' requires holding mutex 'mutex_'")

    def test_a_call_that_needs_the_mutex_is_refused(self):
        self.assert_refused(LOCK + "    add_locked", "    add_locked", "error: calling function 'add_locked' requires holding mutex 'mutex_'")

    def test_a_wait_without_the_mutex_is_refused(self):
        self.assert_refused(LOCK + "    while (count_ == 0) ", "    ", "error: calling function 'wait' requires holding mutex 'mutex_'")

    def test_a_lock_that_is_never_given_back_is_refused(self):
        self.assert_refused(LOCK + "    return count_;", "    mutex_.lock();\n    return count_;", "error: mutex 'mutex_' is still held")


if __name__ == "__main__":
    unittest.main()
