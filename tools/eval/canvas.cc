#include "tools/eval/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tetrion {
namespace {

constexpr PictureColour kNamed[] = {{0, 0, 0},       {255, 255, 255}, {90, 90, 90},
                                    {120, 200, 255}, {255, 170, 0},   {255, 60, 60},
                                    {150, 150, 150}, {70, 140, 70}};
constexpr int kGreys = 64, kHalf = 32;  // steps of the ramps; kHalf each way
constexpr int kFirstGrey = static_cast<int>(std::size(kNamed));
constexpr int kNoDifference = kFirstGrey + kGreys + kHalf;

constexpr int kGlyphRows = 5, kGlyphColumns = 3, kDot = 2;  // pixels a dot
static_assert(Canvas::kTextHeight == kGlyphRows * kDot);
static_assert(Canvas::kTextWidth == (kGlyphColumns + 1) * kDot);

// A glyph's rows from the top, an octal digit each, whose bits are its columns.
struct Glyph {
  char character;
  int rows;
};
constexpr Glyph kGlyphs[] = {
    {'0', 075557}, {'1', 026227}, {'2', 071747}, {'3', 071717}, {'4', 055711}, {'5', 074717},
    {'6', 074757}, {'7', 071122}, {'8', 075757}, {'9', 075717}, {'A', 025755}, {'B', 065656},
    {'C', 034443}, {'D', 065556}, {'E', 074647}, {'F', 074644}, {'G', 034553}, {'H', 055755},
    {'I', 072227}, {'J', 011152}, {'K', 055655}, {'L', 044447}, {'M', 057755}, {'N', 075555},
    {'O', 025552}, {'P', 065644}, {'Q', 025573}, {'R', 065655}, {'S', 034216}, {'T', 072222},
    {'U', 055557}, {'V', 055552}, {'W', 055775}, {'X', 055255}, {'Y', 055222}, {'Z', 071247},
    {'.', 000002}, {'-', 000700}, {':', 002020}, {'/', 011244}};

int RowsOf(char character) {
  for (const Glyph& glyph : kGlyphs) {
    if (glyph.character == character) return glyph.rows;
  }
  return 0;
}

std::uint8_t Level(double share) {
  return static_cast<std::uint8_t>(std::lround(255 * share));
}

}  // namespace

std::span<const PictureColour> Canvas::Palette() {
  static const std::vector<PictureColour> palette = [] {
    std::vector<PictureColour> colours(std::begin(kNamed), std::end(kNamed));
    for (int i = 0; i < kGreys; ++i) {
      const std::uint8_t level = Level(i / (kGreys - 1.0));
      colours.push_back({level, level, level});
    }
    for (int i = -kHalf; i <= kHalf; ++i) {
      const std::uint8_t level = Level(std::abs(i) / static_cast<double>(kHalf));
      const auto mixed = static_cast<std::uint8_t>(level / 3);
      colours.push_back(i < 0 ? PictureColour{mixed, mixed, level}
                              : PictureColour{level, mixed, mixed});
    }
    return colours;
  }();
  return palette;
}

std::uint8_t Canvas::Grey(float value) {
  const float share = std::isfinite(value) ? std::clamp(value, 0.0F, 1.0F) : 0.0F;
  return static_cast<std::uint8_t>(kFirstGrey + std::lround(share * (kGreys - 1)));
}

std::uint8_t Canvas::Difference(float value) {
  const float share = std::isfinite(value) ? std::clamp(value, -1.0F, 1.0F) : 1.0F;
  return static_cast<std::uint8_t>(kNoDifference + std::lround(share * kHalf));
}

Canvas::Canvas(const RgbSize& size)
    : size_(size),
      pixels_(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width)) {}

void Canvas::Clear() {
  std::fill(pixels_.begin(), pixels_.end(), kBlack);
}

void Canvas::Put(int x, int y, std::uint8_t colour) {
  if (x < 0 || y < 0 || x >= size_.width || y >= size_.height) return;
  pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(size_.width) +
          static_cast<std::size_t>(x)] = colour;
}

void Canvas::Box(int left, int top, int width, int height, std::uint8_t colour) {
  for (int y = top; y < top + height; ++y) {
    for (int x = left; x < left + width; ++x) Put(x, y, colour);
  }
}

void Canvas::Frame(int left, int top, int width, int height, std::uint8_t colour) {
  Box(left, top, width, 1, colour);
  Box(left, top + height - 1, width, 1, colour);
  Box(left, top, 1, height, colour);
  Box(left + width - 1, top, 1, height, colour);
}

void Canvas::Line(int x0, int y0, int x1, int y1, std::uint8_t colour) {
  const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    Put(x0 + static_cast<int>(std::lround(share * (x1 - x0))),
        y0 + static_cast<int>(std::lround(share * (y1 - y0))), colour);
  }
}

void Canvas::Text(int left, int top, std::string_view text, std::uint8_t colour) {
  for (const char character : text) {
    const int rows = RowsOf(character);
    for (int dot = 0; dot < kGlyphRows * kGlyphColumns; ++dot) {
      const int row = dot / kGlyphColumns, column = dot % kGlyphColumns;
      if ((rows >> (kGlyphRows * kGlyphColumns - 1 - dot) & 1) == 0) continue;
      Box(left + column * kDot, top + row * kDot, kDot, kDot, colour);
    }
    left += kTextWidth;
  }
}

}  // namespace tetrion
