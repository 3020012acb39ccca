#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/gym_views.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

using Pixel = std::array<int, 3>;
using Picture = std::vector<std::uint8_t>;

constexpr Pixel kWhite = {255, 255, 255}, kBlack = {0, 0, 0}, kGrey = {128, 128, 128};
constexpr Pixel kCyan = {0, 240, 240}, kYellow = {240, 240, 0}, kPurple = {160, 0, 240};
constexpr Pixel kBlue = {0, 0, 240};

Pixel At(const Picture& picture, const RgbSize& size, int y, int x) {
  const std::uint8_t* at = &picture[static_cast<std::size_t>(3 * (y * size.width + x))];
  return {at[0], at[1], at[2]};
}

// O active, then I and T; a J held, a T cell locked at the bottom left.
ColourRecord SampleRecord() {
  static const std::uint8_t ids[] = {1, 0, 2};
  SequencePieces pieces = {ids, 3, 0};
  ColourRecord record;
  TetrisReset(record.compact, {2}, pieces, LockedColours(record));
  record.compact.holder = PackHolder(5, 0);
  record.compact.row[19] |= 1U << kTetrisFieldShift;
  record.colour[19][0] = 4;
  return record;
}

TEST(TetrisRgbTest, ShowsBoardQueueAndHolderInTheirColours) {
  const ColourRecord record = SampleRecord();
  const RgbSize size = TetrisRgbSize(2, 1);
  EXPECT_EQ(size.height, 24);
  EXPECT_EQ(size.width, 26);
  Picture picture(static_cast<std::size_t>(size.Bytes()), 7);
  RenderRgb(record, 2, 1, picture.data());
  EXPECT_EQ(At(picture, size, 0, 0), kGrey);
  EXPECT_EQ(At(picture, size, 0, 4), kBlack);
  for (const int x : {8, 9}) EXPECT_EQ(At(picture, size, 1, x), kYellow);  // the active O
  EXPECT_EQ(At(picture, size, 19, 4), kPurple);
  EXPECT_EQ(At(picture, size, 20, 4), kGrey);
  EXPECT_EQ(At(picture, size, 0, 18), kBlack);  // the queue: above the I
  EXPECT_EQ(At(picture, size, 1, 21), kCyan);
  EXPECT_EQ(At(picture, size, 0, 23), kPurple);  // the T's head
  EXPECT_EQ(At(picture, size, 4, 18), kGrey);    // between queue and holder
  EXPECT_EQ(At(picture, size, 20, 18), kBlue);   // the held J
  EXPECT_EQ(At(picture, size, 20, 19), kBlack);
  EXPECT_EQ(At(picture, size, 20, 22), kGrey);  // beside the holder
}

TEST(TetrisRgbTest, WithoutAQueueTheHolderIsShownAllTheSame) {
  const ColourRecord record = SampleRecord();
  const RgbSize size = TetrisRgbSize(0, 1);
  EXPECT_EQ(size.width, 22);
  Picture picture(static_cast<std::size_t>(size.Bytes()), 7);
  RenderRgb(record, 0, 1, picture.data());
  for (int y = 0; y < 20; ++y) EXPECT_EQ(At(picture, size, y, 18), kGrey);
  EXPECT_EQ(At(picture, size, 20, 18), kBlue);
  EXPECT_EQ(At(picture, size, 20, 21), kBlack);
}

TEST(TetrisRgbTest, ScaleRepeatsEveryPixel) {
  const ColourRecord record = SampleRecord();
  const RgbSize small = TetrisRgbSize(2, 1), large = TetrisRgbSize(2, 3);
  Picture one(static_cast<std::size_t>(small.Bytes()));
  Picture three(static_cast<std::size_t>(large.Bytes()) + 1, 9);
  RenderRgb(record, 2, 1, one.data());
  RenderRgb(record, 2, 3, three.data());
  for (int y = 0; y < large.height; ++y) {
    for (int x = 0; x < large.width; ++x)
      ASSERT_EQ(At(three, large, y, x), At(one, small, y / 3, x / 3)) << y << ' ' << x;
  }
  EXPECT_EQ(three.back(), 9) << "wrote past the picture";
}

TEST(TetrisRgbTest, LockedCellsOfUnknownColourAreLightGrey) {
  const ColourRecord record = UncolouredRecord(SampleRecord().compact);
  const RgbSize size = TetrisRgbSize(2, 1);
  Picture picture(static_cast<std::size_t>(size.Bytes()));
  RenderRgb(record, 2, 1, picture.data());
  EXPECT_EQ(At(picture, size, 19, 4), (Pixel{192, 192, 192}));
}

TEST(TetrisRgbTest, ArbitraryBytesStayInsideThePicture) {
  testing::Draws draws(51);
  for (int i = 0; i < 300; ++i) {
    ColourRecord record;
    for (auto* byte = reinterpret_cast<std::uint8_t*>(&record);
         byte != reinterpret_cast<std::uint8_t*>(&record + 1); ++byte)
      *byte = static_cast<std::uint8_t>(draws.Below(256));
    const int queue_size = i % 8;
    Picture picture(static_cast<std::size_t>(TetrisRgbSize(queue_size, 2).Bytes()) + 1, 9);
    RenderRgb(record, queue_size, 2, picture.data());
    ASSERT_EQ(picture.back(), 9);
  }
}

}  // namespace
}  // namespace tetrion
