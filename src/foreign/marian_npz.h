// Opens a model of Marian (.npz) as a model: its options are an array inside, its vocabularies and SentencePiece models
// lie beside it, as in OPUS-MT's releases. Source: marian-dev 1.12, src/models/transformer.h (names of parameters),
// src/common/config_parser.cpp (options); transformers 5.23, convert_marian_to_pytorch.py.
#pragma once

#include <string>

#include "base/status.h"
#include "foreign/foreign_model.h"

namespace transept {

// Errors: those of NpzFile, parse_yaml_map() and MarianVocabulary; no special:model.yml; kUnimplemented, naming the
// option, for a model that is none of the transformers that are read; a parameter that is missing, has another rank or
// type, or that no such layer has.
StatusOr<ForeignModel> open_marian_npz(const std::string& path);

}  // namespace transept
