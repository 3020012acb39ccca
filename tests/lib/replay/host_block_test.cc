#include "lib/replay/host_block.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>

#include "lib/core/error.h"

namespace tetrion {
namespace {

TEST(HostBlockTest, MemoryIsZeroAndAligned) {
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{4} << 20}) {
    const HostBlock block(bytes, "a test");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 256, 0U);
    EXPECT_TRUE(std::all_of(block.data(), block.data() + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(HostBlockTest, MemoryThatIsNotThereIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process where malloc finds no memory";
#endif
  try {
    const HostBlock block(std::size_t{1} << 60, "latents of the replay");
    FAIL() << "more memory than any machine has";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no memory for latents of the replay of 11529"));
  }
}

}  // namespace
}  // namespace tetrion
