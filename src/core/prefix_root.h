// What the decoder's self-attention KV of a prompt depends on besides the prompt's ids: the root of the chain of hashes
// by which its blocks are found again (scheduling/scheduler_prefixes.cc). A pure function: thread-safe.
#pragma once

#include "base/content_digest.h"
#include "core/prompt.h"

namespace transept {

// SHA-256 of the salt, of all items' digests with what the decoder does with them and where, and of the layout's
// ranges. Positions are of the chain, token by token. REQUIRES: all items have digests.
ContentDigest prefix_root(const EncoderDecoderInputs& inputs);

}  // namespace transept
