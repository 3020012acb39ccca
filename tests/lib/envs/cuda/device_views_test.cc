#include "lib/envs/cuda/device_views.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "lib/envs/cartpole/cartpole.h"
#include "lib/envs/cuda/device_game.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/envs/tetris/colour_record.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/views.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion {
namespace {

class DeviceViewsTest : public cuda::DeviceFixture {
 protected:
  // The view of row `number` of [M, record_bytes] records, which lie in slot `number` % 3.
  std::vector<float> Expand(const ObsSpec& obs, const std::vector<std::byte>& records,
                            std::uint64_t number) {
    std::vector<std::byte> rows(3 * records.size());
    std::memcpy(rows.data() + number % 3 * records.size(), records.data(), records.size());
    const cuda::DeviceBuffer record = Upload(rows);
    const cuda::DeviceBuffer row = Upload(std::vector<std::uint64_t>{number});
    RowSlots slots;
    slots.record = record.data<std::byte>();
    slots.capacity_rows = 3;
    slots.record_bytes = obs.record_bytes;
    slots.lanes = static_cast<std::uint32_t>(records.size() / obs.record_bytes);
    const cuda::DeviceBuffer view(
        *device, slots.lanes * static_cast<std::size_t>(obs.view_floats) * sizeof(float), "view");
    DeviceExpandOf(obs)(slots, row.data<std::uint64_t>(), obs.queue_size, view.data<float>(),
                        *stream);
    return Download<float>(view);
  }
};

ObsSpec Planes(int queue_size, std::uint32_t record_bytes = sizeof(TetrisRecord)) {
  return {.record_bytes = record_bytes,
          .view = "planes",
          .view_floats = PlanesLayout::Floats(queue_size),
          .queue_size = queue_size};
}

// Games of 7 queued pieces after a few placements each; every third record is any bytes.
std::vector<TetrisRecord> Records(std::size_t count) {
  std::vector<TetrisRecord> records(count);
  for (std::size_t i = 0; i < count; ++i) {
    PhiloxPieces pieces = PhiloxPieces::Of(5, i, false);
    const int rows = i % 2 == 0 ? kTetrisRows : 5 + static_cast<int>(i % 16);
    TetrisReset(records[i], {kTetrisMaxQueue, rows}, pieces);
    for (std::uint32_t step = 0; step < i % 40; ++step) {
      const PhiloxBlock draw = PhiloxDraw(5, i, step, PhiloxPurpose::kActions);
      const auto action = static_cast<int>(BoundedDraw(draw.word[0], kTetrisActions));
      if (TetrisStep(records[i], action, pieces).terminated) break;
    }
    if (i % 3 != 2) continue;
    for (std::uint32_t word = 0; word < sizeof(TetrisRecord) / 16; ++word) {
      const PhiloxBlock draw = PhiloxDraw(6, i, word, PhiloxPurpose::kSampler);
      std::memcpy(reinterpret_cast<std::byte*>(&records[i]) + 16 * word, draw.word, 16);
    }
  }
  return records;
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(DeviceViewsTest, PlanesEqualTheCpusBitForBit) {
  for (const std::size_t lanes : {1U, 128U, 131U}) {
    const std::vector<std::byte> records = BytesOf(Records(lanes));
    for (const int queue_size : {1, 4, 7}) {
      const ObsSpec obs = Planes(queue_size);
      std::vector<float> expected(lanes * static_cast<std::size_t>(obs.view_floats));
      ExpandPlanes(records.data(), static_cast<std::int64_t>(lanes), queue_size, expected.data());
      EXPECT_EQ(Expand(obs, records, lanes), expected) << lanes << " lanes, queue " << queue_size;
    }
  }
}

TEST_F(DeviceViewsTest, PlanesAreMadeFromTheFirstBytesOfLongerRecords) {
  const std::vector<TetrisRecord> games = Records(10);
  std::vector<ColourRecord> records(games.size());
  for (std::size_t i = 0; i < games.size(); ++i) records[i].compact = games[i];
  const std::vector<float> longer = Expand(Planes(4, sizeof(ColourRecord)), BytesOf(records), 7);
  EXPECT_EQ(longer, Expand(Planes(4), BytesOf(games), 7));
}

TEST_F(DeviceViewsTest, AVectorIsTheRecord) {
  std::vector<float> states;
  for (int i = 0; i < 4 * 133; ++i) states.push_back(static_cast<float>(i) * 0.25F - 3);
  const ObsSpec obs = {.record_bytes = sizeof(CartPoleRecord), .view = "vector", .view_floats = 4};
  EXPECT_EQ(Expand(obs, BytesOf(states), 11), states);
}

// Of records that device lanes draw, here of any bytes; planes' are 0 or 1.
TEST_F(DeviceViewsTest, ViewsOfDrawnRecordsEqualTheCpus) {
  for (const char* record : {kPlanesRecord, kPacked2Record}) {
    const ObsSpec obs =
        DeviceShowOf({.env = {.name = "tetris", .lanes = 3, .queue_size = 3}, .record = record})
            .spec.obs;
    std::vector<std::byte> records(3 * obs.record_bytes);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto byte = static_cast<unsigned>(i * 73 % 256);
      records[i] = static_cast<std::byte>(record == kPlanesRecord ? byte % 2 : byte);
    }
    std::vector<float> expected(3 * static_cast<std::size_t>(obs.view_floats));
    obs.expand(records.data(), 3, obs.queue_size, expected.data());
    EXPECT_EQ(Expand(obs, records, 8), expected) << record;
  }
}

TEST(DeviceExpandOfTest, OtherViewsAreRefusedWithTheNamesThereAre) {
  try {
    (void)DeviceExpandOf({.view = "afterstates"});
    FAIL() << "made view afterstates";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_EQ(std::string(error.what()),
              "view afterstates is not made on a device: choose planes or vector");
  }
}

TEST(DeviceGameTest, EnvironmentWithoutDeviceLanesIsToldThoseThatHaveThem) {
  DeviceLanesConfig config;
  config.env.name = "catch";
  try {
    (void)DeviceShowOf(config);
    FAIL() << "no kernels play it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    const std::string text = error.what();
    EXPECT_NE(text.find("'catch'"), std::string::npos) << text;
    EXPECT_NE(text.find("tetris, tetris-placement, cartpole"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tetrion
