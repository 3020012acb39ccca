#include "lib/nn/cuda/device_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion {
namespace {

class DeviceParametersTest : public cuda::DeviceFixture {
 protected:
  void Publish(DeviceParameters& parameters, float value, std::uint32_t version) {
    std::ranges::fill(parameters.Stage(), value);
    parameters.Publish(version, *stream);
  }

  // Enqueues copies of version and first parameter; what they say once the stream has passed.
  struct Seen {
    cuda::PinnedBuffer memory{8, "what a stream saw"};
    std::pair<std::uint32_t, float> Get() const {
      return {memory.data<std::uint32_t>()[0], memory.data<float>()[1]};
    }
  };
  Seen Look(const DeviceParameters& parameters) {
    Seen seen;
    cuda::CopyToHost(seen.memory.data<std::byte>(), parameters.device_version(), 4,
                     cuda::CopyPurpose::kSetUp, *stream);
    cuda::CopyToHost(seen.memory.data<std::byte>() + 4, parameters.Piece(kPiece).data(), 4,
                     cuda::CopyPurpose::kSetUp, *stream);
    return seen;
  }

  const ParameterInfo kPiece = {.name = "all", .shape = {5}, .offset = 0, .size = 5};
};

TEST_F(DeviceParametersTest, PiecesLieAtTheirOffsets) {
  DeviceParameters parameters(*device, 5);
  const std::span<float> staged = parameters.Stage();
  ASSERT_EQ(staged.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) staged[i] = static_cast<float>(i);
  parameters.Publish(1, *stream);
  const auto piece = parameters.Piece({.name = "b", .shape = {2}, .offset = 3, .size = 2});
  EXPECT_EQ(piece.size(), 2U);
  std::vector<float> values(2);
  cuda::CopyToHost(values.data(), piece.data(), 8, cuda::CopyPurpose::kSetUp, *stream);
  stream->Synchronize();
  EXPECT_EQ(values, (std::vector<float>{3, 4}));
}

// More publications than there are staging buffers, each with a look behind it, all enqueued before
// the stream is waited for.
TEST_F(DeviceParametersTest, WorkSeesTheVersionThatWasNewestWhenItWasEnqueued) {
  DeviceParameters parameters(*device, 5);
  std::vector<Seen> seen;
  for (std::uint32_t version = 1; version <= 7; ++version) {
    Publish(parameters, static_cast<float>(version), version);
    EXPECT_EQ(parameters.version(), version);
    seen.push_back(Look(parameters));
  }
  stream->Synchronize();
  for (std::uint32_t i = 0; i < 7; ++i) {
    EXPECT_EQ(seen[i].Get(), std::pair(i + 1, static_cast<float>(i + 1)));
  }
}

TEST_F(DeviceParametersTest, APublicationIsOnePinnedCopyAndTwoNeedNoWait) {
  DeviceParameters parameters(*device, 5);
  const cuda::HostCopyGuard guard;
  Publish(parameters, 1, 1);
  Publish(parameters, 2, 2);
  const cuda::Activity seen = guard.Seen();
  EXPECT_EQ(seen.waits, 0U);
  EXPECT_EQ(seen.Of(cuda::CopyDirection::kHostToDevice, cuda::MemoryKind::kPinned,
                    cuda::CopyPurpose::kWeights)
                .copies,
            2U);
}

TEST_F(DeviceParametersTest, AVersionAloneNeedsNoParameters) {
  DeviceParameters parameters(*device, 0);
  EXPECT_TRUE(parameters.Stage().empty());
  parameters.Publish(12, *stream);
  std::vector<std::uint32_t> version(1);
  cuda::CopyToHost(version.data(), parameters.device_version(), 4, cuda::CopyPurpose::kSetUp,
                   *stream);
  stream->Synchronize();
  EXPECT_EQ(version[0], 12U);
}

}  // namespace
}  // namespace tetrion
