#include "ops/activation.h"

#include <cmath>
#include <numbers>

namespace transept {

float activate(Activation activation, float x) {
  const double d = x;
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < 0 ? 0 : x;
    case Activation::kGelu: return static_cast<float>(d * 0.5 * std::erfc(-d / std::numbers::sqrt2));
    case Activation::kGeluTanh: {
      const double u = std::sqrt(2 / std::numbers::pi) * (d + 0.044715 * d * d * d);
      return static_cast<float>(d * 0.5 * (1 + std::tanh(u)));
    }
    case Activation::kSilu: return static_cast<float>(d / (1 + std::exp(-d)));
  }
  return x;
}

}  // namespace transept
