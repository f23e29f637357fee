// WhisperSpec: the models of faster-whisper.
#pragma once

#include <memory>

#include "base/json.h"
#include "base/mmap_file.h"
#include "foreign/ct2_file.h"
#include "foreign/foreign_model.h"

namespace transept {

// folder: the folder of the file. config: its config.json. Errors name what no Whisper has.
StatusOr<ForeignModel> open_ct2_whisper(const Ct2File& model, const ModelFolder& folder, const Json& config,
                                        std::unique_ptr<MmapFile> file);

}  // namespace transept
