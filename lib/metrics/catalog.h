#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/metrics/catalog_table.h"

namespace tetrion {

// A catalog entry by name; an unknown name does not compile.
class MetricRef {
 public:
  consteval MetricRef(const char* name) : index_(Find(name)) {}  // NOLINT: implicit by intent
  constexpr std::size_t index() const { return index_; }
  constexpr const MetricInfo& info() const { return kCatalog[index_]; }

 private:
  static consteval std::size_t Find(std::string_view name) {
    std::size_t i = 0;
    while (kCatalog[i].name != name) ++i;  // past the end: not a constant expression
    return i;
  }
  std::size_t index_;
};

// "counter", "gauge", "histogram".
const char* MetricTypeName(MetricType type);
// docs/metrics.md.
std::string GenerateMetricsDoc();

}  // namespace tetrion
