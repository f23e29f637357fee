// The engine for callers on many threads. One thread runs the LLMEngine; all others add requests, read their streams
// and abort them. Bounded in every direction: at most max_queued_requests wait, a slow reader costs the memory of one
// answer and no other request's time, and a request may have a deadline.
//
// Makes one engine of several replicas (one set of weights; each has its own scheduler, KV and thread). A request goes
// to the least loaded replica (choose_replica.h), or to the owner of its handle, and stays there. Request ids, the
// queue's limit and the counts span all replicas.
//
//   AsyncEngine engine(std::move(model.engine), {.max_queued_requests = 512}, clock);
//   ASSIGN_OR_RETURN(RequestStream stream, engine.add_request({.id = "a", .inputs = inputs, .params = params}));
//   StatusOr<RequestOutput> answer = stream.next();
//
// Thread-safe. One thread constructs and destroys the engine, and not from inside on_ready.
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

#include "async/choose_replica.h"
#include "async/engine_mailbox.h"
#include "async/engine_snapshot.h"
#include "async/engine_thread.h"
#include "base/clock.h"
#include "base/content_digest.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/encoder_engine.h"
#include "engine/llm_engine.h"

namespace transept {

struct RequestSpec {
  std::string id;
  EncodedInput encoded;  // from encode(); if it has a value, it replaces the encoder side of `inputs`
  EncoderDecoderInputs inputs;
  SamplingParams params;
  bool stream = false;                // outputs as they come; otherwise one, at the end
  std::optional<TimePoint> deadline;  // on the engine's clock; time in the queue counts
  // Continues work whose first request was accepted (a later window of a transcription). A full queue does not refuse a
  // continuation, since the work already done would be lost. A continuation waits in the queue like any request and
  // counts there.
  bool is_continuation = false;
  // Lower is earlier, as in vLLM: it comes before requests of a higher level that came less than so many seconds before
  // it. A level is a second of waiting, so nothing waits for ever.
  int32_t priority = 0;
  // Of an encode instance, and of no other: where the rows of the items go. `inputs` has the items alone.
  std::optional<RowsConsumer> consumer = std::nullopt;
  std::shared_ptr<const TraceContext> trace = nullptr;  // whose request it is, for logs of other instances
  // For event loops. The thread of the request's engine calls this when the stream goes from empty to readable and when
  // the stream ends; read until the stream is empty. The call may come before add_request returns. It blocks the
  // engine, so it must only pass the notification on: it may not wait, nor take a lock that is held while a stream is
  // destroyed. It may add, abort and destroy streams; it may not drain, stop or destroy the engine.
  std::function<void()> on_ready;
};

// The outputs of one request, in order. Dropping a stream that has not ended aborts its request. Movable. Used by one
// thread at a time. May outlive the engine.
class RequestStream final {
 public:
  RequestStream(RequestStream&&) noexcept = default;
  RequestStream& operator=(RequestStream&& other) noexcept;
  ~RequestStream() { let_go(); }

  const std::string& request_id() const { return channel_->request_id(); }

  // Returns what has come since the last call; waits until there is something. Unfinished outputs (RequestSpec::stream)
  // hold only what is new, and so does the finished output after them: merge_delta of all outputs is the whole answer.
  // Pieces that were not read in time are merged into one. The finished output is the last.
  // Errors end the stream: kDeadlineExceeded (says after how long); a request that could never fit (kInvalidArgument,
  // both counts); the engine was stopped first (kUnavailable) or failed; the model gave no usable scores.
  StatusOr<RequestOutput> next() { return *channel_->take(std::nullopt); }
  // The same, but waits at most `timeout`. nullopt: nothing came.
  std::optional<StatusOr<RequestOutput>> next_for(Duration timeout) { return channel_->take(timeout); }
  std::optional<StatusOr<RequestOutput>> try_next() { return channel_->take(Duration::zero()); }

  // Whether the finished output or the error was read. REQUIRES of the functions above: not yet.
  bool has_ended() const { return channel_->has_ended(); }

  // The stream continues to its finished output, which has finish_reason abort and the tokens so far.
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
    int32_t max_queued_requests = 512;  // requests before their first step; continuations may exceed it
  };

