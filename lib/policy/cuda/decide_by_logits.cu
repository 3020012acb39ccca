#include "lib/policy/cuda/decide_by_logits.h"

#include <cmath>

#include "lib/cuda/launch.h"
#include "lib/nn/categorical.h"
#include "lib/policy/cuda/lane_draw.cuh"
#include "lib/policy/cuda/lane_logits.cuh"

namespace tetrion {

// By logits [A, M] f32: a draw from their softmax, or with `greedy` the most probable action. Where
// they are not finite every legal action is equally likely, which the log-probability says too.
__global__ void DecideByLogits(DecidedRow row, cuda::DeviceSpan<const float> logits, bool greedy,
                               NotFiniteCount* not_finite) {
  const std::size_t lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= row.slots.lanes) return;
  const RowView view = row.slots.At(*row.row);
  if (lane == 0) view.header->policy_version = *row.version;
  UniformChoice choice;
  if ((view.flags[lane] & kIsLast) == 0) {
    const LaneLogits own = {logits.data() + lane, row.slots.lanes,
                            view.mask != nullptr ? view.mask[lane] : ~std::uint64_t{0}};
    bool finite = true;
    for (std::int32_t a = 0; a < row.actions; ++a) finite &= std::isfinite(own[a]);
    const std::uint32_t word = DrawOf(row, lane).word[0];
    if (finite) {
      const float log_normaliser = LogNormaliser(own, row.actions);
      choice.action = greedy ? MostProbable(own, row.actions)
                             : SampleCategorical(own, row.actions, log_normaliser, UnitDraw(word));
      choice.log_prob = own[choice.action] - log_normaliser;
    } else {
      choice = ChooseUniformly(row, view, lane, word);
      const unsigned long long mark = *row.row + 1;
      if (atomicExch(&not_finite->last, mark) != mark) atomicAdd(&not_finite->rows, 1ULL);
    }
  }
  view.action[lane] = choice.action;
  view.log_prob[lane] = choice.log_prob;
}

void LaunchDecideByLogits(const DecidedRow& row, cuda::DeviceSpan<const float> logits, bool greedy,
                          NotFiniteCount* not_finite, cuda::Stream& stream) {
  cuda::Launch(stream, DecideByLogits, DecideBlocks(row), kDecideThreads, 0, row, logits, greedy,
               not_finite);
}

}  // namespace tetrion
