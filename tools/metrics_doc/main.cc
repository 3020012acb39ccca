// Prints docs/metrics.md.
#include <cstdio>

#include "tools/metrics_doc/metrics_doc.h"

int main() {
  return std::fputs(tetrion::GenerateMetricsDoc().c_str(), stdout) < 0 ? 1 : 0;
}
