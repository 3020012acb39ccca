#include "lib/region_v2/compat_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/lib/region_v2/compat_world.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CompatLayoutTest, PartsFollowEachOtherWithoutOverlap) {
  EXPECT_EQ(kCompatCommandRing + 32 + 1024 * sizeof(CompatCommand), 0x4020U);
  EXPECT_LE(0x4020U, kCompatResponseRing);
  EXPECT_LE(kCompatResponseRing + 32 + 1024 * sizeof(CompatResponse), kCompatDoorbell);
  EXPECT_EQ(kCompatDoorbell + sizeof(CompatDoorbellBlock), kCompatHeapControl);
  EXPECT_EQ(kCompatHeapControl + sizeof(CompatHeapControl), kCompatMeshTable);
  EXPECT_EQ(kCompatMeshTable + 0x800, kCompatHeapData);
  EXPECT_LE(kCompatHeapData + kCompatHeapBlocks * kCompatBlockBytes, kCompatObsRing);
  EXPECT_LE(kCompatObsRing + 32 + 64 * sizeof(CompatObs), kCompatActionRing);
  EXPECT_LE(kCompatActionRing + 32 + 64 * sizeof(CompatAction), kCompatRegionBytes);
  EXPECT_LE(kCompatLargeActionRing + 0x1000, kCompatLargeRegionBytes);
}

TEST(CompatLayoutTest, FreshRegionHoldsTheHeadersAndNothingElse) {
  CompatBytes memory;
  EXPECT_FALSE(LayOutOrAdoptCompat(memory.span(), true));
  EXPECT_THAT(CompatProblems(memory.span()), IsEmpty());
  EXPECT_EQ(memory.ring(kCompatCommandRing).size, 1024U);
  EXPECT_EQ(memory.ring(kCompatObsRing).size, 64U);
  EXPECT_EQ(memory.ring(kCompatActionRing).epoch, 1U);
  EXPECT_EQ(memory.heap().total_blocks, 14080U);
  EXPECT_EQ(memory.doorbell().cmd_flags, kCompatDoorbellEnabled);
  std::size_t words = 0;
  for (std::size_t at = 0; at < kCompatRegionBytes; at += 4)
    words += memory.at<std::uint32_t>(at) != 0;
  EXPECT_EQ(words, 4U * 3 + 4 + 5) << "rings: magic, size, epoch; doorbell; heap";
}

TEST(CompatLayoutTest, RegionWithoutStreamRingsIsCompleteAndMayGetThemLater) {
  CompatBytes memory;
  LayOutOrAdoptCompat(memory.span(), false);
  EXPECT_THAT(CompatProblems(memory.span()), IsEmpty());
  EXPECT_FALSE(FindCompatStream(memory.span()));
  EXPECT_TRUE(LayOutOrAdoptCompat(memory.span(), true));
  ASSERT_TRUE(FindCompatStream(memory.span()));
  EXPECT_EQ(FindCompatStream(memory.span())->action, kCompatActionRing);
}

TEST(CompatLayoutTest, KernelKilledBetweenTwoHeadersIsContinued) {
  for (const std::size_t missing : {kCompatCommandRing, kCompatResponseRing, kCompatObsRing,
                                    kCompatActionRing, kCompatDoorbell, kCompatHeapControl}) {
    CompatBytes memory;
    LayOutOrAdoptCompat(memory.span(), true);
    memory.at<std::uint32_t>(missing) = 0;  // the magic comes last
    EXPECT_TRUE(LayOutOrAdoptCompat(memory.span(), true));
    EXPECT_THAT(CompatProblems(memory.span()), IsEmpty()) << missing;
  }
}

