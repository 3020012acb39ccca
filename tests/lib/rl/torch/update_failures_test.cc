#include "lib/rl/torch/update_failures.h"

#include <gmock/gmock.h>

#include <c10/core/CPUAllocator.h>

#include <cstddef>
#include <functional>
#include <string>

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// More than an address has bits for.
void AllocateTooMuch() {
  constexpr std::size_t kBytes = std::size_t{1} << 60;
  (void)c10::GetCPUAllocator()->allocate(kBytes);
}

Error ErrorOfHost(bool has_worked) {
  try {
    WithHostErrors(has_worked, AllocateTooMuch);
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::kOk, "no error"};
}

Error ErrorOf(const std::function<void()>& work, bool has_worked = false) {
  try {
    WithDeviceErrors(has_worked, work);
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::kOk, "no error"};
}

TEST(UpdateFailuresTest, AnUpdateOnTheCpuWithoutMemoryNamesTheOptions) {
  const Error late = ErrorOfHost(/*has_worked=*/true);
  EXPECT_EQ(late.code(), ExitCode::kTryAgain);
  EXPECT_THAT(late.what(), AllOf(HasSubstr("--init-from RUN"), Not(HasSubstr("--size"))));
  const Error error = ErrorOfHost(/*has_worked=*/false);
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("--batch-windows"), HasSubstr("ulimit -v"),
                                  HasSubstr("--size"), Not(HasSubstr("--init-from"))));
}

TEST(UpdateFailuresTest, OtherErrorsOfTheTensorLibraryOnTheCpuPass) {
  const auto wrong = [] { throw c10::Error({__func__, __FILE__, __LINE__}, "a wrong shape"); };
  EXPECT_THROW(WithHostErrors(false, wrong), c10::Error);
}

TEST(UpdateFailuresTest, AnUpdateOnADeviceWithoutMemoryNamesTheOptionsAndIsNotTriedAgain) {
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

TEST(UpdateFailuresTest, ADeviceThatFailsIsTriedAgain) {
  const Error error = ErrorOf(
      [] { throw c10::Error({__func__, __FILE__, __LINE__}, "unspecified launch failure"); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("unspecified launch failure"));
}

TEST(UpdateFailuresTest, OurOwnErrorsPass) {
  const Error error = ErrorOf([] { throw Error(ExitCode::kInternal, "ours"); });
  EXPECT_EQ(error.code(), ExitCode::kInternal);
  EXPECT_STREQ(error.what(), "ours");
  EXPECT_EQ(ErrorOf([] {}).code(), ExitCode::kOk);
}

}  // namespace
}  // namespace tetrion
