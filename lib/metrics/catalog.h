#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// What an entry of the catalog is and how it is found; the entries stand in catalog_table.h, which
// callers include.
namespace tetrion {

enum class MetricType { kCounter, kGauge, kHistogram };

// Bucket bounds; the +Inf bucket is implied.
inline constexpr std::array kSecondsBounds = {1e-6,   1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3,
                                              2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1,
                                              0.25,   0.5,  1.0,  2.5,    10.0};
inline constexpr std::array kVersionsBounds = {0.0,  1.0,  2.0,  4.0,   8.0,
                                               16.0, 32.0, 64.0, 128.0, 256.0};
inline constexpr std::array kReturnBounds = {
    -10.0, -1.0,  0.0,   1.0,    2.0,    5.0,     10.0,    20.0,    50.0,    100.,
    200.0, 500.0, 1000., 2000.0, 5000.0, 10000.0, 20000.0, 50000.0, 100000.0};
inline constexpr std::array kStepsBounds = {10.,   20.,   50.,   100.,   200.,   500.,
                                            1000., 2000., 5000., 10000., 20000., 50000.};
inline constexpr std::array kLinesBounds = {0.,   1.,   2.,   5.,    10.,   20.,  50.,
                                            100., 200., 500., 1000., 2000., 5000.};

// One metric. Everything points to static storage.
struct MetricInfo {
  std::string_view name, help;
  MetricType type = MetricType::kGauge;
  std::string_view unit;
  std::array<std::string_view, 2> labels{};  // names; empty: none. Their values must be few.
  std::span<const double> bounds{};          // histograms only
  constexpr std::size_t LabelCount() const { return labels[1].empty() ? !labels[0].empty() : 2; }
};

constexpr MetricInfo CounterInfo(std::string_view name, std::string_view unit,
                                 std::array<std::string_view, 2> labels, std::string_view help) {
  return {name, help, MetricType::kCounter, unit, labels, {}};
}
constexpr MetricInfo GaugeInfo(std::string_view name, std::string_view unit,
                               std::array<std::string_view, 2> labels, std::string_view help) {
  return {name, help, MetricType::kGauge, unit, labels, {}};
}
constexpr MetricInfo HistogramInfo(std::string_view name, std::string_view unit,
                                   std::array<std::string_view, 2> labels,
                                   std::span<const double> bounds, std::string_view help) {
  return {name, help, MetricType::kHistogram, unit, labels, bounds};
}

// A catalog entry by name; an unknown name does not compile.
class MetricRef {
 public:
  consteval MetricRef(const char* name) : MetricRef(Named(name)) {}  // NOLINT: implicit by intent
  // For names that tables hold. CHECKs, or does not compile, that the catalog has it.
  static constexpr MetricRef Named(std::string_view name);
  constexpr std::size_t index() const { return index_; }
  constexpr const MetricInfo& info() const;

 private:
  constexpr explicit MetricRef(std::size_t index) : index_(index) {}
  std::size_t index_;
};

}  // namespace tetrion
