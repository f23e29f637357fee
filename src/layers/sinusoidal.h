// Rows of sinusoidal positions (Vaswani et al. 2017, section 3.5), for checkpoints that do not hold them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept {

// Both put the sines of a row first and its cosines after them. They differ in the wavelengths.
enum class Sinusoid : uint8_t {
  // sin and cos of pos / 10000^(2i / dim): Marian, Pegasus. With an odd dim the sines have the column more.
  // Source: transformers, models/marian/modeling_marian.py, MarianSinusoidalPositionalEmbedding.create_weight.
  kByDim,
  // sin and cos of pos * exp(-i ln(10000) / (half - 1)), half = dim / 2, so that the last wavelength is 10000 exactly:
  // fairseq, and M2M100 after it. With an odd dim the last column is 0. Source: transformers,
  // models/m2m_100/modeling_m2m_100.py, M2M100SinusoidalPositionalEmbedding.get_embedding.
  kByHalf,
};

// Computes the row of any position on demand. Immutable, so thread-safe.
class SinusoidalRows final {
 public:
  // REQUIRES: dim >= 4 (kByHalf has no wavelengths below).
  SinusoidalRows(Sinusoid kind, int64_t dim);

  int64_t dim() const { return dim_; }

  // Computes one row, rounded to float32. REQUIRES: position >= 0; row: dim() floats.
  void compute(int64_t position, std::span<float> row) const;

 private:
  double angle(int64_t position, size_t column) const;

  Sinusoid kind_;
  int64_t dim_;
  std::vector<double> wavelengths_;  // of kByDim
  std::vector<float> frequencies_;   // of kByHalf
};

}  // namespace transept
