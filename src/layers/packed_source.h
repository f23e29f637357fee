// A packed matrix as a source: one of a packed folder that is wanted in another format, or in part. Borrows the matrix.
#pragma once

#include <memory>

#include "ops/packed_matrix.h"
#include "weights/matrix_source.h"

namespace transept {

// int8 panels and nibbles give their codes and scales as they are, others their numbers. `packed` outlives the source.
std::unique_ptr<MatrixSource> make_packed_source(const PackedMatrix& packed);

}  // namespace transept
