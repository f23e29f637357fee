#include "engine/input_stage.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

// What one request's CrossAttentionWeights may hold. Whisper's largest is 23 heads x 448 tokens x 1500 positions: 62
// MB.
constexpr int64_t kMaxCaptureBytes = int64_t{256} << 20;

// Keeps the first num_tokens tokens of the decoder prompt.
void cut_prompt(EncoderDecoderInputs& inputs, size_t num_tokens) {
  std::vector<int32_t>& positions = inputs.layout.prompt_positions;
  const size_t num_before = inputs.prompt_token_ids.size();
  std::vector<int32_t> kept;
  for (size_t axis = 0; axis < positions.size() / num_before; ++axis) {
    const auto begin = positions.begin() + static_cast<std::ptrdiff_t>(axis * num_before);
    kept.insert(kept.end(), begin, begin + static_cast<std::ptrdiff_t>(num_tokens));
  }
  positions = std::move(kept);
  inputs.prompt_token_ids.resize(num_tokens);
}

}  // namespace

Status with_advice(const Status& refusal, const SamplingParams& params) {
  const Status advised(refusal.code(), str_cat(error_message(refusal), " (see --max-num-seqs, --kv-cache-memory)"));
  return with_param(advised, params.num_beams > 1 ? "num_beams" : params.n > 1 ? "n" : "max_tokens");
}

InputStage::InputStage(Scheduler& scheduler, bool share_identical, const ExecutorInfo& info)
    : scheduler_(scheduler), shared_(scheduler, share_identical), info_(info) {
  info_.packed_layers.clear();
  info_.report.clear();
}

Status InputStage::check(const EncoderDecoderInputs& inputs, const SamplingParams& params) const {
  const auto num_prompt = static_cast<int64_t>(inputs.prompt_token_ids.size());
  if (params.probe.has_value() && (params.probe->prompt_index < 0 || params.probe->prompt_index >= num_prompt)) {
    return field_error("probe",
                       str_cat("prompt index ", params.probe->prompt_index, " of a prompt of ", num_prompt, " tokens"));
  }
  if (params.prompt_logprobs.has_value() || params.score_only) {
    RETURN_IF_ERROR(check_scored(inputs.prompt_token_ids));
  }
  RETURN_IF_ERROR(check_items(inputs.items));
  RETURN_IF_ERROR(check_splices(inputs));
  RETURN_IF_ERROR(check_layout(inputs));
  return params.capture_cross_attention ? check_capture(inputs) : ok_status();
}

// The first token of a prompt is not scored.
Status InputStage::check_scored(std::span<const int32_t> ids) const {
  const int32_t vocab = info_.spec.vocab_size;
  for (size_t i = 1; vocab > 0 && i < ids.size(); ++i) {
    if (ids[i] < vocab) continue;
    return field_error("prompt_logprobs",
                       str_cat("prompt_logprobs: token ", i, " of the prompt (id ", ids[i],
                               ") has no output in a vocabulary of ", vocab, ", so no log-probability"));
  }
  return ok_status();
}

Status InputStage::check_capture(const EncoderDecoderInputs& inputs) const {
  const int64_t num_heads = std::ssize(info_.spec.alignment_heads);
  if (num_heads == 0) {
    return with_param(absl::UnimplementedError("the model names no heads whose cross-attention aligns"),
                      "capture_cross_attention");
  }
  const int64_t num_prompt = std::ssize(inputs.prompt_token_ids), num_positions = num_cross_positions(inputs.items);
  const int64_t bytes = num_heads * num_prompt * num_positions * static_cast<int64_t>(sizeof(float));
  if (bytes <= kMaxCaptureBytes) return ok_status();
  return with_param(
      resource_exhausted("the cross-attention of ", num_prompt, " tokens to ", num_positions, " positions by ",
                         num_heads, " heads wants ", format_bytes(static_cast<uint64_t>(bytes)), ", more than ",
                         format_bytes(static_cast<uint64_t>(kMaxCaptureBytes))),
      "capture_cross_attention");
}

namespace {

template <typename... Why>
Status refuse_item(size_t index, const Why&... why) {
  return field_error("items", str_cat("item ", index, " ", why...));
}

}  // namespace

