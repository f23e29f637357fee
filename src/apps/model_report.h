// What `transept inspect` says of a model: sizes, storage, memory, speed. Made of a model that was loaded with
// EngineConfig::sizes_only, so no weights are read. Pure: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "startup/load_engine.h"

namespace transept {

// Returns whether a matrix is read in the encoder or when cross keys and values are written, so not in a decoding step.
// `name`: of the matrix in the checkpoint ("model.encoder.layers.0.fc1.weight").
bool belongs_to_encode(std::string_view name);

// Returns the report. name: of the model, as it was asked for. bandwidth: measured, bytes a second; 0: not measured,
// and no speeds are given.
Json model_report(const LoadedModel& model, const std::string& name, double bandwidth);

// Returns the same for a terminal.
std::string model_report_text(const Json& report);

}  // namespace transept
