#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/dreamer/dreamer_dream.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "tools/eval/canvas.h"

namespace tetrion {

// An episode as it was and as a world model had it.
struct DreamtEpisode {
  DreamerInput input = DreamerInput::kVector;
  int rows = 0, floats = 0;
  int context = 0;          // rows that the model saw
  std::vector<float> real;  // [rows, floats]
  DreamtRows dreamt;
  // [rows] mean over the floats of |dreamt - real|, and of |last row seen - real|.
  std::vector<float> error, still;
};
// Fills in `error` and `still`.
void MeasureDream(DreamtEpisode& episode);

// Draws its rows, a frame each: pictures and planes as they were, as they were imagined, and the
// difference; of other views a chart for each number, at most kMostCharts of those that vary most.
// Below: the error of every row so far. `episode` outlives it. One thread.
class DreamPicture {
 public:
  static constexpr int kMostCharts = 16;

  explicit DreamPicture(const DreamtEpisode& episode);

  const RgbSize& size() const { return canvas_.size(); }
  // [height, width] places in Canvas::Palette, valid until the next call.
  std::span<const std::uint8_t> Draw(int row);

 private:
  struct Area {
    int left, top, width, height;
  };
  // A line of a chart: `numbers` [rows], every `stride`-th float from `at` on.
  struct Curve {
    const std::vector<float>* numbers;
    std::size_t at, stride;
    std::uint8_t colour;
  };
  struct Range {
    float low, high;
  };
  struct Layout {
    RgbSize size;
    int columns, rows;  // of panels or of charts
    Area first;         // of them
    Area error;
  };

  static Layout LayoutOf(const DreamtEpisode& episode);
  void DrawPanels(int row);
  void DrawCharts(int row);
  void DrawChart(const Area& area, const Range& range, std::span<const Curve> curves, int row);

  const DreamtEpisode& episode_;
  const Layout layout_;
  std::vector<int> charts_;  // floats that have one
  Canvas canvas_;
};

}  // namespace tetrion
