#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "tests/lib/region_v2/compat_world.h"

// Regions full of lies: attaching refuses, or every call ends in a result; nothing is touched
// outside the region, which is why these tests run under AddressSanitizer too.
namespace tetrion {
namespace {

constexpr std::size_t kHeaders[] = {kCompatCommandRing, kCompatResponseRing, kCompatDoorbell,
                                    kCompatHeapControl, kCompatObsRing,      kCompatActionRing};

// Mostly values near the limits: wild ones are refused too early to be dangerous.
std::uint32_t LieOf(const PhiloxBlock& draw) {
  constexpr std::uint32_t kBorders[] = {0,    1,    62,    63,    64,         65,        1022,
                                        1023, 1024, 14079, 14080, 0x7FFFFFFF, 0xFFFFFFFF};
  if (draw.word[2] % 4 == 0) return draw.word[3];
  if (draw.word[2] % 4 == 1) return draw.word[3] % 70;
  return kBorders[draw.word[3] % std::size(kBorders)];
}

// Restores headers, bitmap and what lies behind them: cheaper than the whole region.
class Resetter {
 public:
  explicit Resetter(const CompatBytes& memory) : memory_(memory) {
    for (const std::size_t at : kHeaders) {
      saved_.emplace_back(memory.span().begin() + static_cast<std::ptrdiff_t>(at),
                          memory.span().begin() + static_cast<std::ptrdiff_t>(at + kBytes));
    }
  }
  void Restore() const {
    for (std::size_t i = 0; i < std::size(kHeaders); ++i) {
      std::memcpy(&memory_.at<std::byte>(kHeaders[i]), saved_[i].data(), kBytes);
    }
  }

 private:
  static constexpr std::size_t kBytes = 0x700;
  const CompatBytes& memory_;
  std::vector<std::vector<std::byte>> saved_;
};

void Lie(const CompatBytes& memory, std::uint32_t round, std::uint32_t number) {
  const PhiloxBlock draw = PhiloxDraw(21, number, round, PhiloxPurpose::kSampler);
  const std::size_t header = kHeaders[draw.word[0] % std::size(kHeaders)];
  // Headers, doorbell words, the first bitmap words and the first entries.
  memory.at<std::uint32_t>(header + 4 * (draw.word[1] % 24)) = LieOf(draw);
}

// One call of anything; the results do not matter, that they come does.
void CallAnything(CompatKernel& kernel, CompatHost& host, std::uint32_t what) {
  CompatObs obs;
  CompatMetadata metadata;
  std::uint32_t echo = 0;
  switch (what % 5) {
    case 0:
      if (kernel.Reset(obs) != CompatResult::kOk) break;
      for (int i = 0; i < 3 && obs.done < 0.5F; ++i) {
        if (kernel.Step(static_cast<std::uint16_t>(what), obs) != CompatResult::kOk) break;
      }
      static_cast<void>(kernel.Weights(obs.model_id));
      break;
    case 1:
      static_cast<void>(kernel.Metadata(metadata));
      break;
    case 2:
      static_cast<void>(kernel.Ping(what, echo));
      break;
    case 3:
      static_cast<void>(kernel.Weights(static_cast<float>(what % 20)));
      break;
    default:
      static_cast<void>(host.Poll());
      break;
  }
}

TEST(CompatHostileTest, HundredThousandRandomRegionsAreRefusedOrSurvived) {
  CompatWorld world;
  world.config.wait.peer_timeout_ns = kNanosPerMilli;
  world.config.wait.answer_timeout_ns = 2 * kNanosPerMilli;
  LayOutOrAdoptCompat(world.memory.span(), true);
  {
    CountingEnv env;
    CompatHost host(world.memory.span(), env, world.config, 0);
  }
  const Resetter resetter(world.memory);
  int refused = 0;
  int attached = 0;
  for (std::uint32_t round = 0; round < 120'000; ++round) {
    resetter.Restore();
    const std::uint32_t lies = 1 + round % 4;
    for (std::uint32_t i = 0; i < lies; ++i) Lie(world.memory, round, i);
    try {
      CountingEnv env(3);
      world.config.stream = round % 5 != 0;
      world.kernel.emplace(world.memory.span(), world.config);
      world.host.emplace(world.memory.span(), env, world.config, 0);
      ++attached;
      // Now lies while both are attached.
      for (std::uint32_t call = 0; call < 3; ++call) {
        Lie(world.memory, round, 10 + call);
        CallAnything(*world.kernel, *world.host, round + call);
      }
    } catch (const Error&) {
      ++refused;
    }
    world.host.reset();
    world.kernel.reset();
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_GT(attached, 10'000);
  for (std::size_t at = kCompatMeshTable; at < kCompatHeapData; at += 4)
    ASSERT_EQ(world.memory.at<std::uint32_t>(at), 0U) << "the mesh table was touched";
}

TEST(CompatHostileTest, RegionOfNoiseIsRefused) {
  CompatBytes memory;
  CountingEnv env;
  const CompatEndConfig config;
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < kCompatRegionBytes / 16; ++i) {
      const PhiloxBlock draw = PhiloxDraw(3, round, i, PhiloxPurpose::kSampler);
      std::memcpy(&memory.at<std::byte>(16 * std::size_t{i}), &draw, 16);
    }
    EXPECT_THROW(CompatKernel(memory.span(), config), Error);
    EXPECT_THROW(CompatHost(memory.span(), env, config, 0), Error);
    EXPECT_FALSE(CompatProblems(memory.span()).empty());
  }
}

}  // namespace
}  // namespace tetrion
