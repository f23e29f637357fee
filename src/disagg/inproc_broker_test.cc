#include "disagg/inproc_broker.h"

#include "disagg/broker_conformance_testing.h"

namespace transept::testing {
namespace {

struct InprocWorld {
  std::unique_ptr<Broker> broker() { return std::make_unique<InprocBroker>(hub); }
  void go_away() { hub->go_away(); }
  void come_back_empty() { hub->come_back_empty(); }

  std::shared_ptr<InprocHub> hub =
      std::make_shared<InprocHub>(InprocHub::Options{{.max_frames = kWorldFrames}, kWorldTickets});
};

INSTANTIATE_TYPED_TEST_SUITE_P(Inproc, BrokerConformance, InprocWorld);

}  // namespace
}  // namespace transept::testing
