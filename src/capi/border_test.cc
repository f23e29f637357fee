#include "capi/border.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/allocation_count_testing.h"
#include "capi/capi_testing.h"

namespace transept::testing {
namespace {

TEST(Border, EveryStatusHasACodeWithAName) {
  const std::pair<Status, transept_code> cases[] = {
      {ok_status(), TRANSEPT_OK},
      {invalid_argument("x"), TRANSEPT_INVALID_ARGUMENT},
      {absl::OutOfRangeError("x"), TRANSEPT_OUT_OF_RANGE},
      {unimplemented("x"), TRANSEPT_UNIMPLEMENTED},
      {not_found("x"), TRANSEPT_NOT_FOUND},
      {resource_exhausted("x"), TRANSEPT_RESOURCE_EXHAUSTED},
      {absl::UnavailableError("x"), TRANSEPT_UNAVAILABLE},
      {absl::DeadlineExceededError("x"), TRANSEPT_DEADLINE_EXCEEDED},
      {absl::CancelledError("x"), TRANSEPT_CANCELLED},
      {absl::DataLossError("x"), TRANSEPT_DATA_LOSS},
      {absl::InternalError("x"), TRANSEPT_INTERNAL},
      {absl::UnknownError("x"), TRANSEPT_INTERNAL},
      {forked_error("x"), TRANSEPT_FORKED},
      {absl::FailedPreconditionError("x"), TRANSEPT_FAILED_PRECONDITION},
      {absl::PermissionDeniedError("x"), TRANSEPT_PERMISSION_DENIED},
  };
  for (const auto& [status, code] : cases) EXPECT_EQ(code_of(status), code) << status.ToString();
  EXPECT_STREQ(transept_code_name(TRANSEPT_OK), "ok");
  EXPECT_STREQ(transept_code_name(TRANSEPT_OUT_OF_MEMORY), "out_of_memory");
  EXPECT_STREQ(transept_code_name(TRANSEPT_PERMISSION_DENIED), "permission_denied");
  EXPECT_STREQ(transept_code_name(TRANSEPT_PERMISSION_DENIED + 1), "unknown");
  EXPECT_STREQ(transept_code_name(-1), "unknown");
}

TEST(Border, ExceptionsStopHere) {
  CallError error;
  EXPECT_EQ(at_border(error.out(), []() -> Status { throw std::bad_alloc(); }), TRANSEPT_OUT_OF_MEMORY);
  EXPECT_EQ(error.message(), "there is not enough memory");
  EXPECT_EQ(at_border(error.out(), []() -> Status { throw std::runtime_error("a reason"); }), TRANSEPT_INTERNAL);
  EXPECT_EQ(error.message(), "a reason");
  EXPECT_EQ(at_border(error.out(), []() -> Status { throw 7; }), TRANSEPT_INTERNAL);
  EXPECT_EQ(at_border(nullptr, []() -> Status { throw 7; }), TRANSEPT_INTERNAL);
  EXPECT_EQ(at_border(error.out(), [] { return ok_status(); }), TRANSEPT_OK);
  EXPECT_EQ(error.code(), TRANSEPT_OK) << "an error of an earlier call stays";
}

TEST(Border, AnErrorNeedsNoMemory) {
  const Status status = field_error("a_field_of_a_name_that_needs_memory", std::string(300, 'x'));
  CallError error;
  fail_next_allocation(1);
  EXPECT_EQ(report(status, error.out()), TRANSEPT_OUT_OF_MEMORY);
  EXPECT_TRUE(has_failed_allocation());
  EXPECT_EQ(error.code(), TRANSEPT_OUT_OF_MEMORY);
  EXPECT_EQ(error.field(), "");
  EXPECT_EQ(report(status, error.out()), TRANSEPT_INVALID_ARGUMENT);
  EXPECT_EQ(error.field(), "a_field_of_a_name_that_needs_memory");
  EXPECT_EQ(report(status, nullptr), TRANSEPT_INVALID_ARGUMENT);
}

TEST(Border, MessagesAreUtf8) {
  CallError error;
  report(invalid_argument("a \xff b"), error.out());
  EXPECT_EQ(error.message(), "a \xEF\xBF\xBD b");
}

TEST(Border, NoErrorIsOk) {
  EXPECT_EQ(transept_error_code(nullptr), TRANSEPT_OK);
  EXPECT_STREQ(transept_error_message(nullptr), "");
  EXPECT_STREQ(transept_error_field(nullptr), "");
  transept_error_free(nullptr);
}

// A caller that was built with a later header: two members more.
struct LaterRequest {
  transept_request known;
  int64_t more[2];
};

TEST(Border, StructsOfOtherVersions) {
  constexpr size_t kFirst = offsetof(transept_request, encoded);  // as if the rest had come later
  LaterRequest later = {};
  later.known.struct_size = sizeof later;
  later.known.timeout_seconds = 3;
  EXPECT_EQ(read_struct(&later.known, kFirst, "request").value().timeout_seconds, 3);
  later.more[1] = 1;
  const Status unknown = read_struct(&later.known, kFirst, "request").status();
  EXPECT_EQ(code_of(unknown), TRANSEPT_UNIMPLEMENTED);
  EXPECT_EQ(error_param(unknown), "request");

  transept_request earlier = {kFirst};
  earlier.flags = 4;
  earlier.timeout_seconds = 3;  // behind what that caller has
  const transept_request known = read_struct(&earlier, kFirst, "request").value();
  EXPECT_EQ(known.flags, 4u);
  EXPECT_EQ(known.timeout_seconds, 0);

  for (const size_t size : {size_t{0}, kFirst - 1, size_t{4097}, SIZE_MAX}) {
    earlier.struct_size = size;
    const Status status = read_struct(&earlier, kFirst, "request").status();
    EXPECT_EQ(code_of(status), TRANSEPT_INVALID_ARGUMENT) << size;
    EXPECT_EQ(error_param(status), "request.struct_size");
  }
  EXPECT_EQ(error_param(read_struct<transept_request>(nullptr, kFirst, "request").status()), "request");
}

struct LaterOutput {
  transept_output known;
  int64_t more;
};

TEST(Border, StructsAreFilledAsFarAsTheyReach) {
  constexpr size_t kFirst = offsetof(transept_output, cumulative_logprob);
  transept_output value = {};
  value.num_token_ids = 5;
  value.cumulative_logprob = -1;
  LaterOutput later = {{sizeof later}, 77};
  ASSERT_TRUE(write_struct(value, kFirst, &later.known, "output").ok());
  EXPECT_EQ(later.known.struct_size, sizeof later);
  EXPECT_EQ(later.known.cumulative_logprob, -1);
  EXPECT_EQ(later.more, 0) << "what the library does not know is zero";
  transept_output earlier = {kFirst};
  earlier.cumulative_logprob = 42;
  ASSERT_TRUE(write_struct(value, kFirst, &earlier, "output").ok());
  EXPECT_EQ(earlier.num_token_ids, 5u);
  EXPECT_EQ(earlier.cumulative_logprob, 42) << "written behind the caller's struct";
  earlier.struct_size = kFirst - 1;
  EXPECT_EQ(error_param(write_struct(value, kFirst, &earlier, "output")), "output.struct_size");
}

TEST(Border, TextsAndArrays) {
  EXPECT_EQ(read_text({"abc", 2}, "t").value(), "ab");
  EXPECT_EQ(read_text({nullptr, 0}, "t").value(), "");
  EXPECT_EQ(error_param(read_text({nullptr, 1}, "t").status()), "t");
  EXPECT_EQ(error_param(read_text({"", SIZE_MAX}, "t").status()), "t");
  const int32_t ids[] = {1, 2};
  EXPECT_EQ(read_array(ids, 2, "ids").value().size(), 2u);
  EXPECT_EQ(error_param(read_array<int32_t>(nullptr, 2, "ids").status()), "ids");
  const Owned<char> copy(copy_text(std::string_view("a\0b", 3)));
  EXPECT_EQ(std::string(copy.get(), 4), std::string("a\0b\0", 4));
  const Owned<int32_t> none(copy_ids({}));
  EXPECT_NE(none, nullptr);
  EXPECT_EQ(transept_str(nullptr).data, nullptr);
  EXPECT_EQ(transept_str("abc").size, 3u);
}

}  // namespace
}  // namespace transept::testing