  // Starts the threads. Borrows the clock, and what the engines borrow (the tokenizer). REQUIRES: at least one replica;
  // all replicas give the same answers.
  AsyncEngine(std::vector<std::unique_ptr<LLMEngine>> replicas, const Options& options, const Clock& clock);
  AsyncEngine(std::unique_ptr<LLMEngine> engine, const Options& options, const Clock& clock);
  // Of an encode instance: each of its requests has a consumer.
  AsyncEngine(std::unique_ptr<EncoderEngine> engine, const Options& options, const Clock& clock);
  ~AsyncEngine();
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // Errors: an id that is in flight (kInvalidArgument, `id`); a full queue (kResourceExhausted, both numbers; not for a
  // continuation); draining or stopped (kUnavailable); the error that made the engine fail. The stream reports all
  // other errors.
  StatusOr<RequestStream> add_request(RequestSpec spec);

  // Returns `prefix` and a number that is unique in this engine: make_id("speech-") is "speech-17".
  std::string make_id(std::string_view prefix);

  // Returns a handle of the encoder side of `inputs`, for several requests over one encode (encoded_input.h). Nothing
  // is computed yet. The handle is ready after the current step at the latest. Errors: no encoder input; an input that
  // could never fit (both counts); draining or stopped (kUnavailable); the error that made the engine fail.
  std::future<StatusOr<EncodedInput>> encode(EncoderDecoderInputs inputs);

  // Gives up the KV blocks that all replicas keep for later requests; what is in use goes with its last reader. Returns
  // the number of blocks that are free by it, after each engine's current step; 0 of those that have stopped.
  int64_t clear_cache();

  // The request's stream gets the finished output, with finish_reason abort, after the current step at the latest.
  // Errors: kNotFound.
  Status abort(const std::string& request_id);

  // Takes no new requests from here on, and waits until those in flight have ended. Errors: kDeadlineExceeded (how many
  // are left after `timeout`). Waits by the system's clock.
  Status drain(Duration timeout);

  // Ends the requests that are left with kUnavailable, ends each thread after its current step, and returns the
  // engines. Call once.
  std::vector<std::unique_ptr<LLMEngine>> stop_all();  // REQUIRES: made of LLMEngines
  std::unique_ptr<LLMEngine> stop();                   // REQUIRES: made of one LLMEngine
  std::unique_ptr<EncoderEngine> stop_encoder();       // REQUIRES: made of an EncoderEngine

  // Ends all requests in flight with this error, and takes no new one: for who knows before the engines do that their
  // current steps will fail. Does not wait for these; failure() is the error until they end with their own.
  void give_up(const Status& error);

  // Returns the error that made an engine fail; ok: none did. A step's error ends every stream of its engine, and the
  // engine. No new request is accepted after that; requests in flight in other replicas continue.
  Status failure() const;

  // The clock of the deadlines.
  const Clock& clock() const { return clock_; }

  int32_t num_queued() const;
  // The state after each engine's last completed step: summed over the replicas, and each.
  EngineSnapshot snapshot() const { return add_up(snapshots()); }
  std::vector<EngineSnapshot> snapshots() const;

 private:
  AsyncEngine(std::vector<std::unique_ptr<StepEngine>> replicas, const Options& options, const Clock& clock);
  template <typename Engine>
  std::vector<std::unique_ptr<Engine>> stop_engines();
  StatusOr<RequestStream> dispatch(EngineMailbox::NewRequest request);
  RequestLoad load_of(const EngineMailbox::NewRequest& request) const;
  void make_digest(EncoderDecoderInputs& inputs) const;
  size_t choose(const RequestLoad& load) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(dispatching_);
  size_t owner_of(const EncodedInput& handle) const;

  const Clock& clock_;
  const bool shares_identical_inputs_;
  std::atomic<uint64_t> next_id_ = 0;
  // With several replicas: held from the reading of their loads to the adding to one, and while all snapshots are read.
  mutable Mutex dispatching_;
  size_t next_replica_ ABSL_GUARDED_BY(dispatching_) = 0;  // where choose_replica() starts among equals
  std::vector<std::unique_ptr<EngineThread>> replicas_;    // last: on_ready may add requests until the threads end
};

}  // namespace transept
