#include "lib/run/setting_fields.h"

#include <gmock/gmock.h>

#include "lib/core/error.h"
#include "tests/support/made_up_algorithm.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MadeUpRun;

class SettingFieldsTest : public ::testing::Test {
 protected:
  std::string Refusal(const std::string& key, const std::string& algorithm) {
    try {
      static_cast<void>(FindField(fields_, key, algorithm));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "";
  }

  MadeUpRun run_;
  const std::vector<SettingField> fields_ = run_.Fields();
};

TEST_F(SettingFieldsTest, FieldsReadAndSetTheObjectTheyWereCollectedFrom) {
  EXPECT_TRUE(FindField(fields_, "lanes", "first").set("7"));
  EXPECT_EQ(run_.lanes, 7);
  EXPECT_FALSE(FindField(fields_, "lanes", "first").set("9"));
  EXPECT_EQ(run_.lanes, 7);
  run_.lanes = 3;
  EXPECT_EQ(FindField(fields_, "lanes", "first").value(), "3");
}

TEST_F(SettingFieldsTest, ANameThatTwoAlgorithmsHaveIsTheRunsOwn) {
  EXPECT_TRUE(FindField(fields_, "rate", "second").set("8"));
  EXPECT_EQ(run_.second.rate, 8);
  EXPECT_FALSE(FindField(fields_, "rate", "first").set("8"));
  EXPECT_TRUE(FindField(fields_, "second.rate", "second").set("9"));
  EXPECT_EQ(run_.second.rate, 9);
  EXPECT_EQ(run_.first.rate, 0.5);
}

TEST_F(SettingFieldsTest, ASettingOfAnotherAlgorithmIsRefusedWithBoth) {
  EXPECT_THAT(Refusal("horizon", "first"),
              AllOf(HasSubstr("horizon is one of algorithm second"), HasSubstr("is first")));
  EXPECT_THAT(Refusal("second.rate", "first"), HasSubstr("second.rate is one of algorithm second"));
  EXPECT_THAT(Refusal("first.horizon", "first"), HasSubstr("unknown run setting 'first.horizon'"));
  EXPECT_THAT(Refusal("second.lanes", "second"), HasSubstr("unknown run setting 'second.lanes'"));
  EXPECT_EQ(Refusal("lanes", "first"), "");
}

TEST(SettingKeyTest, HasOneOrTwoParts) {
  EXPECT_EQ(AlgorithmOf("vtrace.discount"), "vtrace");
  EXPECT_EQ(NameOf("vtrace.discount"), "discount");
  EXPECT_EQ(AlgorithmOf("lanes"), "");
  EXPECT_EQ(NameOf("lanes"), "lanes");
}

}  // namespace
}  // namespace tetrion