// The length of one text or audio was checked where its prompt was made.
Status InputStage::check_items(std::span<const EncoderItem> items) const {
  const bool crosses = info_.spec.find_kv(KvKind::kCross) >= 0, splices = info_.spec.find_kv(KvKind::kEncoderRows) >= 0;
  const bool is_remote = std::ranges::any_of(items, [](const EncoderItem& item) { return item.remote.has_value(); });
  if (is_remote && info_.rows_spec < 0) {
    return field_error("encoded_inputs", "this engine takes no inputs that were encoded elsewhere");
  }
  if (items.size() == 1 && items.front().consumers == Consumers::kCross && crosses) return ok_status();
  if (items.empty() && info_.spec.every_layer_crosses()) {
    return field_error("prompt", str_cat("every decoder layer of this model (", info_.spec.family,
                                         ") reads an encoder prompt, and the request has none: give one to encode"));
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const EncoderItem& item = items[i];
    const bool is_crossed = has(item.consumers, Consumers::kCross),
               is_spliced = has(item.consumers, Consumers::kSplice);
    if (item.num_positions() < 1 || item.num_rows() < item.num_positions()) return refuse_item(i, "has no rows");
    if (!is_crossed && !is_spliced) return refuse_item(i, "has no consumer");
    if (is_crossed && !crosses) return refuse_item(i, "is crossed, and the model has no layer for it");
    if (is_spliced && !splices) return refuse_item(i, "is spliced, which the model cannot");
    if (is_spliced && is_crossed && !info_.spec.has_one_width()) {
      return refuse_item(i, "is spliced and crossed, and the model wants rows of another width for each");
    }
  }
  const int64_t num_cross = num_cross_positions(items);
  if (num_cross <= info_.max_encoder_len) return ok_status();
  return field_error("items", str_cat("the items have ", num_cross, " positions to cross, more than the ",
                                      info_.max_encoder_len, " that the model has"));
}

// Rows that are spliced stand in the prompt, one item behind another.
Status InputStage::check_splices(const EncoderDecoderInputs& inputs) const {
  const int64_t num_prompt = std::ssize(inputs.prompt_token_ids);
  int64_t end = 0;  // of the last item that is spliced
  for (size_t i = 0; i < inputs.items.size(); ++i) {
    const EncoderItem& item = inputs.items[i];
    if (!has(item.consumers, Consumers::kSplice)) continue;
    const int64_t last = int64_t{item.splice_offset} + item.num_positions();
    if (item.splice_offset < end || last > num_prompt) {
      return refuse_item(i, "stands at tokens ", item.splice_offset, " to ", last, " of a prompt of ", num_prompt,
                         ", the item before it up to ", end);
    }
    end = last;
  }
  return ok_status();
}

Status InputStage::check_layout(const EncoderDecoderInputs& inputs) const {
  const DecoderLayout& layout = inputs.layout;
  const auto refuse = [](const auto&... why) { return field_error("layout", str_cat(why...)); };
  const int64_t num_prompt = std::ssize(inputs.prompt_token_ids), axes = info_.spec.position_axes;
  if (layout.prompt_positions.empty()) {
    if (layout.position_delta != 0) return refuse("a position_delta without prompt_positions");
  } else if (std::ssize(layout.prompt_positions) != axes * num_prompt) {
    return refuse(layout.prompt_positions.size(), " prompt_positions for ", axes, " axes of ", num_prompt, " tokens");
  }
  for (const int32_t position : layout.prompt_positions) {
    if (position < 0 || position >= info_.max_decoder_len) return refuse("position ", position, " is out of range");
  }
  if (layout.position_delta > 0 || num_prompt + layout.position_delta < 0) {
    return refuse("position_delta ", layout.position_delta, " is out of range");
  }
  const int64_t num_cross = num_cross_positions(inputs.items);
  int64_t last = -1;
  for (const RowRange& range : layout.ranges) {
    if (range.first_token <= last) return refuse("ranges do not ascend");
    if (range.key_begin < 0 || range.key_end < range.key_begin || range.key_end > num_cross) {
      return refuse("keys ", range.key_begin, " to ", range.key_end, " of ", num_cross);
    }
    last = range.first_token;
  }
  return ok_status();
}

