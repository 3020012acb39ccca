#include "lib/weights/remote_weights.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "lib/weights/weights_slot.h"

namespace tetrion {
namespace {

using PutResult = WeightsInbox::PutResult;

// Remembers what it was offered.
class SizedUser final : public WeightsUser {
 public:
  explicit SizedUser(std::size_t bytes = 8) : bytes_(bytes) {}
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override {
    ++offered;
    if (blob.size() != bytes_) return LoadResult::kWrongSize;
    version_ = version;
    return LoadResult::kLoaded;
  }
  std::size_t WeightsBytes() const override { return bytes_; }
  std::uint32_t version() const override { return version_; }
  int offered = 0;

 private:
  const std::size_t bytes_;
  std::uint32_t version_ = 0;
};

std::vector<std::byte> Bytes(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

PutResult Put(WeightsInbox& inbox, std::uint32_t version, std::vector<std::byte> bytes) {
  const std::uint64_t hash = WeightsHash(bytes, version);
  return inbox.Put(version, std::move(bytes), hash);
}

TEST(WeightsInboxTest, TakesOnlyBytesThatTheirPublisherHashed) {
  WeightsInbox inbox;
  EXPECT_EQ(inbox.Newest(), nullptr);
  EXPECT_EQ(inbox.Put(3, Bytes(8, 1), WeightsHash(Bytes(8, 2), 3)), PutResult::kWrongHash);
  EXPECT_EQ(inbox.Put(3, Bytes(8, 1), WeightsHash(Bytes(8, 1), 4)), PutResult::kWrongHash);
  EXPECT_EQ(inbox.version(), 0U);
  EXPECT_EQ(Put(inbox, 3, Bytes(8, 1)), PutResult::kTaken);
  EXPECT_EQ(inbox.Newest()->bytes, Bytes(8, 1));
}

TEST(WeightsInboxTest, VersionsNeverGoDown) {
  WeightsInbox inbox;
  EXPECT_EQ(Put(inbox, 5, Bytes(8, 1)), PutResult::kTaken);
  EXPECT_EQ(Put(inbox, 5, Bytes(8, 2)), PutResult::kNotNewer);
  EXPECT_EQ(Put(inbox, 4, Bytes(8, 2)), PutResult::kNotNewer);
  EXPECT_EQ(inbox.Newest()->version, 5U);
  inbox.TellPublished(9);
  inbox.TellPublished(7);
  EXPECT_EQ(inbox.published(), 9U);
}

TEST(RemoteWeightsTest, GivesEachNewVersionToTheUserOnce) {
  WeightsInbox inbox;
  RemoteWeights weights(inbox);
  SizedUser user;
  EXPECT_FALSE(weights.Refresh(user)) << "there are none yet";
  ASSERT_EQ(Put(inbox, 2, Bytes(8, 1)), PutResult::kTaken);
  EXPECT_TRUE(weights.Refresh(user));
  EXPECT_TRUE(weights.Refresh(user));
  EXPECT_EQ(user.version(), 2U);
  EXPECT_EQ(user.offered, 1);
}

// A random policy's rows say how old they are, as beside the learner.
TEST(RemoteWeightsTest, UserWithoutWeightsHasTheVersionThatIsPublished) {
  SizedUser user(0);
  WeightsInbox inbox;
  RemoteWeights weights(inbox);
  EXPECT_TRUE(weights.Refresh(user));
  EXPECT_EQ(user.version(), 0U);
  inbox.TellPublished(7);
  EXPECT_TRUE(weights.Refresh(user));
  EXPECT_EQ(user.version(), 7U);
}

TEST(RemoteWeightsTest, RefusedVersionIsCountedAndSkipped) {
  WeightsInbox inbox;
  RemoteWeights weights(inbox);
  SizedUser user;
  ASSERT_EQ(Put(inbox, 1, Bytes(7, 1)), PutResult::kTaken);
  EXPECT_FALSE(weights.Refresh(user));
  EXPECT_FALSE(weights.Refresh(user));
  EXPECT_EQ(weights.refused(), 1U);
  ASSERT_EQ(Put(inbox, 2, Bytes(8, 1)), PutResult::kTaken);
  EXPECT_TRUE(weights.Refresh(user));
  EXPECT_EQ(weights.refused(), 1U);
}

TEST(RemoteWeightsTest, LearnerIsGoneWhenTheCourierSaysSo) {
  WeightsInbox inbox;
  const RemoteWeights weights(inbox);
  EXPECT_FALSE(weights.LearnerGone());
  inbox.TellLearnerGone(true);
  EXPECT_TRUE(weights.LearnerGone());
}

// Every blob is one value throughout, its version's: a reader never sees half of another.
TEST(RemoteWeightsTest, ReadersSeeWholeVersionsWhileNewOnesCome) {
  constexpr std::uint32_t kVersions = 200;
  WeightsInbox inbox;
  std::thread writer([&inbox] {
    for (std::uint32_t v = 1; v <= kVersions; ++v) {
      ASSERT_EQ(Put(inbox, v, Bytes(4096, static_cast<int>(v))), PutResult::kTaken);
    }
  });
  std::uint32_t seen = 0;
  while (seen < kVersions) {
    const auto blob = inbox.Newest();
    if (blob == nullptr) continue;
    ASSERT_GE(blob->version, seen);
    seen = blob->version;
    ASSERT_EQ(blob->bytes, Bytes(4096, static_cast<int>(seen)));
  }
  writer.join();
}

}  // namespace
}  // namespace tetrion
