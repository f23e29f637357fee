#include "encoder_cache/ec_body.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <optional>
#include <string>

#include "base/checked_math.h"
#include "base/little_endian.h"
#include "base/quoted.h"

namespace transept {
namespace {

using std::chrono::microseconds;

// Types on the wire. DType's own numbers may change.
constexpr std::pair<DType, uint8_t> kWireTypes[] = {{DType::kFloat32, 1}, {DType::kBFloat16, 2}};

// One description of all fields serves both ways: an archive writes values, or replaces them.
class Saver final {
 public:
  explicit Saver(std::vector<std::byte>& out) : out_(out) {}

  template <std::integral T>
  void value(std::string_view, T v) {
    raw(&v, sizeof v);
  }
  void value(std::string_view name, const std::string& v) {
    value(name, static_cast<uint16_t>(v.size()));
    raw(v.data(), v.size());
  }
  void value(std::string_view, const ContentDigest& v) { raw(v.bytes.data(), v.bytes.size()); }
  void value(std::string_view name, EcVerdict v) { value(name, static_cast<uint8_t>(v)); }
  void value(std::string_view name, DType v) {
    value(name, std::ranges::find(kWireTypes, v, &std::pair<DType, uint8_t>::first)->second);
  }
  void value(std::string_view name, Duration v) {
    value(name, static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(v).count()));
  }
  void payload_kind() { value("payload_kind", kEcHiddenRows); }
  void chunk_bytes(std::span<const std::byte> v) { value("bytes", static_cast<uint32_t>(v.size())); }

 private:
  void raw(const void* data, size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }

  std::vector<std::byte>& out_;
};

// The first field that is missing or wrong fails the loader; later ones keep their values.
class Loader final {
 public:
  // `begin`: the offset that the first byte has in errors.
  Loader(std::span<const std::byte> bytes, size_t begin) : bytes_(bytes), begin_(begin) {}

  template <std::integral T>
  void value(std::string_view name, T& v) {
    if (const std::byte* from = field(name, sizeof v)) v = little_endian<T>(from);
  }
  void value(std::string_view name, std::string& v) {
    const std::byte* from = field(name, sizeof(uint16_t));
    if (from == nullptr) return;
    const size_t size = little_endian<uint16_t>(from);
    from = more(size);
    if (from != nullptr) v.assign(reinterpret_cast<const char*>(from), size);
  }
  void value(std::string_view name, ContentDigest& v) {
    if (const std::byte* from = field(name, v.bytes.size())) std::memcpy(v.bytes.data(), from, v.bytes.size());
  }
  void value(std::string_view name, EcVerdict& v) {
    uint8_t number = 0;
    value(name, number);
    if (number >= kNumEcVerdicts) return fail(str_cat(number, " is no verdict"));
    v = static_cast<EcVerdict>(number);
  }
  void value(std::string_view name, DType& v) {
    uint8_t number = 0;
    value(name, number);
    if (!ok()) return;
    const auto* const type = std::ranges::find(kWireTypes, number, &std::pair<DType, uint8_t>::second);
    if (type == std::end(kWireTypes)) return fail(str_cat(number, " is no type; 1 is float32, 2 is bfloat16"));
    v = type->first;
  }
  void value(std::string_view name, Duration& v) {
    uint64_t number = 0;
    value(name, number);
    if (number > static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(Duration::max()).count())) {
      return fail(str_cat(number, " us are out of range"));
    }
    v = microseconds(static_cast<int64_t>(number));
  }
  void payload_kind() {
    uint8_t kind = kEcHiddenRows;
    value("payload_kind", kind);
    if (kind == 2) return fail("2, cross K and V, is not supported; 1, hidden rows, is");
    if (kind != kEcHiddenRows) fail(str_cat(kind, " is unknown; 1, hidden rows, is known"));
  }
  void chunk_bytes(std::span<const std::byte>& v) {
    uint32_t size = 0;
    value("bytes", size);
    const std::byte* from = more(size);
    if (from != nullptr) v = {from, size};
  }

