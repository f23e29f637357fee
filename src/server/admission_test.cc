// Places are counted with what waits in the engine, given back by whoever lets go; budgets never lock anybody out for
// ever.
#include "server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  int32_t num_queued_ = 0;
  Admission admission_{
      {.max_requests = 4, .max_tokens = 100, .max_audio_seconds = 60}, [this] { return num_queued_; }, clock_};
};

TEST_F(AdmissionTest, TakesPlacesUntilTheQueueIsFull) {
  auto three = admission_.take_places(3);
  ASSERT_TRUE(three.ok());
  auto fourth = admission_.take_places(1);
  ASSERT_TRUE(fourth.ok());
  EXPECT_EQ(admission_.num_waiting(), 4);
  EXPECT_THAT(error_message(admission_.check_places()), HasSubstr("4 requests wait, and at most 4 may"));
  const Status full = admission_.take_places(1).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(error_message(full), HasSubstr("4 requests wait, and at most 4 may"));
  fourth->release();
  fourth->release();  // a second time changes nothing
  EXPECT_TRUE(admission_.check_places().ok());
  EXPECT_TRUE(admission_.take_places(1).ok());
  EXPECT_EQ(admission_.num_waiting(), 3);
}

TEST_F(AdmissionTest, CountsWhatWaitsInTheEngine) {
  num_queued_ = 3;
  auto place = admission_.take_places(1);
  EXPECT_TRUE(place.ok());
  EXPECT_FALSE(admission_.take_places(1).ok());
  num_queued_ = 0;
  EXPECT_TRUE(admission_.take_places(3).ok());
}

TEST_F(AdmissionTest, PlacesMoveAndAreGivenBackOnce) {
  auto taken = admission_.take_places(2);
  Admission::Places moved = std::move(taken).value();
  EXPECT_EQ(admission_.num_waiting(), 2);
  moved = Admission::Places();
  EXPECT_EQ(admission_.num_waiting(), 0);
}

TEST_F(AdmissionTest, MoreThanTheQueueHoldsCanNeverBeHad) {
  EXPECT_EQ(admission_.take_places(5).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(AdmissionTest, ABudgetIsHeldAndWhoIsAloneIsTaken) {
  auto large = admission_.take_budget(1000, 0);  // more than the budget, but alone
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(admission_.take_budget(1, 0).status().code(), absl::StatusCode::kResourceExhausted);
  large->release();
  auto small = admission_.take_budget(60, 50);
  ASSERT_TRUE(small.ok());
  EXPECT_TRUE(admission_.take_budget(40, 10).ok());
  EXPECT_THAT(error_message(admission_.take_budget(41, 0).status()), HasSubstr("more than 100"));
  EXPECT_THAT(error_message(admission_.take_budget(0, 10.5).status()), HasSubstr("more than 60 s"));
}

TEST_F(AdmissionTest, AudioIsChargedWhatWasFound) {
  auto charge = admission_.take_budget(0, 60);
  ASSERT_TRUE(charge.ok());
  EXPECT_FALSE(admission_.take_budget(0, 1).ok());
  admission_.charge_audio(*charge, 5);
  EXPECT_TRUE(admission_.take_budget(0, 55).ok());
  EXPECT_FALSE(admission_.take_budget(0, 55.5).ok());
  admission_.charge_audio(*charge, 100);  // a header that promised less
  EXPECT_FALSE(admission_.take_budget(0, 0.5).ok());
  charge->release();
  EXPECT_TRUE(admission_.take_budget(0, 60).ok());
  Admission::Charge of_nothing;
  admission_.charge_audio(of_nothing, 60);
  EXPECT_TRUE(admission_.take_budget(0, 60).ok());
}

TEST_F(AdmissionTest, BodiesAreChargedAsTheyCome) {
  Admission::Charge first, second;
  ASSERT_TRUE(admission_.charge_body(first, int64_t{1} << 31).ok());  // alone
  EXPECT_EQ(admission_.check_body(1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(admission_.charge_body(second, 1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.charge_body(first, (int64_t{1} << 31) + 5).ok());  // goes on alone
  EXPECT_TRUE(admission_.charge_body(second, 7, true).ok());
  Admission::Charge moved = std::move(first);
  moved.release();
  EXPECT_TRUE(admission_.check_body((int64_t{1} << 30) - 7).ok());
  EXPECT_FALSE(admission_.check_body((int64_t{1} << 30) - 6).ok());
  EXPECT_TRUE(admission_.charge_body(second, 1 << 30).ok());  // its own 7 do not count beside it
  second.release();
  EXPECT_TRUE(admission_.check_body(int64_t{1} << 40).ok());
}

TEST_F(AdmissionTest, ABodyCountsAgainstTheBudgetItself) {
  Admission::Charge first, second;
  ASSERT_TRUE(admission_.charge_body(first, (int64_t{1} << 30) - 10).ok());
  EXPECT_THAT(error_message(admission_.check_body(11)), HasSubstr("with the 11 of this request"));
  EXPECT_THAT(error_message(admission_.charge_body(second, 11)), HasSubstr("with the 11 of this request"));
  EXPECT_TRUE(admission_.charge_body(second, 10).ok());
  EXPECT_EQ(admission_.load().body_bytes, int64_t{1} << 30);
  EXPECT_EQ(admission_.load().max_body_bytes, int64_t{1} << 30);
}

TEST_F(AdmissionTest, AChargeThatIsReplacedIsGivenBack) {
  auto first = admission_.take_budget(60, 40);
  ASSERT_TRUE(first.ok());
  auto second = admission_.take_budget(40, 20);
  ASSERT_TRUE(second.ok());
  Admission::Charge charge = std::move(first).value();
  charge = std::move(second).value();
  EXPECT_TRUE(admission_.take_budget(60, 40).ok());
  EXPECT_FALSE(admission_.take_budget(61, 0).ok());
}

TEST_F(AdmissionTest, RetryAfterFollowsTheRateOfAnswers) {
  EXPECT_EQ(admission_.retry_after_seconds(), 30);  // nothing is known
  num_queued_ = 4;
  for (int i = 0; i < 5; ++i) {
    admission_.note_answer();
    clock_.advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(admission_.retry_after_seconds(), 4);        // one a second
  for (int i = 0; i < 5; ++i) admission_.note_answer();  // ten in five seconds
  num_queued_ = 16;
  EXPECT_EQ(admission_.retry_after_seconds(), 8);
  num_queued_ = 1000;
  EXPECT_EQ(admission_.retry_after_seconds(), 30);
  num_queued_ = 0;
  EXPECT_EQ(admission_.retry_after_seconds(), 1);
  clock_.advance(std::chrono::seconds(60));
  EXPECT_EQ(admission_.retry_after_seconds(), 30);  // that was long ago
}

}  // namespace
}  // namespace transept
