// The norm of some rows by a group: y = (x - mean) / sqrt(variance + epsilon) * weight + bias, or without mean and bias
// (is_rms). A kernel defines kNormRows (so many rows are normalised at once), x_of(uint) and set_normed(uint, float), and
// has operands weight and, but for RMS, bias as gain(uint) and shift(uint). A row's sums are the same however many rows
// there are.
#ifdef RMS
#define is_rms true
#define shift(i) 0.0
#elif !defined(is_rms)
#define is_rms false
#endif

shared float exchange_of_rows_[kNormRows][LANES];

void add_lanes_of_rows(inout float sums[kNormRows]) {
  for (uint distance = 1; distance < LANES; distance *= 2) {
    for (uint r = 0; r < kNormRows; ++r) exchange_of_rows_[r][lane()] = sums[r];
    barrier();
    for (uint r = 0; r < kNormRows; ++r) sums[r] += exchange_of_rows_[r][lane() ^ distance];
    barrier();
  }
}

// Rows [first, first + kNormRows) of `rows`; what is past the last is not stored. x: from row * x_stride_ on.
void normalize_rows(uint first, uint rows_, uint n_, uint x_stride_, uint y_stride_, float epsilon_) {
  uint from[kNormRows];
  float sums[kNormRows], squares[kNormRows];
  for (uint r = 0; r < kNormRows; ++r) {
    from[r] = min(first + r, rows_ - 1) * x_stride_;
    sums[r] = 0;
    squares[r] = 0;
  }
  if (!is_rms) {
    for (uint i = lane(); i < n_; i += LANES) {
      for (uint r = 0; r < kNormRows; ++r) sums[r] += x_of(from[r] + i);
    }
    add_lanes_of_rows(sums);
    for (uint r = 0; r < kNormRows; ++r) sums[r] /= float(n_);
  }
  for (uint i = lane(); i < n_; i += LANES) {
    for (uint r = 0; r < kNormRows; ++r) {
      const float d = x_of(from[r] + i) - sums[r];
      squares[r] = fma(d, d, squares[r]);
    }
  }
  add_lanes_of_rows(squares);
  for (uint r = 0; r < kNormRows; ++r) squares[r] = 1.0 / sqrt(squares[r] / float(n_) + epsilon_);
  for (uint i = lane(); i < n_; i += LANES) {
    for (uint r = 0; r < kNormRows && first + r < rows_; ++r) {
      const uint to = (first + r) * y_stride_ + i;
      const float scaled = (x_of(from[r] + i) - sums[r]) * squares[r];
      set_normed(to, is_rms ? scaled * gain(i) : fma(scaled, gain(i), shift(i)));
    }
  }
}
