// Prints docs/metrics.md.
#include <cstdio>

#include "lib/metrics/catalog.h"

int main() {
  return std::fputs(tetrion::GenerateMetricsDoc().c_str(), stdout) < 0 ? 1 : 0;
}
