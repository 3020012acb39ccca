#pragma once

#include <string>

namespace tetrion {

// docs/metrics.md: every metric of the catalog and every figure of the status.
std::string GenerateMetricsDoc();

}  // namespace tetrion
