"""The check of locks passes what is right, and names what touches a guarded member without its mutex."""
import json
import shutil
import tempfile
import unittest
from pathlib import Path

import thread_safety
from repo import ROOT

COUNTER_H = """#pragma once
#include "base/mutex.h"
namespace transept {
class Counter final {
 public:
  void add();
  int count() const;
  void wait();
 private:
  void add_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  mutable Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
}  // namespace transept
"""
COUNTER_CC = """#include "engine/counter.h"
namespace transept {
void Counter::add() {
  const MutexLock lock(mutex_);
  add_locked();
}
void Counter::add_locked() {
  ++count_;
  changed_.notify_all();
}
int Counter::count() const {
  const MutexLock lock(mutex_);
  return count_;
}
void Counter::wait() {
  const MutexLock lock(mutex_);
  while (count_ == 0) changed_.wait(mutex_);
}
}  // namespace transept
"""
LOCK = "  const MutexLock lock(mutex_);\n"


class ThreadSafety(unittest.TestCase):
    def check(self, header=COUNTER_H, source=COUNTER_CC):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "src" / "base").mkdir(parents=True)
            (root / "src" / "engine").mkdir()
            (root / "build" / "release").mkdir(parents=True)
            shutil.copy(ROOT / "src" / thread_safety.MUTEX, root / "src" / thread_safety.MUTEX)
            (root / "src" / "engine" / "counter.h").write_text(header)
            file = root / "src" / "engine" / "counter.cc"
            file.write_text(source)
            command = f"ccache /usr/bin/c++ -I{root}/src '-DNAME=\"a b\"' -std=c++20 -o counter.o -c {file}"
            (root / "build" / "release" / "compile_commands.json").write_text(
                json.dumps([{"directory": str(root), "command": command, "file": str(file)}]))
            return thread_safety.problems(root)

    def assert_refused(self, found, *parts):
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_what_is_guarded_passes(self):
        self.assertEqual(self.check(), [])

    def test_a_read_without_the_mutex_is_refused(self):
        source = COUNTER_CC.replace(LOCK + "  return count_;", "  return count_;")
        self.assert_refused(self.check(source=source), "src/engine/counter.cc:12:", "reading variable 'count_'", "mutex_")

    def test_a_call_that_needs_the_mutex_is_refused(self):
        source = COUNTER_CC.replace(LOCK + "  add_locked", "  add_locked")
        self.assert_refused(self.check(source=source), "calling function 'add_locked' requires holding mutex 'mutex_'")

    def test_a_wait_without_the_mutex_is_refused(self):
        source = COUNTER_CC.replace(LOCK + "  while (count_ == 0) ", "  ")
        self.assert_refused(self.check(source=source), "calling function 'wait' requires holding mutex 'mutex_'")

    def test_a_lock_that_is_never_given_back_is_refused(self):
        source = COUNTER_CC.replace(LOCK + "  return count_;", "  mutex_.lock();\n  return count_;")
        self.assert_refused(self.check(source=source), "mutex 'mutex_' is still held")

    def test_a_guarded_member_that_is_public_is_refused(self):
        header = COUNTER_H.replace("int count_ ABSL", "int value ABSL_GUARDED_BY(mutex_) = 0;\n  int count_ ABSL")
        self.assert_refused(self.check(header=header), "src/engine/counter.h: value")

    def test_a_source_that_does_not_compile_is_refused(self):
        self.assertIn("counter.cc", self.check(source=COUNTER_CC + "nonsense")[0])

    def test_sources_that_can_touch_a_guarded_member_are_read(self):
        files = {"base/mutex.h": "", "a/guarding.h": '#include "base/mutex.h"\n', "a/guarding.cc": '#include "a/guarding.h"\n',
                 "a/friend.cc": '#include "a/guarding.h"\n', "a/far.h": '#include "a/guarding.h"\n', "a/far.cc": '#include "a/far.h"\n',
                 "a/local.cc": '#include "base/mutex.h"\n', "a/guarding_test.cc": '#include "a/guarding.h"\n',
                 "a/gate_testing.h": '#include "base/mutex.h"\n', "a/gate_test.cc": '#include "a/gate_testing.h"\n'}
        read = {name for name in thread_safety.guarding_files(files) if name.endswith(".cc")}
        self.assertEqual(read, {"a/guarding.cc", "a/friend.cc", "a/local.cc", "a/gate_test.cc"})


if __name__ == "__main__":
    unittest.main()
