// Flags of what requests' media may be: limits of images, and what becomes of transparency. Pure: thread-safe.
#pragma once

#include <vector>

#include "apps/flags.h"
#include "multimodal/media_access.h"

namespace transept {

std::vector<FlagSpec> media_flags();

// Errors name the flag: a number out of range; a modality that has no limit; an alpha rule that is unknown.
StatusOr<MediaLimits> media_limits(const Flags& flags);

}  // namespace transept
