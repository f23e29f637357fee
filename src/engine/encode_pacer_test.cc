// The pacer learns from steps, and gives what they allow.
#include "engine/encode_pacer.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

using Mode = EncodeSliceOptions::Mode;

void count_step(EncodePacer& pacer, double decode_seconds, double encode_seconds, int32_t num_encoder_tokens,
                int32_t num_waiting = 0) {
  SchedulerOutputs scheduled;
  scheduled.num_waiting = num_waiting;
  StepOutput output;
  scheduled.num_decoder_tokens = decode_seconds > 0 ? 1 : 0;
  scheduled.num_encoder_tokens = num_encoder_tokens;
  output.decode_seconds = decode_seconds;
  output.encode_seconds = encode_seconds;
  pacer.count(scheduled, output);
}

void count_slice(EncodePacer& pacer, double seconds, int32_t num_tokens, bool begins, bool ends) {
  SchedulerOutputs scheduled;
  StepOutput output;
  scheduled.long_encode.runs = true;
  scheduled.long_encode.begins = begins;
  scheduled.long_encode.encode.num_rows = num_tokens;
  scheduled.num_encoder_tokens = begins ? num_tokens : 0;
  output.encode_seconds = seconds;
  output.long_encode_ended = ends;
  pacer.count(scheduled, output);
}

TEST(EncodePacerTest, WithoutSlicesThereIsNoLimit) {
  EncodePacer pacer({Mode::kNone, 0});
  count_step(pacer, 0.002, 0.05, 100);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
}

TEST(EncodePacerTest, AShareIsAsLongAsDecodingAndLongerTheMoreWait) {
  EncodePacer pacer({Mode::kAuto, 0});
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);  // nothing is known
  for (int i = 0; i < 100; ++i) count_step(pacer, 0.004, 0, 0);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
  count_step(pacer, 0, 0.1, 1000);
  EXPECT_DOUBLE_EQ(pacer.slice_seconds(), 0.004);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), 40);
  // Not at once: one busy moment is not a load.
  count_step(pacer, 0.004, 0, 0, 2);
  EXPECT_LT(pacer.slice_seconds(), 0.005);
  for (int i = 0; i < 1000; ++i) count_step(pacer, 0.004, 0, 0, 2);
  EXPECT_NEAR(pacer.slice_seconds(), 0.012, 1e-6);
  for (int i = 0; i < 1000; ++i) count_step(pacer, 0.004, 0, 0, 1000);
  EXPECT_DOUBLE_EQ(pacer.slice_seconds(), 0.032);
}

TEST(EncodePacerTest, NoShareIsTooShortToBeWorthIt) {
  EncodePacer pacer({Mode::kAuto, 0});
  count_step(pacer, 0.00001, 0.1, 1000);
  EXPECT_DOUBLE_EQ(pacer.slice_seconds(), 0.001);
}

TEST(EncodePacerTest, AFixedShareIsThat) {
  EncodePacer pacer({Mode::kFixed, 0.005});
  count_step(pacer, 0.1, 0.1, 1000);
  EXPECT_DOUBLE_EQ(pacer.slice_seconds(), 0.005);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), 50);
}

TEST(EncodePacerTest, ALongEncodeIsMeasuredWhenItEnds) {
  EncodePacer pacer({Mode::kFixed, 0.005});
  count_slice(pacer, 0.005, 100, true, false);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
  count_slice(pacer, 0.005, 0, false, false);
  // Dropped; another one begins.
  count_slice(pacer, 0.006, 50, true, false);
  count_slice(pacer, 0.004, 0, false, true);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), 25);  // 10 ms for 50
}

TEST(EncodePacerTest, AShareIsTasksThatTakeAsLong) {
  EncodePacer pacer({Mode::kFixed, 0.005});
  EXPECT_EQ(pacer.slice_tasks(RowSource::kEncode), 1) << "nothing is known";
  SchedulerOutputs scheduled;
  scheduled.num_encoder_tokens = 100;
  StepOutput output;
  output.encode_seconds = 0.1;
  output.num_encode_tasks = 1000;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.slice_tasks(RowSource::kEncode), 50);
  output.encode_seconds = 0.3;  // three times as long a task: a quarter of that is believed at once
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.slice_tasks(RowSource::kEncode), 33);
  output.encode_seconds = 1e6;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.slice_tasks(RowSource::kEncode), 1);
}

// Rows that are taken cost the projection alone: what is known of them says nothing of encodes, and the other way.
TEST(EncodePacerTest, TakingRowsIsMeasuredApart) {
  EncodePacer pacer({Mode::kFixed, 0.005});
  SchedulerOutputs scheduled;
  scheduled.num_injected_tokens = 100;
  StepOutput output;
  output.encode_seconds = 0.02;
  output.num_encode_tasks = 40;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kResident), 25);
  EXPECT_EQ(pacer.slice_tasks(RowSource::kResident), 10);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
  EXPECT_EQ(pacer.slice_tasks(RowSource::kEncode), 1);
  scheduled.num_encoder_tokens = 100;  // both: neither is known
  output.encode_seconds = 9;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kResident), 25);

  // A long one, in two slices.
  scheduled.clear();
  scheduled.long_encode.runs = scheduled.long_encode.begins = true;
  scheduled.long_encode.encode.source = RowSource::kResident;
  scheduled.long_encode.encode.num_rows = scheduled.num_injected_tokens = 50;
  output.encode_seconds = 0.004;
  output.num_encode_tasks = 8;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kResident), 25) << "not before its end";
  scheduled.long_encode.begins = false;
  scheduled.num_injected_tokens = 0;
  output.encode_seconds = 0.006;
  output.num_encode_tasks = 12;
  output.long_encode_ended = true;
  pacer.count(scheduled, output);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kResident), 25) << "10 ms for 50";
  EXPECT_EQ(pacer.slice_tasks(RowSource::kResident), 10);
  EXPECT_EQ(pacer.max_tokens_beside(RowSource::kEncode), std::nullopt);
}

TEST(EncodePacerTest, ValuesOfTheFlag) {
  EXPECT_EQ(parse_encode_slice("none")->mode, Mode::kNone);
  EXPECT_EQ(parse_encode_slice("auto")->mode, Mode::kAuto);
  EXPECT_EQ(parse_encode_slice("2.5")->mode, Mode::kFixed);
  EXPECT_DOUBLE_EQ(parse_encode_slice("2.5")->seconds, 0.0025);
}

}  // namespace
}  // namespace transept
