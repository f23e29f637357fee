// Chunks over UCX, point to point: what its transports give: RDMA where there is InfiniBand or RoCE, shared memory
// between processes of one machine, TCP else (UCX_TLS and UCX's other variables choose). The library is loaded when the
// transport is made. As with ZeroMQ a peer that reads slowly costs a few chunks, and its sender sees no progress; a
// connection that breaks is made again, and what it had is the handshake's matter.
#pragma once

#include <memory>
#include <string>

#include "disagg/frame_writer.h"
#include "encoder_cache/bulk_transport.h"

namespace transept {

// Whether the build has it: it had UCX's headers.
bool has_ucx();

// Takes chunks at `address`: ucx://HOST:PORT, or ucx://HOST:* for a free port. Errors: kUnimplemented, the build has
// none; kNotFound, the library is not installed; kInvalidArgument and kUnavailable, the address.
StatusOr<std::unique_ptr<BulkTransport>> create_ucx_bulk(const std::string& address,
                                                         std::shared_ptr<FrameWriter> writer);

}  // namespace transept
