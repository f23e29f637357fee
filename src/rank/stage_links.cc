#include "rank/stage_links.h"

#include <vector>

#include "base/check.h"

namespace transept {
namespace {

std::span<std::byte> bytes_of(const TensorView& x) {
  CHECK(x.dtype == DType::kFloat32 && (x.dim(0) <= 1 || x.stride[0] == x.dim(1)), "rows that do not lie side by side");
  return std::as_writable_bytes(std::span(x.f32(), static_cast<size_t>(x.num_elements())));
}

}  // namespace

StagePlace StagePlace::of(const Communicator& all, int32_t num_stages) {
  CHECK(num_stages >= 1 && all.size() % num_stages == 0, all.size(), " ranks of ", num_stages, " stages");
  const int32_t count = all.size() / num_stages;
  return {all.rank() / count, num_stages, {all.rank() % count, count}};
}

StageLinks::StageLinks(Communicator& all, const StagePlace& place, int32_t num_encoding)
    : all_(all), place_(place), num_encoding_(num_encoding) {
  CHECK(num_encoding >= 1 && num_encoding <= place.num_stages);
  if (place.ranks.count > 1)
    ranks_ = std::make_unique<SubCommunicator>(all, rank_of(place.stage) - place.ranks.rank, place.ranks.count);
}

Status StageLinks::send(int32_t stage, const TensorView& x) const {
  return x.num_elements() == 0 ? ok_status() : all_.send(rank_of(stage), bytes_of(x));
}

Status StageLinks::recv(int32_t stage, const TensorView& x) const {
  return x.num_elements() == 0 ? ok_status() : all_.recv(rank_of(stage), bytes_of(x));
}

Status StageLinks::add_to_first(std::span<float> values) const {
  if (all_.rank() > 0) return all_.send(0, std::as_bytes(values));
  std::vector<float> theirs(values.size());
  for (int rank = 1; rank < all_.size(); ++rank) {
    RETURN_IF_ERROR(all_.recv(rank, std::as_writable_bytes(std::span(theirs))));
    for (size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
  }
  return ok_status();
}

}  // namespace transept
