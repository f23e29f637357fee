#include "scheduling/encoder_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "scheduling/plan_item.h"

namespace transept {

Status EncoderScheduler::check(const EncoderItem& item, uint64_t num_bytes) const {
  if (item.num_positions() < 1 || item.num_rows() < item.num_positions()) {
    return field_error("items", "an item has no rows");
  }
  if (item.num_rows() > options_.max_num_encoder_tokens) {
    return field_error("items", str_cat("an item has ", item.num_rows(), " encoder tokens, and a step has room for ",
                                        options_.max_num_encoder_tokens, " (--max-num-encoder-tokens)"));
  }
  if (num_bytes > options_.max_output_bytes) {
    return field_error("items", str_cat("an item's output has ", num_bytes, " bytes, and there is room for ",
                                        options_.max_output_bytes, " (--ec-buffer-memory)"));
  }
  return ok_status();
}

void EncoderScheduler::add(GroupId id, EncoderItem item, uint64_t num_bytes) {
  CHECK(item.digest.has_value(), "an item without a digest");
  Item added;
  added.digest = *item.digest;
  added.num_bytes = num_bytes;
  added.input = std::move(item);
  added.place = queue_.insert(queue_.end(), id);
  const bool is_new = items_.emplace(id, std::move(added)).second;
  CHECK(is_new, "the id is in use");
}

void EncoderScheduler::leave_queue(Item& item) {
  queue_.erase(item.place);
  item.is_waiting = false;
  item.input = {};
}

void EncoderScheduler::remove(GroupId id) {
  const auto found = items_.find(id);
  if (found == items_.end()) return;
  if (found->second.is_waiting) {
    queue_.erase(found->second.place);
  } else {
    outputs_.release(found->second.digest);
    std::erase(planned_, id);
  }
  items_.erase(found);
}

void EncoderScheduler::schedule(SchedulerOutputs& outputs) {
  outputs.clear();
  while (!queue_.empty()) {
    const GroupId id = queue_.front();
    Item& item = items_.at(id);
    if (outputs_.join(item.digest)) {
      ++num_hits_;
    } else {
      if (std::ssize(outputs.encodes) == options_.max_num_seqs ||
          item.input.num_rows() > options_.max_num_encoder_tokens - outputs.num_encoder_tokens ||
          !outputs_.reserve(item.digest, item.num_bytes)) {
        break;
      }
      PlannedEncode& encode = outputs.encodes.push();
      encode.group_id = id;
      encode.item = 0;
      encode.writes = Consumers::kNone;
      plan_item(item.input, encode, outputs.bulk);
      outputs.num_encoder_tokens += encode.num_rows;
    }
    planned_.push_back(id);
    leave_queue(item);
  }
  outputs.num_waiting = static_cast<int32_t>(queue_.size());
}

void EncoderScheduler::mark_encoded(GroupId id, EcRows rows) { outputs_.put(items_.at(id).digest, std::move(rows)); }

void EncoderScheduler::take_ready(std::vector<GroupId>& ready) {
  ready.clear();
  std::erase_if(planned_, [&](GroupId id) {
    const bool is_ready = outputs_.find(items_.at(id).digest) != nullptr;
    if (is_ready) ready.push_back(id);
    return is_ready;
  });
}

EcRows EncoderScheduler::rows_of(GroupId id) const {
  const auto found = items_.find(id);
  return found == items_.end() || found->second.is_waiting ? nullptr : outputs_.find(found->second.digest);
}

}  // namespace transept