  bool ok() const { return error_.ok(); }
  const Status& status() const { return error_; }
  // The error of a check of a field that was read, with its place.
  Status placed(const Status& error) const {
    const std::string name = error_param(error);
    const auto at = std::ranges::find(places_, name, &std::pair<std::string_view, size_t>::first);
    return at == places_.end() ? error : error_at(*at, error_message(error));
  }

 private:
  // Null: too few bytes, or the loader has failed.
  const std::byte* field(std::string_view name, size_t size) {
    if (!ok()) return nullptr;
    places_.emplace_back(name, begin_ + at_);
    return more(size);
  }
  const std::byte* more(size_t size) {
    if (!ok()) return nullptr;
    if (size > bytes_.size() - at_) {
      fail("is cut off");
      return nullptr;
    }
    at_ += size;
    return bytes_.data() + at_ - size;
  }
  void fail(std::string_view why) {
    if (ok()) error_ = error_at(places_.back(), why);
  }
  static Status error_at(const std::pair<std::string_view, size_t>& place, std::string_view why) {
    return field_error(place.first, str_cat("byte ", place.second, ": ", place.first, ": ", why));
  }

  std::span<const std::byte> bytes_;
  size_t begin_;
  size_t at_ = 0;
  std::vector<std::pair<std::string_view, size_t>> places_;  // of the fields, in order
  Status error_;
};

template <typename A, typename Key>
void describe_key(A& archive, Key& key) {
  archive.value("request_id", key.request_id);
  archive.value("input_id", key.input_id);
  archive.value("attempt", key.attempt);
}

// Const or not, as the archive needs it.
template <typename T, typename Message>
concept Is = std::same_as<std::remove_const_t<T>, Message>;

template <typename A, Is<EcAllocation> Allocation>
void describe(A& archive, Allocation& allocation) {
  describe_key(archive, allocation.key);
  archive.value("verdict", allocation.verdict);
  archive.value("reservation", allocation.reservation);
  archive.value("bulk_address", allocation.bulk_address);
}

template <typename A, Is<EcInjection> Injection>
void describe(A& archive, Injection& injection) {
  describe_key(archive, injection.key);
  archive.value("verdict", injection.verdict);
}

template <typename A, Is<EcMeta> Meta>
void describe(A& archive, Meta& meta) {
  describe_key(archive, meta.key);
  archive.value("digest", meta.digest);
  archive.value("model", meta.model);
  archive.value("num_positions", meta.num_positions);
  archive.value("width", meta.width);
  archive.value("dtype", meta.dtype);
  archive.value("offset", meta.place.offset);
  archive.value("length", meta.place.length);
  for (auto& side : meta.place.grid) archive.value("grid", side);
  archive.value("time_left", meta.time_left);
}

template <typename A, Is<EcChunk> Chunk>
void describe(A& archive, Chunk& chunk) {
  describe_key(archive, chunk.key);
  archive.value("reservation", chunk.reservation);
  archive.payload_kind();
  archive.value("offset", chunk.offset);
  archive.value("total", chunk.total);
  archive.chunk_bytes(chunk.bytes);
}

template <typename A, Is<EcQuery> Query>
void describe(A& archive, Query& query) {
  describe_key(archive, query.key);
}

template <typename A, Is<EcCancel> Cancel>
void describe(A& archive, Cancel& cancel) {
  describe_key(archive, cancel.key);
}

Status check(const EcAllocation& allocation) {
  const bool is_allocated = allocation.verdict == EcVerdict::kAllocated;
  if ((allocation.reservation != 0) != is_allocated) {
    return field_error("reservation", is_allocated ? "is 0" : "is not 0, and nothing is allocated");
  }
  const std::string& address = allocation.bulk_address;
  if (address.empty() == is_allocated) {
    return field_error("bulk_address", is_allocated ? "is empty" : "is not empty, and nothing is allocated");
  }
  if (address.size() > kMaxEcAddressBytes) {
    return field_error("bulk_address", str_cat("has ", address.size(), " bytes; at most 256 are allowed"));
  }
  if (!std::ranges::all_of(address, [](char c) { return c > ' ' && c <= '~'; })) {
    return field_error("bulk_address", str_cat(in_quotes(address), " is not printable ASCII without spaces"));
  }
  return ok_status();
}

