#include "services/learner/weights_shelf.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tetrion::learner {
namespace {

constexpr std::uint64_t kBytes = 2 * wire::kWeightsChunkBytes + 100;

class WeightsShelfTest : public ::testing::Test {
 protected:
  std::vector<std::byte> Blob(std::uint32_t version) const {
    std::vector<std::byte> blob(kBytes, static_cast<std::byte>(version));
    blob.back() = std::byte{0xee};
    return blob;
  }
  void Publish(std::uint32_t version) {
    writer_.Publish(version, Blob(version));
    clock_.AdvanceNs(WeightsShelf::kRefreshNs);
    shelf_.Refresh();
  }
  // The whole of a version as process `process` gets it; empty when a chunk is gone.
  std::vector<std::byte> Download(std::uint64_t process, std::uint32_t version) {
    std::vector<std::byte> blob;
    for (std::uint32_t chunk = 0; blob.size() < kBytes; ++chunk) {
      const auto answer = shelf_.Get(process, {version, chunk});
      const auto* part = answer ? std::get_if<wire::WeightsChunk>(&answer->message) : nullptr;
      if (part == nullptr) return {};
      EXPECT_EQ(part->version, version);
      EXPECT_EQ(part->chunk, chunk);
      EXPECT_EQ(part->blob_bytes, kBytes);
      EXPECT_EQ(part->hash, WeightsHash(Blob(version), version));
      blob.insert(blob.end(), answer->payload.begin(), answer->payload.end());
    }
    return blob;
  }

  FakeClock clock_;
  // Aligned as a region's memory is.
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory_ = std::vector<Line>(WeightsSlotBytes(kBytes) / sizeof(Line) + 1);
  WeightsSlotWriter writer_{memory_[0].bytes, kBytes};
  WeightsShelf shelf_{WeightsSlotReader(memory_[0].bytes, kBytes), clock_};
};

TEST_F(WeightsShelfTest, NothingIsThereBeforeTheFirstPublication) {
  shelf_.Refresh();
  EXPECT_EQ(shelf_.newest(), 0U);
  const auto answer = shelf_.Get(1, {3, 0});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<wire::WeightsGone>(answer->message).newest, 0U);
}

TEST_F(WeightsShelfTest, NewestVersionIsHandedOutChunkByChunk) {
  Publish(3);
  EXPECT_EQ(shelf_.newest(), 3U);
  EXPECT_EQ(Download(1, 3), Blob(3));
  EXPECT_FALSE(shelf_.Get(1, {3, 3}).has_value()) << "beyond the end";
  EXPECT_FALSE(shelf_.Get(1, {3, 0xffffffff}).has_value());
}

TEST_F(WeightsShelfTest, VersionStaysAsLongAsAProcessDownloadsIt) {
  Publish(1);
  ASSERT_TRUE(shelf_.Get(7, {1, 0}));
  Publish(2);
  Publish(3);
  EXPECT_EQ(shelf_.held(), 2U);
  EXPECT_EQ(Download(7, 1), Blob(1));
  const auto other = shelf_.Get(8, {1, 0});
  EXPECT_EQ(std::get<wire::WeightsGone>(other->message).newest, 3U) << "it never began";
  EXPECT_EQ(Download(7, 3), Blob(3));
  EXPECT_EQ(shelf_.held(), 1U);
}

TEST_F(WeightsShelfTest, VersionThatIsNamedInAnothersSteadIsStillThereWhenItIsAskedFor) {
  Publish(3);
  const auto answer = shelf_.Get(7, {1, 0});
  EXPECT_EQ(std::get<wire::WeightsGone>(answer->message).newest, 3U);
  Publish(4);
  const auto second = shelf_.Get(7, {1, 1});  // was asked together with the first
  EXPECT_EQ(std::get<wire::WeightsGone>(second->message).newest, 3U);
  Publish(5);
  EXPECT_EQ(Download(7, 3), Blob(3));
  Publish(6);
  EXPECT_EQ(std::get<wire::WeightsGone>(shelf_.Get(7, {4, 0})->message).newest, 6U);
}

TEST_F(WeightsShelfTest, ProcessThatStopsAskingIsForgotten) {
  Publish(1);
  ASSERT_TRUE(shelf_.Get(7, {1, 0}));
  Publish(2);
  EXPECT_EQ(shelf_.held(), 2U);
  clock_.AdvanceNs(WeightsShelf::kForgetNs);
  shelf_.Refresh();
  EXPECT_EQ(shelf_.held(), 1U);
  EXPECT_EQ(std::get<wire::WeightsGone>(shelf_.Get(7, {1, 1})->message).version, 1U);
}

TEST_F(WeightsShelfTest, NewerVersionIsLookedForTenTimesASecond) {
  Publish(1);
  writer_.Publish(2, Blob(2));
  shelf_.Refresh();
  EXPECT_EQ(shelf_.newest(), 1U);
  clock_.AdvanceNs(WeightsShelf::kRefreshNs);
  shelf_.Refresh();
  EXPECT_EQ(shelf_.newest(), 2U);
}

}  // namespace
}  // namespace tetrion::learner
