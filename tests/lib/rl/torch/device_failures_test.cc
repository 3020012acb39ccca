#include "lib/rl/torch/device_failures.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Error ErrorOf(const std::function<void()>& work, bool has_worked = false) {
  try {
    WithOurErrors(has_worked, work);
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::kOk, "no error"};
}

TEST(DeviceFailuresTest, AnUpdateWithoutMemoryNamesTheOptionsAndIsNotTriedAgain) {
  const auto lack = [] {
    throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "tried to allocate 2.00 GiB");
  };
  EXPECT_EQ(ErrorOf(lack, /*has_worked=*/true).code(), ExitCode::kTryAgain)
      << "another process has the memory now";
  const Error error = ErrorOf(lack);
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("beside the replay"), HasSubstr("tried to allocate 2.00 GiB"),
                    HasSubstr("--replay-rows"), HasSubstr("--trainer-device cpu")));
}

TEST(DeviceFailuresTest, ADeviceThatFailsIsTriedAgain) {
  const Error error = ErrorOf(
      [] { throw c10::Error({__func__, __FILE__, __LINE__}, "unspecified launch failure"); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("unspecified launch failure"));
}

TEST(DeviceFailuresTest, OurOwnErrorsPass) {
  const Error error = ErrorOf([] { throw Error(ExitCode::kInternal, "ours"); });
  EXPECT_EQ(error.code(), ExitCode::kInternal);
  EXPECT_STREQ(error.what(), "ours");
  EXPECT_EQ(ErrorOf([] {}).code(), ExitCode::kOk);
}

}  // namespace
}  // namespace tetrion
