// For tests: a body on its way that remembers its refusal.
#pragma once

#include <optional>
#include <utility>

#include "net/http_service.h"

namespace transept::testing {

class FakeBody final : public IncomingBody {
 public:
  void refuse(HttpResponse response) override { refusal = std::move(response); }
  std::optional<HttpResponse> refusal;
};

}  // namespace transept::testing
