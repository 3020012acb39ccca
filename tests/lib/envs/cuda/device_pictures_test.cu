#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/envs/cuda/device_lanes.h"
#include "lib/envs/views/packed2.h"
#include "lib/envs/views/views.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/envs/cuda/lanes_driver.cuh"

// Records that a device draws, against those of the CPU made from states.

namespace tetrion {
namespace {

using testing::DeviceSide;

constexpr std::uint64_t kRows = 80;

std::vector<Token> LongTokens(std::uint64_t count) {
  std::vector<Token> tokens;
  for (std::uint64_t id = 0; id < count; ++id) {
    tokens.push_back({.id = id, .attempt = 0, .max_steps = id % 2 == 0 ? 30U : 10000U});
  }
  return tokens;
}

class DevicePicturesTest : public cuda::DeviceFixture {
 protected:
  std::unique_ptr<DeviceSide> SideOf(const EnvConfig& env, const char* record) {
    const DeviceLanesConfig config = {
        .env = env, .record = record, .token_capacity = 200, .episode_capacity = 200};
    auto side = std::make_unique<DeviceSide>(*device, config, kRows + 1);
    // At the end there are lanes without an episode.
    EXPECT_EQ(side->lanes.AddTokens(LongTokens(50), side->stream), 50U);
    for (std::uint64_t row = 0; row < kRows; ++row) side->Row();
    return side;
  }

  // The views of all rows' records, of lanes that show a state; zeros for the rest.
  std::vector<float> ViewsOf(DeviceSide& side) {
    const ObsSpec& obs = side.lanes.spec().obs;
    const RowSlots rows = side.rows.Download(side.stream);
    std::vector<float> views(kRows * rows.lanes * static_cast<std::size_t>(obs.view_floats));
    float* out = views.data();
    idle_ = 0;
    for (std::uint64_t row = 0; row < kRows; ++row) {
      for (std::uint32_t lane = 0; lane < rows.lanes; ++lane, out += obs.view_floats) {
        const std::byte* record = rows.At(row).record + std::size_t{lane} * obs.record_bytes;
        const std::vector<std::byte> nothing(obs.record_bytes);
        if (std::memcmp(record, nothing.data(), nothing.size()) == 0) {
          ++idle_;
        } else {
          obs.expand(record, 1, obs.queue_size, out);
        }
      }
    }
    return views;
  }

  int idle_ = 0;  // of the last call: lanes and rows without a state
};

TEST_F(DevicePicturesTest, PlanesEqualThoseMadeFromStates) {
  for (const int queue_size : {1, 4, 7}) {
    const EnvConfig env = {
        .name = "tetris", .view = "planes", .lanes = 33, .seed = 2, .queue_size = queue_size};
    const auto states = SideOf(env, ""), planes = SideOf(env, kPlanesRecord);
    EXPECT_EQ(planes->lanes.row_spec().record_bytes, 420U + 7U * static_cast<unsigned>(queue_size));
    EXPECT_EQ(ViewsOf(*states), ViewsOf(*planes)) << queue_size;
    EXPECT_GT(idle_, 0);
  }
}

TEST_F(DevicePicturesTest, PicturesEqualThoseDrawnFromStates) {
  for (const char* name : {"tetris", "tetris-placement"}) {
    const int rows = std::string(name) == "tetris" ? kTetrisRows : 9;
    const EnvConfig env = {.name = name, .lanes = 33, .seed = 3, .queue_size = 6, .rows = rows};
    const auto states = SideOf(env, "compact"), pictures = SideOf(env, kPacked2Record);
    const RowSlots of_states = states->rows.Download(states->stream);
    const RowSlots of_pictures = pictures->rows.Download(pictures->stream);
    std::vector<std::uint8_t> expected(Packed2Layout::kBytes);
    for (std::uint64_t row = 0; row < kRows; ++row) {
      for (std::size_t lane = 0; lane < 33; ++lane) {
        TetrisRecord record;
        std::memcpy(&record, of_states.At(row).record + lane * 64, sizeof(record));
        std::fill(expected.begin(), expected.end(), 0);
        if (record.row[0] != 0) DrawPacked2(record, expected.data());
        ASSERT_EQ(std::memcmp(of_pictures.At(row).record + lane * expected.size(), expected.data(),
                              expected.size()),
                  0)
            << name << ", row " << row << ", lane " << lane;
      }
    }
  }
}

// Token 5 of seed 2 begins as tests/golden/packed2_start.pgm; after a swap it is
// packed2_swapped.pgm.
TEST_F(DevicePicturesTest, PicturesEqualTheGoldenOnes) {
  const DeviceLanesConfig config = {.env = {.name = "tetris", .seed = 2},
                                    .record = kPacked2Record,
                                    .token_capacity = 1,
                                    .episode_capacity = 1};
  DeviceSide side(*device, config, 2);
  const Token token = {.id = 5, .attempt = 0, .max_steps = 10};
  ASSERT_EQ(side.lanes.AddTokens({&token, 1}, side.stream), 1U);
  side.Row();
  const std::int32_t swap = kTetrisSwap;
  CopyToDevice(side.rows.slots.action, &swap, sizeof(swap), cuda::CopyPurpose::kSetUp, side.stream);
  side.Row();
  const RowSlots rows = side.rows.Download(side.stream);
  const char* const names[] = {"start", "swapped"};
  const char* const elsewhere = std::getenv("TETRION_GOLDEN_DIR");  // where the sources are not
  const std::string folder = elsewhere != nullptr ? elsewhere : TETRION_GOLDEN;
  for (std::uint64_t row = 0; row < 2; ++row) {
    std::ostringstream drawn, golden;
    drawn << "P2\n80 72\n3\n";
    for (int pixel = 0; pixel < 72 * 80; ++pixel) {
      const auto byte = std::to_integer<int>(rows.At(row).record[pixel / 4]);
      drawn << 3 - (byte >> (2 * (pixel % 4)) & 3) << (pixel % 80 == 79 ? '\n' : ' ');
    }
    golden << std::ifstream(folder + "/packed2_" + names[row] + ".pgm").rdbuf();
    EXPECT_EQ(drawn.str(), golden.str()) << names[row];
  }
}

TEST_F(DevicePicturesTest, ANetworkSeesTheShadesOfAPicture) {
  const auto side = SideOf({.name = "tetris", .lanes = 2}, kPacked2Record);
  const ObsSpec& obs = side->lanes.spec().obs;
  EXPECT_EQ(obs.view, kPacked2Record);
  EXPECT_EQ(obs.view_floats, 72 * 80);
  const std::vector<float> views = ViewsOf(*side);
  const std::vector<float> frame(views.begin() + 67 * 80, views.begin() + 68 * 80);
  for (std::size_t x = 0; x < frame.size(); ++x) {
    EXPECT_EQ(frame[x], x >= 6 && x < 40 ? 1.0F / 3 : 0.0F) << x;
  }
}

}  // namespace
}  // namespace tetrion
