// The outputs that a bulk transport sends: those to one peer one after the other, each in chunks in order. It holds the
// promise of BulkTransport::cancel() for the transports. Thread-safe: any thread adds and cancels; one thread, the
// transport's, sends.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "encoder_cache/bulk_transport.h"

namespace transept {

inline constexpr size_t kBulkChunkBytes = size_t{256} << 10;  // stays in the caches between checksum and copy

class SendQueue final {
 public:
  void add(std::string_view to, BulkTransport::Sending sending);
  void cancel(const EcInput& input);

  // ---- The sending thread

  // Peers for whom there is something to send, in order.
  std::vector<std::string> destinations() const;
  // The next chunk for a peer, which is in work until advance(), keep() or fail(); nullopt: there is none.
  struct Piece {
    EcKey key;
    EcRows rows;
    EcChunk chunk;  // of the rows
  };
  std::optional<Piece> begin(const std::string& to);
  void advance();         // it was handed to the network: callbacks
  void keep();            // it could not be sent now
  void fail(Status why);  // its output will not be sent: callback

 private:
  struct Entry {
    BulkTransport::Sending sending;
    size_t num_sent = 0;
  };

  void leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar left_;
  std::map<std::string, std::deque<Entry>> queues_ ABSL_GUARDED_BY(mutex_);  // none is empty
  // The chunk in work.
  std::optional<EcInput> busy_ ABSL_GUARDED_BY(mutex_);
  std::string busy_to_ ABSL_GUARDED_BY(mutex_);
  size_t busy_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;  // the one in work, by its own callback
  std::thread::id sender_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
