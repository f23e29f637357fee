// A sublayer's residual sum with its norm and, where the family has one, its gate. Immutable after loading, so
// thread-safe.
#pragma once

#include <cstdint>

#include "layers/norm.h"
#include "ops/rows.h"
#include "tensor/context.h"
#include "tensor/device_floats.h"

namespace transept {

// Where the norm of a sublayer f stands.
enum class NormPlace : uint8_t {
  kAfter,   // y = norm(x + f(x)): BART, BERT
  kBefore,  // y = x + f(norm(x)): mBART, T5, Whisper, Llama
  kInside,  // y = x + norm(f(x)): EVA-CLIP
};

struct Residual {
  Norm norm;
  NormPlace place = NormPlace::kBefore;
  // y = x + gate * f(x): [1], or [dim] (one a column), as the layer multiplies (a tanh is applied at loading). Empty:
  // no gate.
  DeviceFloats gate = {};

  // Replaces x [rows, dim] by the result. f(in, residual, out): out = f(in) + residual; `out` may be `residual` and
  // `in`; a residual of rank 0 adds nothing.
  template <typename F>
  void run(Context& context, const TensorView& x, const F& f) const {
    const Arena::Scope scope(context.arena);
    TensorView in = x;
    if (place == NormPlace::kBefore) {
      in = context.arena.tensor(DType::kFloat32, {x.dim(0), x.dim(1)});
      norm.forward(context, x, in);
    }
    if (gate.empty() && place != NormPlace::kInside) {
      f(in, x, x);
    } else {
      const TensorView out = context.arena.tensor(DType::kFloat32, {x.dim(0), x.dim(1)});
      f(in, TensorView(), out);
      if (place == NormPlace::kInside) norm.forward(context, out, out);
      add_gated(context, out, gate.data(), static_cast<int64_t>(gate.size()), x);
    }
    if (place == NormPlace::kAfter) norm.forward(context, x, x);
  }
};

}  // namespace transept