TEST(CompatLayoutTest, AdoptingBumpsEpochsAndSkipsOnlyWhatTheKernelConsumes) {
  CompatBytes memory;
  LayOutOrAdoptCompat(memory.span(), true);
  for (const std::size_t ring :
       {kCompatCommandRing, kCompatResponseRing, kCompatObsRing, kCompatActionRing}) {
    memory.ring(ring).head = 9;
    memory.ring(ring).tail = 4;
  }
  memory.heap().next_blob_id = 5;
  memory.doorbell().cmd_writes = 6;
  EXPECT_TRUE(LayOutOrAdoptCompat(memory.span(), true));
  EXPECT_EQ(memory.ring(kCompatCommandRing).tail, 4U);
  EXPECT_EQ(memory.ring(kCompatActionRing).tail, 4U);
  EXPECT_EQ(memory.ring(kCompatResponseRing).tail, 9U);
  EXPECT_EQ(memory.ring(kCompatObsRing).tail, 9U);
  for (const std::size_t ring :
       {kCompatCommandRing, kCompatResponseRing, kCompatObsRing, kCompatActionRing}) {
    EXPECT_EQ(memory.ring(ring).head, 9U);
    EXPECT_EQ(memory.ring(ring).epoch, 2U);
  }
  EXPECT_EQ(memory.heap().next_blob_id, 5U);
  EXPECT_EQ(memory.doorbell().cmd_writes, 6U);
}

struct Damage {
  std::size_t offset;
  std::uint32_t value;
  const char* says;
};

class CompatDamageTest : public ::testing::TestWithParam<Damage> {};

std::vector<std::byte> CopyOf(const CompatBytes& memory) {
  return {memory.span().begin(), memory.span().end()};
}

TEST_P(CompatDamageTest, IsNamedAndRefusedByBothEndsBeforeTheyWrite) {
  CompatWorld world;
  LayOutOrAdoptCompat(world.memory.span(), true);
  // Something for the kernel to skip, had it begun.
  world.memory.ring(kCompatResponseRing).head = world.memory.ring(kCompatObsRing).head = 5;
  world.memory.at<std::uint32_t>(GetParam().offset) = GetParam().value;
  const std::vector<std::byte> before = CopyOf(world.memory);
  EXPECT_THAT(CompatProblems(world.memory.span()), ElementsAre(HasSubstr(GetParam().says)));
  const Error kernel = ErrorOf([&] { CompatKernel(world.memory.span(), world.config); });
  EXPECT_EQ(kernel.code(), ExitCode::kConfig);
  EXPECT_THAT(kernel.what(), HasSubstr(GetParam().says));
  CountingEnv env;
  const Error host = ErrorOf([&] { world.StartHost(env); });
  EXPECT_EQ(host.code(), ExitCode::kConfig);
  EXPECT_THAT(host.what(), HasSubstr(GetParam().says));
  EXPECT_TRUE(CopyOf(world.memory) == before);
}

INSTANTIATE_TEST_SUITE_P(
    Headers, CompatDamageTest,
    ::testing::Values(
        Damage{0x00000, 0xDEAD, "command ring at 0x0: magic is 0xdead, need 0x51deca9e"},
        Damage{0x08000, 0x51DECA9E, "response ring at 0x8000: magic"},
        Damage{0x10000, 1, "doorbell block at 0x10000: magic is 0x1"},
        Damage{0x10004, 2, "doorbell block at 0x10000: version is 0x2, need 0x1"},
        Damage{0x10100, 7, "heap control at 0x10100: magic"},
        Damage{0x10104, 9, "heap control at 0x10100: version is 0x9"},
        Damage{0x10108, 14079, "total_blocks is 14079, need 14080 to 15168"},
        Damage{0x10108, 15169, "total_blocks is 15169, need 14080 to 15168"},
        Damage{0x0000C, 1000, "command ring at 0x0: size 1000 is not a power of two, need 1024"},
        Damage{0x0800C, 512, "response ring at 0x8000: size is 0x200, need 0x400"},
        Damage{0xFE000, 0xBAD, "OBS ring at 0xfe000: magic is 0xbad, need 0x5354524d"},
        Damage{0xFF000, 1, "ACTION ring at 0xff000: magic is 0x1, need 0x5354524d"},
        Damage{0xFE00C, 0, "OBS ring at 0xfe000: size 0"},
        Damage{0xFF004, 64, "ACTION ring at 0xff000: head 64 is beyond the ring"},
        Damage{0x00008, 0xFFFFFFFF, "command ring at 0x0: tail 4294967295"}));

