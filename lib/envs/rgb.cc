#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/envs/gym_views.h"

namespace tetrion {
namespace {

// A copy of an entry of kPictureColours: no byte that is written can be one of it.
struct Colour {
  std::uint8_t red, green, blue;
};

constexpr int kFree = 0, kWhite = 10, kBrown = 11;

Colour ColourOf(int index) {
  const std::uint8_t* colour = kPictureColours[index];
  return {colour[0], colour[1], colour[2]};
}

std::uint8_t* PutPixel(Colour colour, std::uint8_t* to) {
  to[0] = colour.red;
  to[1] = colour.green;
  to[2] = colour.blue;
  return to + 3;
}

// Writes one picture row of `width` cells, `scale` pixels each, `scale` times.
void PaintRow(const std::uint8_t* cells, int width, int scale, std::uint8_t* out) {
  const std::size_t stride = static_cast<std::size_t>(3) * static_cast<std::size_t>(width) *
                             static_cast<std::size_t>(scale);
  std::uint8_t* to = out;
  for (int c = 0; c < width; ++c) {
    // Values that no environment writes look like kUnknownColour.
    const Colour colour = ColourOf(std::min<int>(cells[c], kUnknownColour));
    for (int i = 0; i < scale; ++i) to = PutPixel(colour, to);
  }
  for (int i = 1; i < scale; ++i)
    std::memcpy(out + static_cast<std::size_t>(i) * stride, out, stride);
}

float Finite(float value) {
  return std::isfinite(value) ? value : 0.0F;
}

// A point or direction in units of the CartPole picture, x to the right, y downwards.
struct Point {
  float x, y;
};

// Square of the distance from `at` to the line from `from` to `to`.
float SquaredDistance(Point at, Point from, Point to) {
  const float dx = to.x - from.x, dy = to.y - from.y;
  const float along = ((at.x - from.x) * dx + (at.y - from.y) * dy) / (dx * dx + dy * dy);
  const float t = std::clamp(along, 0.0F, 1.0F);
  const float ex = from.x + t * dx - at.x, ey = from.y + t * dy - at.y;
  return ex * ex + ey * ey;
}

constexpr float kUnitsPerMetre = 150 / 4.8F;  // the track of +-2.4 m is as wide as the picture
constexpr float kTrackY = 75;
constexpr float kCartHalfWidth = 6, kCartHalfHeight = 3.75F, kPoleHalfWidth = 1.25F;
constexpr float kPoleUnits = 1.0F * kUnitsPerMetre;  // twice the half length of 0.5 m

Colour CartPolePixel(Point at, Point cart, Point tip) {
  const bool in_pole = SquaredDistance(at, cart, tip) <= kPoleHalfWidth * kPoleHalfWidth;
  if (in_pole) return ColourOf(kBrown);
  const bool in_cart =
      std::abs(at.x - cart.x) <= kCartHalfWidth && std::abs(at.y - cart.y) <= kCartHalfHeight;
  const bool on_track = std::abs(at.y - kTrackY) <= 0.5F;
  return ColourOf(in_cart || on_track ? kFree : kWhite);
}

}  // namespace

void RenderRgb(const ColourRecord& record, int queue_size, int scale, std::uint8_t* out) {
  constexpr int kBoxRows = 4;
  std::uint8_t dict[DictLayout::Bytes(kTetrisMaxQueue)];
  ExpandDict(reinterpret_cast<const std::byte*>(&record), 1, queue_size, dict);
  const int side = 4 * queue_size, width = DictLayout::kColumns + side;
  std::uint8_t cells[DictLayout::kColumns + 4 * kTetrisMaxQueue];
  for (int r = 0; r < DictLayout::kRows; ++r) {
    std::copy_n(dict + DictLayout::kBoard + r * DictLayout::kColumns, DictLayout::kColumns, cells);
    std::uint8_t* right = cells + DictLayout::kColumns;
    std::fill_n(right, side, std::uint8_t{1});
    const int holder_row = r - (DictLayout::kRows - kBoxRows);
    if (r < kBoxRows) {
      std::copy_n(dict + DictLayout::kQueue + r * side, side, right);
    } else if (holder_row >= 0) {
      std::copy_n(dict + DictLayout::kHolder + 4 * holder_row, 4, right);
    }
    PaintRow(cells, width, scale, out);
    out += std::int64_t{3} * width * scale * scale;
  }
}

void RenderCartPoleRgb(const CartPoleRecord& record, int scale, std::uint8_t* out) {
  const RgbSize size = CartPoleRgbSize(scale);
  const float x = std::clamp(Finite(record.x), -2.4F, 2.4F), theta = Finite(record.theta);
  const Point cart = {75 + x * kUnitsPerMetre, kTrackY};
  const Point tip = {cart.x + kPoleUnits * std::sin(theta), cart.y - kPoleUnits * std::cos(theta)};
  const float unit = 1.0F / static_cast<float>(scale);
  for (int row = 0; row < size.height; ++row) {
    for (int column = 0; column < size.width; ++column) {
      const Point at = {(static_cast<float>(column) + 0.5F) * unit,
                        (static_cast<float>(row) + 0.5F) * unit};
      out = PutPixel(CartPolePixel(at, cart, tip), out);
    }
  }
}

}  // namespace tetrion
