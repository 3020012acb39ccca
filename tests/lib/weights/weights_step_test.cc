#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/weights/weights_slot.h"
#include "tests/support/single_step.h"

// The publisher acts between any two instructions of a reader's Read, and the other way round.
namespace tetrion {
namespace {

using testing::RunWithActionAt;
using testing::SingleStep;

constexpr std::uint64_t kBytes = 16;
constexpr std::uint32_t kFirst = 3;  // version of the publication that is read
using Blob = std::vector<std::byte>;

class WeightsStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
    Restart();
  }
  // A slot with one publication, as the first reader finds it.
  void Restart() {
    std::memset(memory.get(), 0, WeightsSlotBytes(kBytes));
    Writer().Publish(kFirst, Of(kFirst));
  }
  WeightsSlotWriter Writer() { return WeightsSlotWriter(memory.get(), kBytes); }
  WeightsBlock& block() { return *reinterpret_cast<WeightsBlock*>(memory.get()); }
  static Blob Of(std::uint32_t version) { return Blob(kBytes, static_cast<std::byte>(version)); }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> memory{
      static_cast<std::byte*>(std::aligned_alloc(kCacheLinePairBytes, WeightsSlotBytes(kBytes)))};
};

// A publisher that comes round to the slot opens it by its stamp. Whoever has not copied everything
// by then must not use the copy, whatever else of it agrees: the bytes are the publisher's.
TEST_F(WeightsStepTest, CopyOfASlotThatIsOpenedMeanwhileIsThrownAway) {
  int refused = 0;
  WeightsRead result = WeightsRead::kRetry;
  for (int at = 0; result == WeightsRead::kRetry; at += 2) {
    Restart();
    WeightsSlotReader reader(memory.get(), kBytes);
    Blob out(kBytes);
    std::uint32_t version = 0;
    bool copied = false;
    ASSERT_TRUE(RunWithActionAt(
        at, [&] { result = reader.Read(out, version); },
        [&] {
          copied = out.back() == static_cast<std::byte>(kFirst);
          block().slot[1].stamp.store(9);  // publication 5, which takes the first one's slot
        }))
        << "a slot that is opened after the last look at its stamp changes nothing";
    refused += copied && result == WeightsRead::kRetry ? 1 : 0;
    ASSERT_TRUE(copied || result == WeightsRead::kRetry)
        << "the slot was opened at instruction " << at << ", before the copy was complete";
  }
  EXPECT_GT(refused, 0) << "the last look comes after the copy";
}

// Whatever a publisher killed at any instruction leaves behind, a reader gets the old weights or
// the new ones, whole, and never has to wait for its successor.
TEST_F(WeightsStepTest, ReaderFindsOldOrNewWeightsAtEveryInstructionOfPublish) {
  const Blob next = Of(kFirst + 1);
  WeightsSlotWriter writer = Writer();
  Blob out(kBytes);
  int old_ones = 0, new_ones = 0, wrong = 0;
  SingleStep([&] { writer.Publish(kFirst + 1, next); },
             [&](const unsigned char*) {
               WeightsSlotReader reader(memory.get(), kBytes);
               std::uint32_t version = 0;
               const bool fresh = reader.Read(out, version) == WeightsRead::kFresh;
               const bool whole = std::memcmp(out.data(), out.data() + 1, kBytes - 1) == 0 &&
                                  out[0] == static_cast<std::byte>(version);
               wrong += fresh && whole ? 0 : 1;
               (version == kFirst ? old_ones : new_ones) += 1;
               return true;
             });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(old_ones, 0);
  EXPECT_GT(new_ones, 0);
}

}  // namespace
}  // namespace tetrion