// As other programs lay the heap out: with every block in front of the rings.
TEST(CompatLayoutTest, HeapOfMoreBlocksIsAdoptedAndServed) {
  for (const std::uint32_t blocks : {14080U, 14081U, 15168U}) {
    CompatWorld world;
    LayOutOrAdoptCompat(world.memory.span(), true);
    world.memory.heap().total_blocks = world.memory.heap().free_blocks = blocks;
    EXPECT_THAT(CompatProblems(world.memory.span()), IsEmpty());
    CountingEnv env;
    world.Start(env);
    EXPECT_TRUE(world.kernel->adopted());
    world.host->SetWeights({1, 2, 3, 4});
    CompatObs obs;
    ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
    EXPECT_TRUE(world.kernel->streaming());
    EXPECT_TRUE(world.kernel->Weights(obs.model_id));
    EXPECT_EQ(world.memory.heap().total_blocks, blocks) << "not ours to change";
    EXPECT_EQ(world.memory.heap().free_blocks, kCompatHeapBlocks - 1);
    for (std::size_t at = kCompatMeshTable; at < kCompatHeapData; at += 4)
      ASSERT_EQ(world.memory.at<std::uint32_t>(at), 0U) << "the mesh table was touched";
  }
}

TEST(CompatLayoutTest, HeapInTheStreamRingsPlaceKeepsIt) {
  for (const std::size_t bytes : {kCompatRegionBytes, kCompatLargeRegionBytes}) {
    CompatWorld world(bytes);
    LayOutOrAdoptCompat(world.memory.span(), false);
    world.memory.heap().total_blocks = kCompatMostHeapBlocksWithoutRings;
    EXPECT_THAT(CompatProblems(world.memory.span()), IsEmpty());
    CountingEnv env;
    world.Start(env);
    CompatObs obs;
    ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
    EXPECT_EQ(world.kernel->streaming(), bytes == kCompatLargeRegionBytes);
    EXPECT_EQ(world.memory.ring(kCompatObsRing).magic, 0U);
    ++world.memory.heap().total_blocks;
    EXPECT_THAT(CompatProblems(world.memory.span()), ElementsAre(HasSubstr("total_blocks")));
  }
}

TEST(CompatDamageTest, ForeignFileIsRefusedUntouched) {
  CompatWorld world;
  std::memcpy(world.memory.span().data(),
              "\x7f"
              "ELF",
              4);
  const std::vector<std::byte> before = CopyOf(world.memory);
  const Error kernel = ErrorOf([&] { world.StartKernel(); });
  EXPECT_EQ(kernel.code(), ExitCode::kConfig);
  EXPECT_THAT(kernel.what(), HasSubstr("command ring at 0x0: magic is 0x464c457f"));
  CountingEnv env;
  EXPECT_EQ(ErrorOf([&] { world.StartHost(env); }).code(), ExitCode::kConfig);
  EXPECT_TRUE(CopyOf(world.memory) == before);
}

TEST(CompatDamageTest, OneStreamRingOfTheTwoIsAProblemUntilAKernelMakesTheOther) {
  for (const auto& [missing, says] :
       {std::pair(kCompatObsRing, "OBS ring at 0xfe000: magic is 0x0, but ACTION ring"),
        std::pair(kCompatActionRing, "ACTION ring at 0xff000: magic is 0x0, but OBS ring")}) {
    for (const bool stream : {true, false}) {
      CompatWorld world;
      CountingEnv env;
      LayOutOrAdoptCompat(world.memory.span(), true);
      world.memory.at<std::uint32_t>(missing) = 0;
      EXPECT_THAT(CompatProblems(world.memory.span()), ElementsAre(HasSubstr(says)));
      EXPECT_THAT(ErrorOf([&] { world.StartHost(env); }).what(), HasSubstr(says));
      world.config.stream = stream;
      world.Start(env);
      EXPECT_THAT(CompatProblems(world.memory.span()), IsEmpty());
    }
  }
}

TEST(CompatDamageTest, LargeRegionNamesASpoiltRingInEitherPlace) {
  for (const std::size_t ring :
       {kCompatLargeObsRing, kCompatLargeActionRing, kCompatObsRing, kCompatActionRing}) {
    CompatBytes memory(kCompatLargeRegionBytes);
    LayOutOrAdoptCompat(memory.span(), false);
    memory.at<std::uint32_t>(ring) = 0xBAD;
    EXPECT_THAT(CompatProblems(memory.span()), ElementsAre(HasSubstr("magic is 0xbad")));
    EXPECT_THROW(LayOutOrAdoptCompat(memory.span(), true), Error);
  }
  // With rings in the large place, the small one is the heap's.
  CompatBytes memory(kCompatLargeRegionBytes);
  LayOutOrAdoptCompat(memory.span(), true);
  memory.at<std::uint32_t>(kCompatObsRing) = 0xBAD;
  EXPECT_THAT(CompatProblems(memory.span()), IsEmpty());
}

