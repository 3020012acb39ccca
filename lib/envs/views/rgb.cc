#include <algorithm>
#include <cstring>

#include "lib/envs/views/gym_views.h"

namespace tetrion {
namespace {

// Writes one picture row of `width` cells, `scale` pixels each, `scale` times.
void PaintRow(const std::uint8_t* cells, int width, int scale, std::uint8_t* out) {
  const std::size_t stride = static_cast<std::size_t>(3) * static_cast<std::size_t>(width) *
                             static_cast<std::size_t>(scale);
  std::uint8_t* to = out;
  for (int c = 0; c < width; ++c) {
    // Values that no environment writes look like kUnknownColour.
    const PictureColour colour = PictureColourOf(std::min<int>(cells[c], kUnknownColour));
    for (int i = 0; i < scale; ++i) to = PutPixel(colour, to);
  }
  for (int i = 1; i < scale; ++i)
    std::memcpy(out + static_cast<std::size_t>(i) * stride, out, stride);
}

}  // namespace

void RenderRgb(const ColourRecord& record, int queue_size, int scale, std::uint8_t* out) {
  constexpr int kBoxRows = 4;
  std::uint8_t dict[DictLayout::Bytes(kTetrisMaxQueue)];
  ExpandDict(reinterpret_cast<const std::byte*>(&record), 1, queue_size, dict);
  const int queue = 4 * queue_size, side = RgbSideCells(queue_size);
  const int width = DictLayout::kColumns + side;
  std::uint8_t cells[DictLayout::kColumns + 4 * kTetrisMaxQueue];
  for (int r = 0; r < DictLayout::kRows; ++r) {
    std::copy_n(dict + DictLayout::kBoard + r * DictLayout::kColumns, DictLayout::kColumns, cells);
    std::uint8_t* right = cells + DictLayout::kColumns;
    std::fill_n(right, side, std::uint8_t{1});
    const int holder_row = r - (DictLayout::kRows - kBoxRows);
    if (r < kBoxRows) {
      std::copy_n(dict + DictLayout::kQueue + r * queue, queue, right);
    } else if (holder_row >= 0) {
      std::copy_n(dict + DictLayout::kHolder + 4 * holder_row, 4, right);
    }
    PaintRow(cells, width, scale, out);
    out += std::int64_t{3} * width * scale * scale;
  }
}

}  // namespace tetrion
