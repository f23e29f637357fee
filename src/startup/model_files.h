// The files of a MODEL: a folder as transformers has it, or another program's file that is read as one (foreign/).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/model_folder.h"
#include "base/status.h"
#include "weights/found_tensors.h"
#include "weights/weight_map.h"

namespace transept {

class ModelFiles final {
 public:
  // `model`: a folder, or a file that foreign_file() finds. Errors: those of the file's reader.
  static StatusOr<ModelFiles> open(const std::string& model);

  const ModelFolder& folder() const { return folder_; }
  // The folder whose files are the model's, too; "": there is none.
  const std::string& disk() const { return disk_; }
  bool is_foreign() const { return tensors_.has_value(); }
  // FoundTensors::quantization; "": of a folder of transformers, too.
  std::string quantization() const { return tensors_.has_value() ? tensors_->quantization : ""; }

  // The weights, for one rank; once. Errors: those of WeightMap.
  StatusOr<std::unique_ptr<WeightMap>> open_weights(const ReadingRank& reader = {}) &&;

 private:
  ModelFolder folder_;
  std::string disk_;
  std::optional<FoundTensors> tensors_;  // unset: a folder of transformers
};

// The file of another program that `model` is: itself; the model.bin of a folder of CTranslate2; the only file of
// weights of a folder without weights of transformers, whose config.json may lie there. nullopt: `model` is none, or of
// a program whose files are not read.
std::optional<std::string> foreign_file(const std::string& model);

}  // namespace transept
