// What an engine of a fleet is connected with (startup/instance.h). A value of borrowed parts.
#pragma once

#include "encoder_cache/broker.h"
#include "encoder_cache/connector.h"
#include "engine/encode_asker.h"

namespace transept {

struct InstanceLinks {
  InstanceRole role = InstanceRole::kDecode;   // kEncode or kDecode: which part of the model is loaded
  EncoderCacheConnector* connector = nullptr;  // outlives the engine's thread
  EncodeAsker* asker = nullptr;                // of a decode instance; null: it asks for nothing itself
};

}  // namespace transept
