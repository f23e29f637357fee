// Tells whether two instances encode alike: the SHA-256 of what determines the rows that an encoder makes of an input.
// An encode and a decode instance of one checkpoint have equal fingerprints, whichever part each has loaded and
// whichever kind of file it was loaded from; instances of different models, types or preprocessors do not
// (EcMeta::model).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/content_digest.h"
#include "base/status.h"
#include "core/model_config.h"
#include "tensor/dtype.h"
#include "tensor/weight_format.h"
#include "weights/weight_map.h"

namespace transept {

struct FingerprintOptions {
  int32_t wire_version = 0;                    // of the frames between instances
  std::optional<WeightFormat> weight_storage;  // as ModelRunnerOptions has it
};

// Hashes the options; config.json without the keys that only say who wrote it; preprocessor_config.json, if there is
// one; and of each tensor that is not the decoder's its type, its shape, the numbers in its name and its first 64 KiB.
// Names do not count, and equal tensors count once: files of torch.save have names for one tensor that safetensors
// files lack. A folder of packed matrices (decision 14) has other tensors than the folder that it was made of, and so
// another fingerprint. Both instances need the encoder's tensors in their folders.
//
// Reads 64 KiB a tensor. Thread-compatible. Errors: preprocessor_config.json cannot be read, or is not JSON.
StatusOr<ContentDigest> model_fingerprint(const ModelConfig& config, const WeightMap& weights,
                                          const FingerprintOptions& options);

// The same for several options, which differ from each other as their instances do: the tensors are read once.
StatusOr<std::vector<ContentDigest>> model_fingerprints(const ModelConfig& config, const WeightMap& weights,
                                                        std::span<const FingerprintOptions> options);

// The fingerprint of a model whose rows travel as these: instances with different types do not encode alike.
ContentDigest with_transfer_dtype(const ContentDigest& fingerprint, DType dtype);

}  // namespace transept
