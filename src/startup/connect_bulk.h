// The transport of rows of an instance: --ec-bulk and --ec-bulk-address.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "disagg/frame_writer.h"
#include "encoder_cache/bulk_transport.h"

namespace transept {

enum class BulkKind : uint8_t {
  kZmq,     // from peer to peer, over sockets
  kBroker,  // through the broker's Redis server
  kUcx,     // from peer to peer, over what UCX finds: RDMA, shared memory, TCP
};

struct BulkOptions {
  BulkKind kind = BulkKind::kZmq;
  std::string address;         // where rows are taken; "": default_bulk_address()
  std::string broker;          // --broker
  std::string ns = "default";  // --ec-namespace
  InstanceId self;
  std::string url;  // of the instance's server, as others reach it
};

// Parses a --ec-bulk. Errors: kInvalidArgument.
StatusOr<BulkKind> parse_bulk_kind(const std::string& name);

// Errors: kInvalidArgument, the kind does not go with the broker or the address, by name.
Status check_bulk(const BulkOptions& options);

// Of an instance without a secret, which believes what comes from this machine. Errors: kInvalidArgument, its broker or
// the address where it takes rows is open to other machines, by the flag's name; those of parse_redis_url().
Status check_without_secret(const BulkOptions& options);

// Errors: those of check_bulk(), and of ZmqBulk::create(), RedisBulk::create() or create_ucx_bulk(), with the flag's
// name.
StatusOr<std::unique_ptr<BulkTransport>> connect_bulk(const BulkOptions& options, std::shared_ptr<FrameWriter> writer);

// Beside a local broker's socket, if the kind has sockets of files; else any port of the host of `url`. "": the kind
// has no addresses.
std::string default_bulk_address(const BulkOptions& options);

}  // namespace transept
