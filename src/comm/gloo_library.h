// Loads Gloo when ranks on several hosts start, not at program start: no other process needs it, and it brings the
// libraries of InfiniBand along. Of gloo_transport.cc alone, which is compiled where the build has its headers
// (TRANSEPT_GLOO). One function is looked up, which makes a device; everything else is a virtual function of what that
// makes. The layout of those tables is that of the headers: Debian's libgloo0 and libgloo-dev of one version. The
// library stays loaded until the process ends. Thread-safe.
#pragma once

#include <gloo/transport/device.h>
#include <gloo/transport/tcp/attr.h>

#include <memory>

#include "base/status.h"

namespace transept {

using CreateGlooDevice = std::shared_ptr<gloo::transport::Device>(const gloo::transport::tcp::attr& attributes);

// Loads the library once; later calls return the same. Errors: kNotFound, it is missing or lacks the function.
StatusOr<CreateGlooDevice*> load_gloo();

}  // namespace transept
