#include "lib/nn/torch/profiler_guard.h"

#include <memory>
#include <set>
#include <utility>

#include "lib/core/check.h"
#include "lib/nn/torch/torch_pch.h"
// Apart: its includes do not pass our warnings either.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <torch/csrc/autograd/profiler_kineto.h>
#pragma GCC diagnostic pop

namespace tetrion {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

}  // namespace

bool NamesHostCopy(std::string_view activity) {
  constexpr std::string_view kCopy = "Memcpy ";
  if (!activity.starts_with(kCopy)) return false;
  activity.remove_prefix(kCopy.size());
  // HtoD, DtoH, HtoA, AtoH, HtoH; DtoD and PtoP stay on devices.
  const std::string_view ways = activity.substr(0, activity.find(' '));
  return ways.starts_with('H') || ways.ends_with('H');
}

ProfilerGuard::ProfilerGuard() {
  const profiler::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
}

ProfilerGuard::~ProfilerGuard() {
  if (watching_) static_cast<void>(profiler::disableProfiler());
}

std::vector<std::string> ProfilerGuard::Violations() {
  TETRION_CHECK(std::exchange(watching_, false), "a guarded region ends once");
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  std::vector<std::string> violations;
  bool saw_kernel = false;
  for (const profiler::KinetoEvent& event : result->events()) {
    const std::string name = event.name();
    if (NamesHostCopy(name)) violations.push_back("torch recorded " + name);
    saw_kernel = saw_kernel || (event.deviceType() == c10::DeviceType::CUDA &&
                                !name.starts_with("Mem"));  // Memcpy, Memset
  }
  if (!saw_kernel) violations.emplace_back("torch recorded no kernel: nothing was watched");
  return violations;
}

}  // namespace tetrion
