// lib/envs/cartpole/cartpole_views.cc: what networks and people see of CartPole.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lib/envs/cartpole/cartpole.h"

namespace tetrion {
namespace {

using Pixel = std::array<int, 3>;
using Picture = std::vector<std::uint8_t>;

constexpr Pixel kWhite = {255, 255, 255}, kBlack = {0, 0, 0}, kBrown = {202, 152, 101};

Pixel At(const Picture& picture, const RgbSize& size, int y, int x) {
  const std::uint8_t* at = &picture[static_cast<std::size_t>(3 * (y * size.width + x))];
  return {at[0], at[1], at[2]};
}

const std::byte* Bytes(const void* record) {
  return static_cast<const std::byte*>(record);
}

TEST(CartPoleVectorTest, IsTheRecordItself) {
  const CartPoleRecord records[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  float view[8];
  ExpandVector(Bytes(records), 2, 0, view);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(view[i], static_cast<float>(i + 1));
}

TEST(CartPoleVectorTest, RecordThatNoEpisodeReachesIsNamed) {
  const float nan = std::nanf(""), infinity = INFINITY;
  CartPoleRecord records[2] = {{2.4F, -9.0F, 0.21F, 12.0F}, {-2.4F, 9.0F, -0.21F, -12.0F}};
  EXPECT_EQ(CheckCartPoleRecords(Bytes(records), 2), nullptr);
  for (const float wrong : {nan, -nan, infinity, -infinity, 3e38F, -3e38F}) {
    for (std::size_t i = 0; i < 8; ++i) {
      float floats[8] = {};
      floats[i] = wrong;
      EXPECT_NE(CheckCartPoleRecords(Bytes(floats), 2), nullptr) << wrong << " at " << i;
    }
  }
  EXPECT_EQ(CheckCartPoleRecords(nullptr, 0), nullptr);
}

Picture CartPole(const CartPoleRecord& record, int scale) {
  Picture picture(static_cast<std::size_t>(CartPoleRgbSize(scale).Bytes()));
  RenderCartPoleRgb(record, scale, picture.data());
  return picture;
}

TEST(CartPoleRgbTest, PoleStandsOnTheCartAndLeansToTheRightForPositiveAngles) {
  const RgbSize size = CartPoleRgbSize(4);
  EXPECT_EQ(size.height, 400);
  EXPECT_EQ(size.width, 600);
  Picture picture = CartPole({0, 0, 0, 0}, 4);
  EXPECT_EQ(At(picture, size, 300, 5), kBlack);    // the track
  EXPECT_EQ(At(picture, size, 310, 280), kBlack);  // the cart
  EXPECT_EQ(At(picture, size, 200, 300), kBrown);  // the pole
  EXPECT_EQ(At(picture, size, 200, 330), kWhite);
  picture = CartPole({0, 0, 0.5F, 0}, 4);
  EXPECT_EQ(At(picture, size, 200, 300), kWhite);
  EXPECT_EQ(At(picture, size, 300 - 88, 300 + 48), kBrown);
  picture = CartPole({-1.2F, 0, 0, 0}, 4);
  EXPECT_EQ(At(picture, size, 200, 150), kBrown);
}

TEST(CartPoleRgbTest, AnythingBeyondThePictureIsDrawnAtItsEdgeOrAsZero) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(CartPole({nan, 0, inf, 0}, 1), CartPole({0, 0, 0, 0}, 1));
  EXPECT_EQ(CartPole({1e30F, 0, 0, 0}, 1), CartPole({2.4F, 0, 0, 0}, 1));
  EXPECT_NE(CartPole({1e30F, 0, 3e38F, 0}, 1), CartPole({0, 0, 0, 0}, 1));
}

TEST(CartPoleTextTest, PoleStandsOnACartThatNeverLeavesItsTrack) {
  const std::string text = RenderCartPoleText({1.2F, 0, 0.1F, 0});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  EXPECT_NE(
      text.find("\n" + std::string(36, '-') + "#------------\nx +1.200 m  angle +5.73 degrees\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find('|'), 37U) << "the tip leans to the right";
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const float odd : {nan, inf, -inf, 3e38F, -3e38F}) {
    const std::string drawn = RenderCartPoleText({odd, odd, odd, odd});
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '#'), 1);
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\n'), 7);
  }
}

}  // namespace
}  // namespace tetrion
