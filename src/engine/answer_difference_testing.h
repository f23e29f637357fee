// For tests: an engine's answer to a random request over the fake model, against the obvious decoder's.
// Compiled into the tests of this folder only (answer_difference_testlib.cc).
#pragma once

#include <string>

#include "core/request_output.h"
#include "engine/obvious_decoder_testing.h"
#include "engine/random_requests_testing.h"

namespace transept::testing {

// "" or what is different. The request has the ids of its encoder's input.
std::string difference(const RandomRequest& request, const RequestOutput& got, const ObviousAnswer& want);
// What was there when the request was aborted must be on the way to the truth.
std::string aborted_difference(const RandomRequest& request, const RequestOutput& got, const ObviousAnswer& want);

}  // namespace transept::testing
