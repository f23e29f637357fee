#include "ops/activation.h"
#include "ops/gemm.h"

namespace transept {

void gemm_reference(const TensorView& x, const TensorView& w, const Epilogue& epilogue, const TensorView& y) {
  CHECK(x.rank == 2 && w.rank == 2 && y.rank == 2 && x.dim(1) == w.dim(1) && y.dim(0) == x.dim(0) &&
        y.dim(1) == w.dim(0));
  const bool has_residual = !epilogue.residual.empty();
  const int64_t depth = x.dim(1);
  for (int64_t i = 0; i < x.dim(0); ++i) {
    const float* inputs = x.row(i);
    for (int64_t j = 0; j < w.dim(0); ++j) {
      const float* weights = w.row(j);
      double sum = epilogue.bias == nullptr ? 0 : epilogue.bias[j];
      for (int64_t t = 0; t < depth; ++t) sum += static_cast<double>(inputs[t]) * weights[t];
      const float activated = activate(epilogue.activation, static_cast<float>(sum));
      y.row(i)[j] = has_residual ? activated + epilogue.residual.row(i)[j] : activated;
    }
  }
}

}  // namespace transept
