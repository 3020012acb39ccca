#pragma once

#include <cstdint>

namespace tetrion {

// Every colour that a picture of an environment has: red, green, blue. 0-8 are those of Tetris'
// cell values (free, bedrock, I O T S Z J L), then locked cells of unknown colour, white, the brown
// of CartPole's pole. A GIF's palette, so at most 16.
inline constexpr std::uint8_t kPictureColours[12][3] = {
    {0, 0, 0},   {128, 128, 128}, {0, 240, 240}, {240, 240, 0},   {160, 0, 240},   {0, 240, 0},
    {240, 0, 0}, {0, 0, 240},     {240, 160, 0}, {192, 192, 192}, {255, 255, 255}, {202, 152, 101}};

// Size of a picture: u8 [height, width, 3], red, green, blue, row-major, top left first.
struct RgbSize {
  int height = 0;  // pixels
  int width = 0;   // pixels
  constexpr std::int64_t Bytes() const { return std::int64_t{3} * height * width; }
};

// A copy of an entry of kPictureColours: no byte that is written can be one of it.
struct PictureColour {
  std::uint8_t red, green, blue;
};
constexpr PictureColour PictureColourOf(int index) {
  const std::uint8_t* colour = kPictureColours[index];
  return {colour[0], colour[1], colour[2]};
}

// Writes a pixel and returns where the next one goes.
inline std::uint8_t* PutPixel(PictureColour colour, std::uint8_t* to) {
  to[0] = colour.red;
  to[1] = colour.green;
  to[2] = colour.blue;
  return to + 3;
}

}  // namespace tetrion
