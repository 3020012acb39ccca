#include "lib/checkpoint/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lib/core/error.h"

namespace tetrion {
namespace {

const TrainerState kState = {.tensors = {{"a", {2}, {1.0F, 2.0F}}, {"b", {1, 2}, {3.0F, 4.0F}}},
                             .counters = {}};

TEST(ReadTensorTest, CopiesTheTensorOfThatName) {
  std::vector<float> values(2);
  ReadTensor(kState, "b", {1, 2}, values);
  EXPECT_EQ(values, (std::vector<float>{3.0F, 4.0F}));
}

void ExpectRefused(const TrainerState& state, const std::string& name,
                   const std::vector<std::int64_t>& shape, const std::string& word) {
  std::vector<float> values = {7.0F, 8.0F};
  try {
    ReadTensor(state, name, shape, values);
    FAIL() << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(word));
  }
  EXPECT_EQ(values, (std::vector<float>{7.0F, 8.0F}));
}

TEST(ReadTensorTest, MissingReshapedOrSpoilt_IsRefusedByNameAndCopiesNothing) {
  ExpectRefused(kState, "c", {2}, "no tensor");
  ExpectRefused(kState, "b", {2}, "[1, 2]");
  ExpectRefused(kState, "a", {2, 1}, "needs [2, 1]");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TrainerState spoilt = kState;
    spoilt.tensors[0].data[1] = bad;
    ExpectRefused(spoilt, "a", {2}, "NaN");
  }
}

}  // namespace
}  // namespace tetrion
