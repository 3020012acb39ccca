#include "lib/nn/dreamer/update_kernels.h"

#include "lib/core/check.h"

namespace tetrion {
namespace {

struct Current {
  UpdateKernels* kernels = nullptr;
  int not_zero = 1;  // see tests/tidy/rules.py, thread_local
};
thread_local Current current = {};

}  // namespace

UpdateKernelsScope::UpdateKernelsScope(UpdateKernels& kernels) {
  TETRION_CHECK(current.kernels == nullptr, "one scope of kernels at a time");
  current.kernels = &kernels;
}

UpdateKernelsScope::~UpdateKernelsScope() {
  current.kernels = nullptr;
}

UpdateKernels* CurrentUpdateKernels() {
  return current.kernels;
}

}  // namespace tetrion
