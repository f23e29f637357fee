#include "comm/group_call.h"

#include "base/strings.h"

namespace transept {
namespace {

const char* name_of(uint32_t kind) {
  switch (static_cast<CallKind>(kind)) {
    case CallKind::kExchange: return "exchange";
    case CallKind::kBroadcast: return "broadcast";
    case CallKind::kBarrier: return "barrier";
    default: return "message";
  }
}

std::string text(const GroupCall& call) {
  return str_cat(call.place(), " with ", call.bytes, " bytes from rank ", call.root);
}

}  // namespace

std::string GroupCall::place() const { return str_cat(name_of(kind), " ", number_in_step, " of step ", step); }

std::string run_apart_text(std::string_view other, const GroupCall& theirs, int rank, const GroupCall& own) {
  return str_cat("ranks have run apart: ", other, " makes ", text(theirs), ", and rank ", rank, " ", text(own));
}

}  // namespace transept
