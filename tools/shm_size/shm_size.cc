#include "tools/shm_size/shm_size.h"

#include "lib/inference/stream_layout.h"
#include "lib/nn/conv.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/network.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/spsc_ring.h"
#include "lib/weights/learner_region.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

// Of the weights that actors take, as Trainer::PolicyBlobBytes has them.
std::size_t WeightsBytes(const RunConfig& run) {
  const EnvSpec env = EnvSpecOf(run);
  if (run.algo == "dreamer") return ActingFloats(ModelShapeOf(env, run.dreamer)) * sizeof(float);
  if (ResolveNetworkName(run.network, env) == "conv") {
    return FloatsOf(ConvLayout(env)) * sizeof(float);  // also where it cannot be made
  }
  return MakeNetwork({.name = run.network, .seed = run.seed, .scorer_units = run.scorer_units}, env)
      ->parameters()
      .size_bytes();
}

}  // namespace

std::uint64_t ShmSize::VolumeMib() const {
  return (TotalBytes() + TotalBytes() / 4 + kMib - 1) / kMib;
}

ShmSize ShmSizeOf(const RunConfig& run, bool streamed) {
  const StreamLayout layout(RowLayout(RowSpecOf(run)), static_cast<std::uint64_t>(run.ring_rows));
  return {.learner_bytes = LearnerRegion::BytesFor(WeightsBytes(run)),
          .worker_bytes = streamed ? layout.region_bytes : RingRegionBytes(layout.obs),
          .workers = static_cast<std::uint64_t>(run.max_workers)};
}

std::string ShmSizeText(const ShmSize& size) {
  return "learner's region  " + std::to_string(size.learner_bytes) + " bytes\n" +
         "a worker's region " + std::to_string(size.worker_bytes) + " bytes, " +
         std::to_string(size.workers) + " of them (--max-workers)\n" + "all of them       " +
         std::to_string(size.TotalBytes()) + " bytes\n" +
         "volume            size=" + std::to_string(size.VolumeMib()) +
         "m (in compose TETRION_SHM_SIZE=" + std::to_string(size.VolumeMib()) +
         "m; in Kubernetes sizeLimit: " + std::to_string(size.VolumeMib()) + "Mi)\n";
}

}  // namespace tetrion