Status check(const EcInjection&) { return ok_status(); }
Status check(const EcMeta& meta) { return check_ec_meta(meta); }

Status check(const EcChunk& chunk) {
  if (chunk.reservation == 0) return field_error("reservation", "is 0");
  if (chunk.bytes.empty()) return field_error("bytes", "is empty");
  if (chunk.bytes.size() > kMaxEcChunkBytes) {
    return field_error("bytes", str_cat("has ", chunk.bytes.size(), " bytes; at most 1048576 are allowed"));
  }
  const auto end = checked_add<uint64_t>(chunk.offset, chunk.bytes.size());
  if (!end || *end > chunk.total) {
    return field_error("offset", str_cat(chunk.offset, ", and ", chunk.bytes.size(),
                                         " bytes from there, end after the ", chunk.total, " bytes of the output"));
  }
  return ok_status();
}

Status check(const EcQuery&) { return ok_status(); }

Status check(const EcCancel& cancel) {
  if (cancel.channel != EcChannel::kAllocation && cancel.channel != EcChannel::kMetadata) {
    return field_error("channel", str_cat("channel ", static_cast<int>(cancel.channel), " has no Cancel"));
  }
  return ok_status();
}

template <typename Message>
StatusOr<EcMessage> load(Message message, std::span<const std::byte> body, size_t begin) {
  Loader loader(body, begin);
  describe(loader, message);
  if (!loader.ok()) return loader.status();
  EcMessage loaded = std::move(message);
  if (const Status checked = check_ec_message(loaded); !checked.ok()) return loader.placed(checked);
  return loaded;
}

}  // namespace

EcChannel channel_of(const EcMessage& message) {
  constexpr EcChannel kChannels[] = {EcChannel::kAllocation, EcChannel::kInjection, EcChannel::kMetadata,
                                     EcChannel::kCache, EcChannel::kMetadata};
  if (const auto* cancel = std::get_if<EcCancel>(&message)) return cancel->channel;
  return kChannels[message.index()];
}

EcKind kind_of(const EcMessage& message) {
  if (std::holds_alternative<EcQuery>(message)) return EcKind::kQuery;
  return std::holds_alternative<EcCancel>(message) ? EcKind::kCancel : EcKind::kMessage;
}

Status check_ec_message(const EcMessage& message) {
  return std::visit(
      [](const auto& m) {
        const Status named = check_ec_name("request_id", m.key.request_id);
        return named.ok() ? check(m) : named;
      },
      message);
}

void append_ec_body(const EcMessage& message, std::vector<std::byte>& out) {
  Saver saver(out);
  std::visit([&](const auto& m) { describe(saver, m); }, message);
}

std::pair<size_t, size_t> find_ec_chunk_bytes(std::span<const std::byte> body) {
  const std::pair none(body.size(), size_t{0});
  if (body.size() < 2) return none;
  // Behind the request id: input_id, attempt, reservation, payload_kind, offset, total.
  const size_t at = 2 + little_endian<uint16_t>(body.data()) + (4 + 4 + 8 + 1 + 8 + 8);
  if (body.size() < at + 4) return none;
  const size_t size = little_endian<uint32_t>(body.data() + at);
  return size > body.size() - at - 4 ? none : std::pair(at + 4, size);
}

StatusOr<EcMessage> decode_ec_body(EcChannel channel, EcKind kind, std::span<const std::byte> body, size_t begin) {
  if (kind == EcKind::kQuery) return load(EcQuery{}, body, begin);
  if (kind == EcKind::kCancel) return load(EcCancel{{}, channel}, body, begin);
  switch (channel) {
    case EcChannel::kAllocation: return load(EcAllocation{}, body, begin);
    case EcChannel::kInjection: return load(EcInjection{}, body, begin);
    case EcChannel::kMetadata: return load(EcMeta{}, body, begin);
    case EcChannel::kCache: return load(EcChunk{}, body, begin);
  }
  return field_error("channel", "is unknown");
}

}  // namespace transept
