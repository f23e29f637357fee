#include "disagg/ucx_bulk.h"

#include <utility>

#ifdef TRANSEPT_UCX
#include "disagg/ucx_receiver.h"
#include "disagg/ucx_sender.h"
#endif

namespace transept {

#ifdef TRANSEPT_UCX

namespace {

class UcxBulk final : public BulkTransport {
 public:
  UcxBulk(std::unique_ptr<UcxReceiver> receiver, std::unique_ptr<UcxWorker> worker, std::shared_ptr<FrameWriter> writer)
      : receiver_(std::move(receiver)), sender_(std::move(worker), std::move(writer)) {}

  std::string address() const override { return receiver_->address(); }
  void send(std::string_view to, Sending sending) override { sender_.send(to, std::move(sending)); }
  void cancel(const EcInput& input) override { sender_.cancel(input); }
  void receive(std::function<void(std::span<const std::byte> frame)> take) override {
    receiver_->start(std::move(take));
  }

 private:
  const std::unique_ptr<UcxReceiver> receiver_;
  UcxSender sender_;
};

}  // namespace

bool has_ucx() { return true; }

StatusOr<std::unique_ptr<BulkTransport>> create_ucx_bulk(const std::string& address,
                                                         std::shared_ptr<FrameWriter> writer) {
  ASSIGN_OR_RETURN(const UcxAddress parsed, UcxAddress::parse(address));
  ASSIGN_OR_RETURN(auto receiver, UcxReceiver::create(parsed));
  if (receiver->address().size() > kMaxEcAddressBytes) {
    return invalid_argument("address ", address, ": is longer than ", kMaxEcAddressBytes, " bytes");
  }
  ASSIGN_OR_RETURN(auto worker, UcxWorker::create());
  return std::make_unique<UcxBulk>(std::move(receiver), std::move(worker), std::move(writer));
}

#else

bool has_ucx() { return false; }

StatusOr<std::unique_ptr<BulkTransport>> create_ucx_bulk(const std::string& /*address*/,
                                                         std::shared_ptr<FrameWriter> /*writer*/) {
  return unimplemented("this build has no UCX: its headers (Debian: libucx-dev) were not there");
}

#endif

}  // namespace transept
