// What a runner does as one of several ranks: the limits that all of them have, and what only some of them know of a
// step.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "comm/reduce.h"
#include "rank/model_runner.h"
#include "rank/rank_agreement.h"

namespace transept {

// Bytes and free memory are those of all replicas, or of all ranks on the host.
uint64_t EncoderDecoderModelRunner::num_shares() const {
  const int num_ranks = options_.ranks == nullptr ? 1 : options_.ranks->size();
  return static_cast<uint64_t>(options_.num_replicas) * static_cast<uint64_t>(num_ranks);
}

const char* EncoderDecoderModelRunner::share_text() const {
  return options_.ranks != nullptr ? " for all ranks" : options_.num_replicas > 1 ? " for all replicas" : "";
}

// Each found what was free at its own time. Lengths and blocks follow from it, and are the same on all then.
Status EncoderDecoderModelRunner::agree_on_memory() {
  if (options_.ranks == nullptr) return ok_status();
  CHECK(options_.num_replicas == 1 && !options_.has_long_encodes && !options_.takes_remote_rows);
  ASSIGN_OR_RETURN(memory_left_, least_of_ranks(*options_.ranks, memory_left_));
  return stage_ == nullptr ? ok_status() : agree_on_block_bytes();
}

// A stage has the KV of its own layers: its blocks have their own size, and are as many as those of all other stages.
Status EncoderDecoderModelRunner::agree_on_block_bytes() {
  const uint64_t own = block_bytes_.own;
  std::memcpy(options_.ranks->outbox(sizeof own).data(), &own, sizeof own);
  ASSIGN_OR_RETURN(const Communicator::Parts parts, options_.ranks->exchange(sizeof own));
  block_bytes_.all = 0;
  for (const std::span<const std::byte> part : parts) {
    uint64_t theirs = 0;
    std::memcpy(&theirs, part.data(), sizeof theirs);
    block_bytes_.most = std::max(block_bytes_.most, theirs);
    block_bytes_.all += theirs;
  }
  return ok_status();
}

Status EncoderDecoderModelRunner::check_ranks_agree() const {
  if (options_.ranks == nullptr) return ok_status();
  std::vector<AgreedNumber> numbers = {{"the number of specs", std::ssize(info_.tables)},
                                       {"the number of KV blocks", info_.num_device_blocks},
                                       {"the number of blocks of swap space", info_.num_host_blocks},
                                       {"the longest encoder input", info_.max_encoder_len},
                                       {"the longest sequence", info_.max_decoder_len},
                                       {"the number of sequences a step", info_.max_num_seqs},
                                       {"the number of tokens a step", info_.max_num_batched_tokens},
                                       {"the number of encoder tokens a step", info_.max_num_encoder_tokens},
                                       {"the size of the vocabulary", info_.spec.vocab_size},
                                       {"the width", info_.spec.d_model},
                                       {"the number of encoder layers", info_.spec.num_encoder_layers},
                                       {"the number of decoder layers", info_.spec.num_decoder_layers},
                                       {"the type of KV", static_cast<int64_t>(info_.kv_dtype)},
                                       {"the instruction level", static_cast<int64_t>(info_.isa)}};
  if (stage_ == nullptr) {  // stages have their own
    numbers.push_back({"the bytes of a block", static_cast<int64_t>(info_.block_bytes)});
    numbers.push_back({"the number of matrices", std::ssize(info_.packed_layers)});
  }
  RETURN_IF_ERROR(check_agreement(*options_.ranks, numbers));
  numbers.clear();
  for (const TableSpec& table : info_.tables) numbers.push_back({"the tokens of a block", table.tokens_per_block});
  return check_agreement(*options_.ranks, numbers);
}

// Each rank has written the probabilities of its heads, and left the others at 0.
void EncoderDecoderModelRunner::gather_captured() {
  if (options_.ranks == nullptr) return;
  if (stage_ != nullptr) return stage_->add_to_first(captured_).IgnoreError();  // the step's end says so
  Communicator& ranks = *options_.ranks;
  const size_t at_once = ranks.max_bytes() / sizeof(float);
  for (size_t begin = 0; begin < captured_.size(); begin += at_once) {
    const std::span<float> some = std::span(captured_).subspan(begin, std::min(at_once, captured_.size() - begin));
    std::memcpy(ranks.outbox(some.size_bytes()).data(), some.data(), some.size_bytes());
    const auto count = std::ssize(some);
    sum_over_ranks(ranks, threads_, 1, count, {}, some.data(), count).IgnoreError();  // the step's end says so
  }
}

}  // namespace transept
