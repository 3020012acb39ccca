#include "services/learner/host_copies.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/cuda/activity.h"

namespace tetrion::learner {
namespace {

struct Series {
  HotCounter* counter;
  cuda::CopyDirection direction;
  cuda::CopyPurpose purpose;
};

std::uint64_t CopiesOf(const cuda::Activity& activity, const Series& series) {
  std::uint64_t copies = 0;
  for (std::size_t kind = 0; kind < cuda::kMemoryKinds; ++kind) {
    copies +=
        activity.Of(series.direction, static_cast<cuda::MemoryKind>(kind), series.purpose).copies;
  }
  return copies;
}

}  // namespace

void ServeHostCopies(MetricsRegistry& registry) {
  std::vector<Series> all;
  for (const auto direction :
       {cuda::CopyDirection::kHostToDevice, cuda::CopyDirection::kDeviceToHost}) {
    for (std::size_t i = 0; i < cuda::kCopyPurposes; ++i) {
      const auto purpose = static_cast<cuda::CopyPurpose>(i);
      std::string label = cuda::Name(direction);
      std::replace(label.begin(), label.end(), ' ', '_');
      all.push_back(
          {&registry.Counter("tetrion_cuda_host_copies_total", {label, cuda::Name(purpose)}),
           direction, purpose});
    }
  }
  // Scrapes come one at a time, so that every counter has one writer.
  registry.OnScrape([all] {
    const cuda::Activity activity = cuda::ProcessActivity().Read();
    for (const Series& series : all) {
      series.counter->RaiseTo(static_cast<double>(CopiesOf(activity, series)));
    }
  });
}

}  // namespace tetrion::learner