TEST(CompatDamageTest, TooSmallMemoryIsRefusedWithBothSizes) {
  CompatBytes memory(0x1000);
  CountingEnv env;
  const CompatEndConfig config;
  EXPECT_THAT(ErrorOf([&] { CompatKernel(memory.span(), config); }).what(),
              HasSubstr("too small: 4096 bytes, need 1048576"));
  EXPECT_THAT(ErrorOf([&] { CompatHost(memory.span(), env, config, 0); }).what(),
              HasSubstr("too small"));
}

TEST(CompatDamageTest, HostWaitsForTheMagicsAndGivesUpWithAdvice) {
  CompatWorld world;
  CountingEnv env;
  const std::int64_t before_ns = world.clock.NowNs();
  const Error error =
      ErrorOf([&] { world.host.emplace(world.memory.span(), env, world.config, kNanosPerSecond); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("no kernel has laid out the region within 1000 ms"));
  EXPECT_EQ(world.clock.NowNs() - before_ns, kNanosPerSecond);
}

class CompatFileTest : public ::testing::Test {
 protected:
  std::string Path() const { return scratch_.path() + "/region"; }
  ScratchDir scratch_;
};

TEST_F(CompatFileTest, KernelCreatesTheFileInEitherSizeAndKeepsAnExistingOne) {
  EXPECT_EQ(
      CompatRegion::Open(Path(), CompatRole::kKernel, kCompatLargeRegionBytes).memory().size(),
      kCompatLargeRegionBytes);
  EXPECT_EQ(CompatRegion::Open(Path(), CompatRole::kKernel).memory().size(),
            kCompatLargeRegionBytes);
  EXPECT_EQ(ErrorOf([&] { CompatRegion::Open(Path(), CompatRole::kKernel, 12345); }).code(),
            ExitCode::kUsage);
}

TEST_F(CompatFileTest, EachRoleIsHeldOnce) {
  const CompatRegion kernel = CompatRegion::Open(Path(), CompatRole::kKernel);
  {
    const CompatRegion host = CompatRegion::Open(Path(), CompatRole::kHost);
    EXPECT_NE(kernel.memory().data(), host.memory().data());
    for (const CompatRole role : {CompatRole::kKernel, CompatRole::kHost}) {
      const Error error = ErrorOf([&] { CompatRegion::Open(Path(), role); });
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      EXPECT_THAT(error.what(), HasSubstr("region owned by someone else"));
      EXPECT_THAT(error.what(), HasSubstr("both ends claiming the same role"));
    }
  }
  EXPECT_EQ(CompatRegion::Open(Path(), CompatRole::kHost).path(), Path());
}

TEST_F(CompatFileTest, RoleOfAKilledProcessIsFree) {
  PausedChild child([&] {
    const CompatRegion kernel = CompatRegion::Open(Path(), CompatRole::kKernel);
    raise(SIGSTOP);
  });
  EXPECT_EQ(ErrorOf([&] { CompatRegion::Open(Path(), CompatRole::kKernel); }).code(),
            ExitCode::kTryAgain);
  child.Kill();
  EXPECT_EQ(CompatRegion::Open(Path(), CompatRole::kKernel).memory().size(), kCompatRegionBytes);
}

TEST_F(CompatFileTest, HostWaitsForTheFileAndSaysWhatIsMissing) {
  EXPECT_THAT(ErrorOf([&] { CompatRegion::Open(Path(), CompatRole::kHost); }).what(),
              HasSubstr("start the other end first"));
  const pid_t host = fork();
  if (host == 0) {
    const CompatRegion region =
        CompatRegion::Open(Path(), CompatRole::kHost, kCompatRegionBytes, 60 * kNanosPerSecond);
    _exit(region.memory().size() == kCompatRegionBytes ? 0 : 1);
  }
  // In two steps, as a kernel that is just creating it.
  std::ofstream(Path()).close();
  std::filesystem::resize_file(Path(), kCompatRegionBytes / 2);
  std::filesystem::resize_file(Path(), kCompatRegionBytes);
  int status = 0;
  ASSERT_EQ(waitpid(host, &status, 0), host);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tetrion
