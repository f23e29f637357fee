// The engine for callers on many threads: a thread of its own runs the LLMEngine; other threads add requests, read
// their streams and abort them. Bounded in every direction: so many requests may wait, a reader that does not read
// costs one answer's memory and no thread's time, and a request may have a deadline.
//
// Of several replicas of an engine (over one set of weights, each with its own scheduler, KV and thread) it makes one:
// a request goes to the least loaded (choose_replica.h), or where its handle is, and stays there. Ids, the queue's
// limit and the counts are of all of them.
//
//   AsyncEngine engine(std::move(model.engine), {.max_queued_requests = 512}, clock);
//   ASSIGN_OR_RETURN(RequestStream stream, engine.add_request({.id = "a", .inputs = inputs, .params = params}));
//   StatusOr<RequestOutput> answer = stream.next();
//
// Thread-safe. Construction and destruction belong to one thread, which may not be inside on_ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/content_digest.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/choose_replica.h"
#include "engine/engine_mailbox.h"
#include "engine/engine_snapshot.h"
#include "engine/engine_thread.h"
#include "engine/llm_engine.h"

namespace transept {

struct RequestSpec {
  std::string id;
  EncodedInput encoded;  // of encode(); if it has a value, it replaces the encoder side of `inputs`
  EncoderDecoderInputs inputs;
  SamplingParams params;
  bool stream = false;                // outputs as they come; otherwise one, at the end
  std::optional<TimePoint> deadline;  // of the engine's clock; counts while the request waits, too
  // Part of work whose first request was taken (a later window of a transcription): a full queue does not refuse it, or
  // what was done already would be thrown away. It waits in the queue as others do and counts there.
  bool is_continuation = false;
  // For event loops: called on the thread of the request's engine when the stream has gone from nothing to read to
  // something to read, and when it ends; read then until there is nothing. May come before add_request returns. It
  // holds all requests up, so it must only pass the news on: it may not wait, and take no lock that is held while a
  // stream is destroyed. It may add, abort and destroy streams; it may not drain, stop or destroy the engine.
  std::function<void()> on_ready;
};

// A request's outputs, in order; letting go of a stream that has not ended aborts its request. Movable. Used by one
// thread at a time. May outlive the engine.
class RequestStream final {
 public:
  RequestStream(RequestStream&&) noexcept = default;
  RequestStream& operator=(RequestStream&& other) noexcept;
  ~RequestStream() { let_go(); }

  const std::string& request_id() const { return channel_->request_id(); }

  // What has come since the last call; waits until there is something. Unfinished outputs (RequestSpec::stream) hold
  // what is new alone, and so does the finished one after them: merge_delta of all of them is the whole answer. Pieces
  // that were not read in time come as one. The finished output is the last.
  // Errors end the stream: kDeadlineExceeded (says after how long); the request could never fit (kInvalidArgument, both
  // counts); the engine stopped first (kUnavailable) or failed; the model gave no usable scores.
  StatusOr<RequestOutput> next() { return *channel_->take(std::nullopt); }
  // The same, but waits so long at most; nullopt: nothing came.
  std::optional<StatusOr<RequestOutput>> next_for(Duration timeout) { return channel_->take(timeout); }
  std::optional<StatusOr<RequestOutput>> try_next() { return channel_->take(Duration::zero()); }

  // The finished output or the error was read. REQUIRES of the functions above: not yet.
  bool has_ended() const { return channel_->has_ended(); }

  // The stream goes on to its finished output, with finish_reason abort and what there is by then.
  void abort() { mailbox_->abort(channel_); }

 private:
  friend class AsyncEngine;
  RequestStream(std::shared_ptr<RequestChannel> channel, std::shared_ptr<EngineMailbox> mailbox)
      : channel_(std::move(channel)), mailbox_(std::move(mailbox)) {}
  void let_go();

  std::shared_ptr<RequestChannel> channel_;  // null: moved from
  std::shared_ptr<EngineMailbox> mailbox_;
};

class AsyncEngine final {
 public:
  struct Options {
    int32_t max_queued_requests = 512;  // that have not had their first step; continuations may be more
  };

  // Starts the threads. Borrows the clock, and what the engines borrow (the tokenizer). REQUIRES: there is one; all
  // give the same answers.
  AsyncEngine(std::vector<std::unique_ptr<LLMEngine>> replicas, const Options& options, const Clock& clock);
  AsyncEngine(std::unique_ptr<LLMEngine> engine, const Options& options, const Clock& clock);
  ~AsyncEngine();
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // Errors: an id that is in flight (kInvalidArgument, `id`); a full queue (kResourceExhausted, both numbers; not of a
  // continuation); draining or stopped (kUnavailable); what made the engine fail. All else comes through the stream.
  StatusOr<RequestStream> add_request(RequestSpec spec);

  // `prefix` and a number that this engine gives once: make_id("speech-") is "speech-17".
  std::string make_id(std::string_view prefix);

  // A handle of the encoder side of `inputs`, for several requests over one encode (encoded_input.h). Nothing is
  // computed yet; it is ready after the step that runs now, at the latest. Errors: no encoder input; one that could
  // never fit (both counts); draining or stopped (kUnavailable); what made the engine fail.
  std::future<StatusOr<EncodedInput>> encode(EncoderDecoderInputs inputs);

  // Its stream gets the finished output, with finish_reason abort, after the step that runs now at the latest.
  // Errors: kNotFound.
  Status abort(const std::string& request_id);

  // Takes no new requests from here on, and waits until those in flight have ended. Errors: kDeadlineExceeded (how many
  // are left after so long). Waits by the system's clock.
  Status drain(Duration timeout);

  // Ends what is left with kUnavailable, ends each thread after the step that it is in, and gives the engines back.
  // Once.
  std::vector<std::unique_ptr<LLMEngine>> stop_all();
  std::unique_ptr<LLMEngine> stop();  // REQUIRES: it was made of one

  // What made an engine fail; ok: nothing did. A step's error ends every stream of its engine, and that engine with
  // them; nothing new is taken from then on, and what is in flight in other replicas goes on.
  Status failure() const;

  // Deadlines are of this one.
  const Clock& clock() const { return clock_; }

  int32_t num_queued() const;
  // As of each engine's last step (of before the one that runs now): all together, and each.
  EngineSnapshot snapshot() const { return add_up(snapshots()); }
  std::vector<EngineSnapshot> snapshots() const;

 private:
  StatusOr<RequestStream> dispatch(EngineMailbox::NewRequest request);
  RequestLoad load_of(const EngineMailbox::NewRequest& request) const;
  void make_digest(EncoderDecoderInputs& inputs) const;
  size_t choose(const RequestLoad& load) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(dispatching_);
  size_t owner_of(const EncodedInput& handle) const;

  const Clock& clock_;
  const bool shares_identical_inputs_;
  std::atomic<uint64_t> next_id_ = 0;
  // With several replicas: from the look at all of them to the adding to one; and while all are looked at.
  mutable Mutex dispatching_;
  size_t next_replica_ ABSL_GUARDED_BY(dispatching_) = 0;  // of equals
  std::vector<std::unique_ptr<EngineThread>> replicas_;    // last: until their threads have ended they may ask for more
};

}  // namespace transept
