#include "tools/eval/dream_picture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/core/check.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

constexpr int kMargin = 8, kTitle = Canvas::kTextHeight + 4;
constexpr int kChartWidth = 280, kChartHeight = 84, kErrorHeight = 72;

// How the floats of a view lie side by side.
struct Cells {
  int rows, columns;
  int scale;  // pixels a cell
};

bool IsBoard(const DreamtEpisode& episode) {
  return episode.input == DreamerInput::kPlanes && episode.floats >= PlanesLayout::kQueue;
}

// The board and, beside it, the active piece; what else there is lies below.
constexpr int kBoardsColumns = 2 * kTetrisColumns + 1;

Cells CellsOf(const DreamtEpisode& episode) {
  if (episode.input == DreamerInput::kPixels) return {kPictureRows, kPictureColumns, 2};
  if (IsBoard(episode)) {
    const int others = episode.floats - PlanesLayout::kActiveId;
    return {kTetrisRows + 1 + (others + kBoardsColumns - 1) / kBoardsColumns, kBoardsColumns, 9};
  }
  const int side = static_cast<int>(std::ceil(std::sqrt(episode.floats)));
  return {side, side, 9};
}

// Row and column of a float.
std::pair<int, int> CellOf(const DreamtEpisode& episode, const Cells& cells, int i) {
  if (!IsBoard(episode)) return {i / cells.columns, i % cells.columns};
  if (i < PlanesLayout::kActive) return {i / kTetrisColumns, i % kTetrisColumns};
  if (i < PlanesLayout::kActiveId) {
    const int cell = i - PlanesLayout::kActive;
    return {cell / kTetrisColumns, kTetrisColumns + 1 + cell % kTetrisColumns};
  }
  const int other = i - PlanesLayout::kActiveId;
  return {kTetrisRows + 1 + other / cells.columns, other % cells.columns};
}

