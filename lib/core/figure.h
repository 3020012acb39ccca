#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// Figures: the numbers that heartbeats carry, /status shows, metrics.jsonl keeps, console and plot
// draw. Each is declared once, in the table of the part that makes it, and is named from there.
namespace tetrion {

// Everything points to static storage.
struct FigureInfo {
  std::string_view name;  // its key in the status
  std::string_view unit;
  std::string_view help = {};  // empty where a whole metric shows the same value: that one's then
  // The metric that shows the same value, and the value of its label; empty: none.
  std::string_view metric = {}, label = {};
  bool in_status = true;        // false: only the process that makes it looks at it
  bool of_the_present = false;  // true: says nothing once the process that makes it has gone
};

// Whether each of these figures is explained once: by itself, or by its metric, unless it is one
// label's; for static_assert.
consteval bool ExplainedOnce(std::span<const FigureInfo> figures) {
  return std::ranges::all_of(figures, [](const FigureInfo& figure) {
    const bool by_metric = !figure.metric.empty() && figure.label.empty();
    return figure.help.empty() == by_metric;
  });
}

// A figure of `kTable`, an array of FigureInfo, by name; an unknown name does not compile.
template <const auto& kTable>
class FigureOf {
 public:
  consteval FigureOf(const char* name) : index_(Find(name)) {}  // NOLINT: implicit by intent
  // Its place in the table, and so among the table's values.
  constexpr std::size_t index() const { return index_; }
  constexpr const FigureInfo& info() const { return kTable[index_]; }

 private:
  static consteval std::size_t Find(std::string_view name) {
    std::size_t i = 0;
    while (kTable[i].name != name) ++i;  // past the end: not a constant expression
    return i;
  }
  std::size_t index_;
};

// A value for every figure of a table, 0 until it is set.
template <const auto& kTable>
class FigureValues {
 public:
  double& operator[](FigureOf<kTable> figure) { return values_[figure.index()]; }
  double operator[](FigureOf<kTable> figure) const { return values_[figure.index()]; }
  // In the table's order.
  std::span<const double> all() const { return values_; }

 private:
  std::array<double, std::size(kTable)> values_{};
};

}  // namespace tetrion