Status InputStage::take_held(const EncodedInput& encoded, EncoderDecoderInputs& inputs) const {
  if (!shared_.owns(encoded)) {
    return field_error("encoded_input",
                       encoded.has_value() ? "the handle is of another engine" : "the handle is empty");
  }
  const std::vector<EncoderItem>& held = encoded.items();
  const bool splices =
      std::ranges::any_of(held, [](const EncoderItem& item) { return has(item.consumers, Consumers::kSplice); });
  if (!splices) inputs.items.clear();  // they have no places
  if (splices && inputs.items.size() != held.size()) {
    return field_error("items", str_cat("the handle has ", held.size(), " items, which stand within the prompt, and ",
                                        "the request says of ", inputs.items.size(), " where"));
  }
  inputs.items = items_in_places(held, inputs.items);
  inputs.encoder_prompt = encoded.text();
  return ok_status();
}

StatusOr<EncodedInput> InputStage::hold(const EncoderDecoderInputs& inputs) {
  shared_.collect_dropped();
  if (inputs.num_encoder_tokens() == 0) return field_error("prompt", "there is no encoder input");
  RETURN_IF_ERROR(check_items(inputs.items));
  // The least that a request over it may ask for.
  if (const Status fits = scheduler_.check_admission(inputs.items, 1, 1); !fits.ok()) return with_param(fits, "prompt");
  return shared_.hold(inputs.items, inputs.encoder_prompt, inputs.cache_salt);
}

Status InputStage::open(Request& request) {
  if (!request.inputs.open_token.has_value()) return ok_status();
  const OpenToken& token = *request.inputs.open_token;
  const auto num_before = static_cast<size_t>(token.index);
  CHECK(num_before > 0 && num_before < request.inputs.prompt_token_ids.size(),
        "an open token stands inside the prompt");
  const Status fits = scheduler_.check_admission(
      request.inputs.items, std::ssize(request.inputs.prompt_token_ids) + request.params.max_tokens,
      request.params.num_seqs());
  if (!fits.ok()) return with_advice(fits, request.params);
  Request pass = request;
  if (!pass.encoded.has_value()) {
    ASSIGN_OR_RETURN(pass.encoded, hold(pass.inputs));
    request.encoded = pass.encoded;
  }
  pass.inputs.open_token.reset();
  cut_prompt(pass.inputs, num_before);
  pass.params = SamplingParams();
  pass.params.max_tokens = 1;
  pass.params.allowed_token_ids = token.choices;
  std::ranges::sort(pass.params.allowed_token_ids);
  pass.options.stream = false;
  open_.insert_or_assign(request.id, std::exchange(request, std::move(pass)));
  return ok_status();
}

void InputStage::close(size_t first, std::vector<RequestOutput>& outputs,
                       const std::function<Status(Request request, const RequestOutput& opened)>& add) {
  if (open_.empty()) return;
  for (size_t i = first; i < outputs.size(); ++i) {
    const auto found = open_.find(outputs[i].request_id);
    if (found == open_.end() || !outputs[i].finished) continue;
    Request request = std::move(found->second);
    open_.erase(found);
    if (!outputs[i].error.empty()) continue;
    EncoderDecoderInputs& inputs = request.inputs;
    inputs.prompt_token_ids[static_cast<size_t>(inputs.open_token->index)] =
        outputs[i].outputs.front().token_ids.front();
    inputs.open_token.reset();
    if (const Status added = add(std::move(request), outputs[i]); added.ok()) {
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i--));
    } else {
      outputs[i].outputs.clear();
      outputs[i].error = error_message(added);
      outputs[i].error_param = error_param(added);
    }
  }
}

std::optional<bool> InputStage::abort(const std::string& request_id) {
  const auto found = open_.find(request_id);
  if (found == open_.end()) return std::nullopt;
  const bool score_only = found->second.params.score_only;
  open_.erase(found);
  return score_only;
}

}  // namespace transept
