#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/envs/picture.h"

namespace tetrion {

// A picture for a GIF, drawn with the few colours of charts and with ramps for numbers. One thread.
// What would lie outside is cut off.
class Canvas {
 public:
  // Named colours; ramps follow them in the palette.
  enum Colour : std::uint8_t { kBlack, kWhite, kDim, kReal, kDreamt, kError, kStill, kContext };
  static std::span<const PictureColour> Palette();
  // Black to white for 0..1.
  static std::uint8_t Grey(float value);
  // Blue below 0, black at 0, red above it, for -1..1.
  static std::uint8_t Difference(float value);

  // Text: capital letters, digits and " .:-/", any other character is a space.
  static constexpr int kTextHeight = 10, kTextWidth = 8;  // pixels, of a character

  explicit Canvas(const RgbSize& size);
  const RgbSize& size() const { return size_; }
  std::span<const std::uint8_t> pixels() const { return pixels_; }

  void Clear();
  void Box(int left, int top, int width, int height, std::uint8_t colour);
  void Frame(int left, int top, int width, int height, std::uint8_t colour);
  void Line(int x0, int y0, int x1, int y1, std::uint8_t colour);
  void Text(int left, int top, std::string_view text, std::uint8_t colour);

 private:
  void Put(int x, int y, std::uint8_t colour);

  const RgbSize size_;
  std::vector<std::uint8_t> pixels_;  // [height, width] places in the palette
};

}  // namespace tetrion
