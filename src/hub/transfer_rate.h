// How fast bytes come, over the last few seconds. A value; used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"

namespace transept {

class TransferRate final {
 public:
  // `done` bytes have come by `now`. Times do not go back; `done` may (bytes that come again).
  void add(TimePoint now, int64_t done);

  // Bytes a second since the oldest note of the last five seconds; 0 before two notes a tenth of a second apart.
  double bytes_per_second() const;

 private:
  struct Note {
    TimePoint time;
    int64_t done;
  };
  std::deque<Note> notes_;
};

// "12.3 MiB of 1.5 GiB, 45.6 MiB/s, 33 s left". The rate and the time are left out where they are not known.
std::string progress_text(int64_t done, int64_t total, double bytes_per_second);

}  // namespace transept
