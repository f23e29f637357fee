// A model in the file of another program, as a folder of transformers would have it. A value.
#pragma once

#include <string>

#include "base/model_folder.h"
#include "weights/found_tensors.h"

namespace transept {

struct ForeignModel {
  ModelFolder folder;    // its configurations and tokenizer
  FoundTensors tensors;  // under the names of transformers
  std::string disk;      // the folder that has its other files; "": there are none
};

}  // namespace transept
