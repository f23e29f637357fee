// How a decode instance asks for encodes that only it knows of: windows of long audio, whose bounds depend on the text
// before; the language of a clip; rows that were given up while their request waited. An encode instance takes each
// of them, and the rows come as all rows do (remote_inputs.h).
//
// Functions return at once and never wait. They are called by the engine's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "core/encoder_item.h"
#include "encoder_cache/connector.h"

namespace transept {

struct EncodeAsk {
  EcInput input;  // the name of the transfer, which this instance has chosen: its rows come under it
  ContentDigest digest;
  ModelFingerprint model;  // of this instance: one that encodes as another model is not asked
  int32_t num_positions = 0;
  std::shared_ptr<const EncoderItem> content;  // not null
  Duration time_left{};
  TraceContext trace = {};  // of the request that wants it
};

class EncodeAsker {
 public:
  virtual ~EncodeAsker() = default;

  // EcAskFailed goes there from here on. Call once, before anything else is asked.
  virtual void start(std::shared_ptr<EcInbox> inbox) = 0;
  // Asks until the rows are here, or the time is over. EcAskFailed comes at most once, and only if no instance can
  // encode this: the queue is full (kResourceExhausted), no encode instance is there (kUnavailable), or one has refused
  // it by name. REQUIRES: the input is not asked for already.
  virtual void ask(EncodeAsk ask) = 0;
  // The rows are here, or no request wants them any longer. EcAskFailed may still be in the inbox. No-op if unknown.
  virtual void withdraw(const EcInput& input) = 0;
  // The broker is back, and may have forgotten what was asked for: asks for all of it again, at once.
  virtual void ask_again() = 0;
};

}  // namespace transept