// Floats whose numbers vary most over the rows, in their order.
std::vector<int> MostVaried(const DreamtEpisode& episode, int most) {
  std::vector<double> spread(static_cast<std::size_t>(episode.floats));
  for (int i = 0; i < episode.floats; ++i) {
    double sum = 0, square = 0;
    for (int row = 0; row < episode.rows; ++row) {
      const double x = episode.real[static_cast<std::size_t>(row * episode.floats + i)];
      sum += x;
      square += x * x;
    }
    spread[static_cast<std::size_t>(i)] = square - sum * sum / episode.rows;
  }
  std::vector<int> order(spread.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&spread](int a, int b) {
    return spread[static_cast<std::size_t>(a)] > spread[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

void MeasureDream(DreamtEpisode& episode) {
  const auto floats = static_cast<std::size_t>(episode.floats);
  const float* seen = &episode.real[static_cast<std::size_t>(episode.context - 1) * floats];
  episode.error.clear();
  episode.still.clear();
  for (int row = 0; row < episode.rows; ++row) {
    const std::size_t at = static_cast<std::size_t>(row) * floats;
    double error = 0, still = 0;
    for (std::size_t i = 0; i < floats; ++i) {
      error += std::abs(episode.dreamt.view[at + i] - episode.real[at + i]);
      still += std::abs(seen[i] - episode.real[at + i]);
    }
    episode.error.push_back(static_cast<float>(error / episode.floats));
    episode.still.push_back(static_cast<float>(still / episode.floats));
  }
}

DreamPicture::Layout DreamPicture::LayoutOf(const DreamtEpisode& episode) {
  Layout layout = {};
  if (episode.input == DreamerInput::kVector) {
    const int charts = std::min(episode.floats, kMostCharts);
    layout.columns = std::min(charts, 2);
    layout.rows = (charts + layout.columns - 1) / layout.columns;
    layout.first = {kMargin, 2 * kMargin + kTitle, kChartWidth, kChartHeight};
  } else {
    const Cells cells = CellsOf(episode);
    layout.columns = 3;
    layout.rows = 1;
    layout.first = {kMargin, 2 * kMargin + kTitle, cells.columns * cells.scale,
                    cells.rows * cells.scale};
  }
  const Area& first = layout.first;
  const int below = first.top + layout.rows * (kTitle + first.height + kMargin);
  const int width = layout.columns * (first.width + kMargin) + kMargin;
  layout.error = {kMargin, below + kTitle, width - 2 * kMargin, kErrorHeight};
  layout.size = {.height = layout.error.top + kErrorHeight + kMargin, .width = width};
  return layout;
}

DreamPicture::DreamPicture(const DreamtEpisode& episode)
    : episode_(episode),
      layout_(LayoutOf(episode)),
      charts_(MostVaried(episode, kMostCharts)),
      canvas_(layout_.size) {
  TETRION_CHECK(episode.error.size() == static_cast<std::size_t>(episode.rows),
                "a dream is measured before it is drawn");
}

std::span<const std::uint8_t> DreamPicture::Draw(int row) {
  const bool seen = row < episode_.context;
  canvas_.Clear();
  canvas_.Text(kMargin, kMargin,
               "ROW " + std::to_string(row) + (seen ? " SEEN" : " IMAGINED FROM THE ACTIONS"),
               seen ? Canvas::kContext : Canvas::kDreamt);
  if (episode_.input == DreamerInput::kVector) {
    DrawCharts(row);
  } else {
    DrawPanels(row);
  }
  float highest = 1e-6F;
  for (int i = 0; i < episode_.rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::isfinite(episode_.error[at])) highest = std::max(highest, episode_.error[at]);
    highest = std::max(highest, episode_.still[at]);
  }
  const Area& area = layout_.error;
  canvas_.Text(area.left, area.top - kTitle, "ERROR", Canvas::kError);
  canvas_.Text(area.left + 8 * Canvas::kTextWidth, area.top - kTitle, "IF NOTHING CHANGED",
               Canvas::kStill);
  DrawChart(area, {0, highest},
            std::vector<Curve>{{&episode_.still, 0, 1, Canvas::kStill},
                               {&episode_.error, 0, 1, Canvas::kError}},
            row);
  return canvas_.pixels();
}

void DreamPicture::DrawPanels(int row) {
  const Cells cells = CellsOf(episode_);
  const auto floats = static_cast<std::size_t>(episode_.floats);
  const float* real = &episode_.real[static_cast<std::size_t>(row) * floats];
  const float* dreamt = &episode_.dreamt.view[static_cast<std::size_t>(row) * floats];
  const char* const titles[] = {"REAL", "IMAGINED", "DIFFERENCE"};
  for (int panel = 0; panel < 3; ++panel) {
    const int left = layout_.first.left + panel * (layout_.first.width + kMargin);
    const int top = layout_.first.top + kTitle;
    canvas_.Text(left, layout_.first.top, titles[panel], Canvas::kWhite);
    canvas_.Frame(left - 1, top - 1, layout_.first.width + 2, layout_.first.height + 2,
                  Canvas::kDim);
    for (int i = 0; i < episode_.floats; ++i) {
      const auto [cell_row, cell_column] = CellOf(episode_, cells, i);
      const std::uint8_t colour = panel == 0   ? Canvas::Grey(real[i])
                                  : panel == 1 ? Canvas::Grey(dreamt[i])
                                               : Canvas::Difference(dreamt[i] - real[i]);
      canvas_.Box(left + cell_column * cells.scale, top + cell_row * cells.scale, cells.scale,
                  cells.scale, colour);
    }
  }
}

void DreamPicture::DrawCharts(int row) {
  const auto floats = static_cast<std::size_t>(episode_.floats);
  canvas_.Text(layout_.size.width - kMargin - 13 * Canvas::kTextWidth, kMargin, "REAL",
               Canvas::kReal);
  canvas_.Text(layout_.size.width - kMargin - 8 * Canvas::kTextWidth, kMargin, "IMAGINED",
               Canvas::kDreamt);
  for (std::size_t chart = 0; chart < charts_.size(); ++chart) {
    const auto at = static_cast<std::size_t>(charts_[chart]);
    const int column = static_cast<int>(chart) % layout_.columns;
    const int line = static_cast<int>(chart) / layout_.columns;
    Area area = layout_.first;
    area.left += column * (area.width + kMargin);
    area.top += line * (kTitle + area.height + kMargin) + kTitle;
    canvas_.Text(area.left, area.top - kTitle, std::to_string(at), Canvas::kWhite);
    float low = episode_.real[at], high = low;
    for (int i = 0; i < episode_.rows; ++i) {
      const float x = episode_.real[static_cast<std::size_t>(i) * floats + at];
      low = std::min(low, x);
      high = std::max(high, x);
    }
    // Room around what was, so that a line beside it is seen; one further away runs along the edge.
    const float room = std::max(0.25F * (high - low), 1e-3F);
    DrawChart(area, {low - room, high + room},
              std::vector<Curve>{{&episode_.real, at, floats, Canvas::kReal},
                                 {&episode_.dreamt.view, at, floats, Canvas::kDreamt}},
              row);
  }
}

void DreamPicture::DrawChart(const Area& area, const Range& range, std::span<const Curve> curves,
                             int row) {
  canvas_.Frame(area.left, area.top, area.width, area.height, Canvas::kDim);
  const auto x_of = [&](int at) {
    return area.left + 1 + (area.width - 3) * at / std::max(episode_.rows - 1, 1);
  };
  const auto y_of = [&](float value) {
    const float share = (value - range.low) / (range.high - range.low);
    const float inside = std::isfinite(share) ? std::clamp(share, 0.0F, 1.0F) : 1.0F;
    return area.top + 1 +
           static_cast<int>(std::lround((1 - inside) * static_cast<float>(area.height - 3)));
  };
  const int edge = x_of(episode_.context - 1);
  canvas_.Line(edge, area.top + 1, edge, area.top + area.height - 2, Canvas::kContext);
  for (const Curve& curve : curves) {
    const auto value = [&curve](int at) {
      return (*curve.numbers)[static_cast<std::size_t>(at) * curve.stride + curve.at];
    };
    for (int at = 0; at < row; ++at) {
      canvas_.Line(x_of(at), y_of(value(at)), x_of(at + 1), y_of(value(at + 1)), curve.colour);
    }
  }
}

}  // namespace tetrion
