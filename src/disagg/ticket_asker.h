// Asks for encodes by tickets of the broker's shared queue (ticket_offers.h), and keeps what it asks for until it is
// withdrawn: the encode instance that takes a ticket fetches the input from here (find()).
//
// Owned by a decode instance, beside its connector. The functions of EncodeAsker are the engine's; find() and refuse()
// are thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/last_error.h"
#include "disagg/ticket_offers.h"
#include "engine/encode_asker.h"

namespace transept {

class TicketAsker final : public EncodeAsker {
 public:
  struct Options : TicketOffers::Options {
    InstanceId self;
    std::string url;  // Ticket::asker_url
  };

  TicketAsker(const Options& options, std::shared_ptr<Broker> broker);
  // What it has asked for is withdrawn.
  ~TicketAsker() override = default;
  TicketAsker(const TicketAsker&) = delete;
  TicketAsker& operator=(const TicketAsker&) = delete;

  // As TicketOffers has them.
  void explain(const ModelFingerprint& other, std::string why) { offers_.explain(other, std::move(why)); }
  void wait_once() { offers_.wait_once(); }
  void begin_drain() { offers_.begin_drain(); }

  void start(std::shared_ptr<EcInbox> inbox) override;
  void ask(EncodeAsk ask) override;
  void withdraw(const EcInput& input) override;
  void ask_again() override { offers_.offer_again(); }

  // What is to be encoded, while it is asked for; null: it is not.
  std::shared_ptr<const EncoderItem> find(const EcInput& input) const;
  // An encode instance says that it cannot be encoded, and why: EcAskFailed follows. False: it is not asked for.
  bool refuse(const EcInput& input, const Status& why);

  size_t num_asked() const;
  int64_t num_offered_again() const { return offers_.num_offered_again(); }
  LastError last_error() const;  // of what was asked for

 private:
  bool forget(const EcInput& input);
  bool fail(const EcInput& input, const Status& why);

  const Options options_;
  mutable Mutex mutex_;
  std::shared_ptr<EcInbox> inbox_ ABSL_GUARDED_BY(mutex_);
  std::map<EcInput, std::shared_ptr<const EncoderItem>> asked_ ABSL_GUARDED_BY(mutex_);
  LastError last_error_ ABSL_GUARDED_BY(mutex_);
  TicketOffers offers_;  // the last: its thread calls fail()
};

// Bytes of an item's ids and media, as they are fetched.
uint64_t num_input_bytes(const EncoderItem& item);

}  // namespace transept
