#include "disagg/inproc_bulk.h"

#include "disagg/bulk_conformance_testing.h"

namespace transept::testing {
namespace {

struct InprocWorld {
  std::unique_ptr<BulkTransport> transport(const std::string& name) {
    return std::make_unique<InprocBulk>(net, name, std::make_shared<FrameWriter>(1, nullptr));
  }
  std::shared_ptr<InprocBulkNet> net = std::make_shared<InprocBulkNet>();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Inproc, BulkConformance, InprocWorld);

}  // namespace
}  // namespace transept::testing
