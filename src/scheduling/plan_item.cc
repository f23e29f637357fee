#include "scheduling/plan_item.h"

#include <iterator>

namespace transept {

void plan_item(const EncoderItem& item, PlannedEncode& encode, std::vector<float>& bulk) {
  if (!item.remote.has_value()) encode.token_ids.assign(item.token_ids.begin(), item.token_ids.end());
  encode.num_positions = item.num_positions();
  encode.num_rows = item.num_rows();
  encode.consumers = item.consumers;
  if (const EncoderFeatures* features = item.features.get(); features != nullptr) {
    encode.features.shape = features->shape;
    encode.features.extras = features->extras;
    encode.features.begin = std::ssize(bulk);
    bulk.insert(bulk.end(), features->values.begin(), features->values.end());
  }
}

}  // namespace transept
