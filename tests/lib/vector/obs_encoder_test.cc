#include "lib/vector/obs_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/core/error.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/gym_views.h"
#include "lib/envs/views/packed2.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

// `n` coloured records of games that have locked a few pieces.
std::vector<ColourRecord> Games(int n) {
  std::vector<ColourRecord> records(static_cast<std::size_t>(n));
  std::uint64_t token = 0;
  for (ColourRecord& record : records) {
    PhiloxPieces pieces = PhiloxPieces::Of(7, token++, false);
    TetrisReset(record.compact, {3}, pieces);
    for (std::uint64_t i = 0; i < 3 + token; ++i) {
      TetrisStep(record.compact, kTetrisHardDrop, pieces);
    }
    record = UncolouredRecord(record.compact);
  }
  return records;
}

const std::byte* BytesOf(const std::vector<ColourRecord>& records) {
  return reinterpret_cast<const std::byte*>(records.data());
}

ObsEncoder Make(const PyEnvConfig& config) {
  return MakeObsEncoder(config, MakeEnvSpec(EnvConfigOf(config)));
}

TEST(ObsEncoder, SizesAreThoseOfTheDocumentedViews) {
  EXPECT_EQ(Make({.obs = "flat", .queue_size = 4}).elements(), 944);
  EXPECT_EQ(Make({.obs = "flat", .queue_size = 3}).elements(), 928);
  EXPECT_EQ(Make({.obs = "dict"}).elements(), 944);
  EXPECT_EQ(Make({.obs = "planes"}).elements(), 448);
  EXPECT_EQ(Make({.obs = "compact"}).elements(), 64);
  EXPECT_EQ(Make({.obs = "packed2"}).bytes(), 1440U);
  EXPECT_EQ(Make({.obs = "pixels"}).bytes(), 72U * 80 * 4);
  EXPECT_EQ(Make({.env = "tetris-placement", .obs = "afterstates"}).elements(), 688);
  EXPECT_EQ(Make({.env = "cartpole", .obs = "flat"}).elements(), 4);
  EXPECT_EQ(Make({.env = "cartpole", .obs = "compact"}).bytes(), 16U);
  EXPECT_TRUE(Make({.obs = "planes"}).is_float());
  EXPECT_FALSE(Make({.obs = "dict"}).is_float());
}

TEST(ObsEncoder, FlatIsDictAsFloats) {
  const std::vector<ColourRecord> records = Games(5);
  const PyEnvConfig flat_config{.obs = "flat", .queue_size = 3};
  const PyEnvConfig dict_config{.obs = "dict", .queue_size = 3};
  std::vector<float> flat(5 * 928);
  std::vector<std::uint8_t> dict(5 * 928);
  Make(flat_config).Encode(BytesOf(records), 5, reinterpret_cast<std::byte*>(flat.data()));
  Make(dict_config).Encode(BytesOf(records), 5, reinterpret_cast<std::byte*>(dict.data()));
  EXPECT_TRUE(std::equal(flat.begin(), flat.end(), dict.begin()));
  EXPECT_GT(std::count(dict.begin(), dict.end(), 9), 0) << "no locked cell was drawn";
}

TEST(ObsEncoder, ReadsTheCompactRecordAtTheFrontOfAColouredOne) {
  const std::vector<ColourRecord> records = Games(4);
  std::vector<TetrisRecord> plain;
  for (const ColourRecord& record : records) plain.push_back(record.compact);
  std::vector<float> of_plain(4 * 441), of_coloured(4 * 441);
  ExpandPlanes(reinterpret_cast<const std::byte*>(plain.data()), 4, 3, of_plain.data());
  Make({.obs = "planes", .queue_size = 3, .colours = true})
      .Encode(BytesOf(records), 4, reinterpret_cast<std::byte*>(of_coloured.data()));
  EXPECT_EQ(of_plain, of_coloured);

  std::vector<std::byte> compact(4 * 64);
  Make({.obs = "compact", .queue_size = 3, .colours = true})
      .Encode(BytesOf(records), 4, compact.data());
  EXPECT_EQ(std::memcmp(compact.data(), plain.data(), compact.size()), 0);
}

TEST(ObsEncoder, Packed2IsDrawnFromAnyRecord) {
  const std::vector<ColourRecord> records = Games(3);
  std::vector<TetrisRecord> plain;
  for (const ColourRecord& record : records) plain.push_back(record.compact);
  std::vector<std::byte> of_plain(3 * 1440), of_coloured(3 * 1440);
  const PyEnvConfig config{.obs = "packed2", .queue_size = 3};
  PyEnvConfig coloured = config;
  coloured.colours = true;
  Make(config).Encode(reinterpret_cast<const std::byte*>(plain.data()), 3, of_plain.data());
  Make(coloured).Encode(BytesOf(records), 3, of_coloured.data());
  EXPECT_EQ(of_plain, of_coloured);
  std::vector<std::uint8_t> drawn(1440);
  DrawPacked2(plain[2], drawn.data());
  EXPECT_EQ(std::memcmp(drawn.data(), of_plain.data() + std::size_t{2} * 1440, 1440), 0);
}

TEST(ObsEncoder, RefusesUnknownObservationsByName) {
  const auto message = [](const PyEnvConfig& config) -> std::string {
    try {
      Make(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.obs = "rgb"}),
            "tetris has no observation 'rgb': choose one of flat, dict, planes, pixels, compact, "
            "packed2, drops");
  EXPECT_EQ(message({.env = "cartpole", .obs = "planes"}),
            "cartpole has no observation 'planes': choose one of flat, compact");
  EXPECT_NE(message({.obs = "afterstates"}), "");
  EXPECT_NE(message({.env = "chess", .obs = "flat"}).find("unknown environment 'chess'"),
            std::string::npos);
  EXPECT_NE(message({.obs = "flat", .queue_size = 8}).find("queue_size must be 0 to 7"),
            std::string::npos);
}

}  // namespace
}  // namespace tetrion
