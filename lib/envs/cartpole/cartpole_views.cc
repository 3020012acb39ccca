#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "lib/envs/cartpole/cartpole.h"
#include "lib/envs/picture.h"

namespace tetrion {
namespace {

constexpr int kFree = 0, kWhite = 10, kBrown = 11;  // of kPictureColours

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

PictureColour CartPolePixel(Point at, Point cart, Point tip) {
  const bool in_pole = SquaredDistance(at, cart, tip) <= kPoleHalfWidth * kPoleHalfWidth;
  if (in_pole) return PictureColourOf(kBrown);
  const bool in_cart =
      std::abs(at.x - cart.x) <= kCartHalfWidth && std::abs(at.y - cart.y) <= kCartHalfHeight;
  const bool on_track = std::abs(at.y - kTrackY) <= 0.5F;
  return PictureColourOf(in_cart || on_track ? kFree : kWhite);
}

}  // namespace

void ExpandVector(const std::byte* records, std::int64_t n, int /*queue_size*/, float* out) {
  std::memcpy(out, records, static_cast<std::size_t>(n) * sizeof(CartPoleRecord));
}

const char* CheckCartPoleRecords(const std::byte* records, std::int64_t n) {
  // The track ends at 2.4 m and the pole falls at 0.2 rad: nothing becomes nearly as fast. A float
  // that is merely finite could still overflow in the network.
  constexpr float kMost = 1000.0F;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  bool good = true;
  for (std::int64_t at = 0; at < n * static_cast<std::int64_t>(sizeof(CartPoleRecord));
       at += kBytes) {
    float value;
    std::memcpy(&value, records + at, sizeof value);
    good &= std::fabs(value) <= kMost;  // false for NaN
  }
  return good ? nullptr : "an observation is not finite or out of all bounds";
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

std::string RenderCartPoleText(const CartPoleRecord& record) {
  constexpr int kMiddle = 24;  // characters from the track's middle to where the cart leaves it
  constexpr int kPoleLines = 5;
  const auto column = [](double at) {
    return static_cast<std::size_t>(std::clamp(std::nearbyint(at), 0.0, 2.0 * kMiddle));
  };
  const double x = Finite(record.x), theta = Finite(record.theta);
  const std::size_t cart = column((x / 2.4 + 1) * kMiddle);
  std::string text;
  for (int height = kPoleLines; height > 0; --height) {
    // A line is as high as two characters are wide.
    text += std::string(column(static_cast<double>(cart) + 2 * height * std::sin(theta)), ' ');
    text += "|\n";
  }
  std::string track(2 * kMiddle + 1, '-');
  track[cart] = '#';
  char numbers[160];
  constexpr double kDegrees = 180 / 3.141592653589793;
  std::snprintf(numbers, sizeof numbers, "\nx %+.3f m  angle %+.2f degrees\n", x, theta * kDegrees);
  return text + track + numbers;
}

}  // namespace tetrion
