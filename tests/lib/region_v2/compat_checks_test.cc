#include "lib/region_v2/compat_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lib/region_v2/compat_world.h"

// What may be laid out, and where; compat_region_test.cc goes through the damages of finished
// regions.
namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(CompatChecksTest, EmptyRegionMayBeLaidOutButNotAttachedTo) {
  CompatBytes memory;
  EXPECT_THAT(CompatProblemsBeforeLayout(memory.span()), IsEmpty());
  EXPECT_THAT(CompatProblems(memory.span()), SizeIs(4)) << "stream rings may be absent";
}

TEST(CompatChecksTest, EveryForeignMagicIsNamedBeforeLayout) {
  CompatBytes memory;
  const std::size_t parts[] = {kCompatCommandRing, kCompatResponseRing, kCompatDoorbell,
                               kCompatHeapControl, kCompatObsRing,      kCompatActionRing};
  for (const std::size_t part : parts) memory.at<std::uint32_t>(part) = 0xBAD;
  EXPECT_THAT(CompatProblemsBeforeLayout(memory.span()), SizeIs(std::size(parts)));
  for (const std::size_t part : parts) memory.at<std::uint32_t>(part) = 0;
  memory.at<std::uint32_t>(kCompatHeapControl) = kCompatHeapMagic;
  EXPECT_THAT(CompatProblemsBeforeLayout(memory.span()),
              ElementsAre(HasSubstr("heap control at 0x10100: version is 0x0")));
}

TEST(CompatChecksTest, OneRightMagicTellsWhereStreamRingsHaveBeenBegun) {
  for (const std::size_t bytes : {kCompatRegionBytes, kCompatLargeRegionBytes}) {
    CompatBytes memory(bytes);
    EXPECT_FALSE(BegunCompatStream(memory.span()));
    memory.at<std::uint32_t>(kCompatActionRing) = kCompatStreamMagic;
    ASSERT_TRUE(BegunCompatStream(memory.span()));
    EXPECT_EQ(BegunCompatStream(memory.span())->obs, kCompatObsRing);
    EXPECT_FALSE(FindCompatStream(memory.span()));
  }
}

}  // namespace
}  // namespace tetrion
