#include "lib/rl/parameter_tensors.h"

#include "lib/core/error.h"

namespace tetrion {

void AppendTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                   std::span<const float> values, TrainerState& state) {
  for (const ParameterInfo& info : layout) {
    const std::span<const float> piece = values.subspan(info.offset, info.size);
    state.tensors.push_back({prefix + info.name, info.shape, {piece.begin(), piece.end()}});
  }
}

void ReadTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                 const TrainerState& state, std::span<float> values) {
  for (const ParameterInfo& info : layout) {
    ReadTensor(state, prefix + info.name, info.shape, values.subspan(info.offset, info.size));
  }
}

std::int64_t ReadUpdates(const TrainerState& state) {
  const auto updates = state.counters.find(kUpdatesCounter);
  if (updates == state.counters.end() || updates->second < 0) {
    throw Error(ExitCode::kConfig,
                "the checkpoint has no counter \"updates\": it is not a trainer's");
  }
  return updates->second;
}

}  // namespace tetrion
