#pragma once

#include <cmath>

#include "lib/cuda/kernel.h"
#include "lib/frame/row_slots.h"
#include "lib/nn/categorical.h"
#include "lib/nn/cuda/block_sum.cuh"
#include "lib/nn/cuda/dreamer_weights.h"
#include "lib/nn/dreamer/draw_latents.h"
#include "lib/nn/dreamer/mix_legal.h"

// One step of DreamerV3's acting (lib/nn/dreamer), a block a lane: the state takes in the lane's
// last action and its view, and gives the actor's logits. A thread computes outputs t, t + threads,
// ... of a layer and reads weights [in, out] coalesced; what layers hand on lies in `scratch`, a
// slice of device memory for each lane, so that a model of any size fits.
//
// Numeric policy: f32; products are added in the order of the inputs. Norms and softmax with the
// device's functions, where the CPU takes approximations within 2e-7.

namespace tetrion {

inline constexpr unsigned kDreamerThreads = 128;

template <typename T>
__device__ inline cuda::DeviceSpan<T> SliceOf(const cuda::DeviceSpan<T>& span, std::size_t first,
                                              std::size_t count) {
  return cuda::DeviceSpan<T>(span.data() + first, count);
}

// x [count] = silu(norm(x)) in place; the block waits for x before and for the result behind it.
__device__ inline void NormSilu(const DreamerLayer& layer, const cuda::DeviceSpan<float>& x,
                                unsigned count) {
  const bool centred = layer.shift.size() > 0;
  __syncthreads();
  float mean = 0.0F;
  if (centred) {
    mean = BlockSum<kDreamerThreads>(count, [&](unsigned i) { return x[i]; }) /
           static_cast<float>(count);
  }
  const float squares =
      BlockSum<kDreamerThreads>(count, [&](unsigned i) { return (x[i] - mean) * (x[i] - mean); });
  const float factor = 1.0F / std::sqrt(squares / static_cast<float>(count) + kNormEpsilon);
  for (unsigned i = threadIdx.x; i < count; i += kDreamerThreads) {
    const float shift = centred ? layer.shift[i] : 0.0F;
    const float y = (x[i] - mean) * factor * layer.scale[i] + shift;
    x[i] = y / (1.0F + std::exp(-y));
  }
  __syncthreads();
}

// The products of `count` inputs with output `unit` of `width`, whose weights begin at row `first`.
template <typename In>
__device__ inline float Products(const cuda::DeviceSpan<const float>& weight, std::size_t first,
                                 unsigned count, unsigned width, unsigned unit, const In& in) {
  float sum = 0.0F;
  for (unsigned i = 0; i < count; ++i) sum += in(i)*weight[(first + i) * width + unit];
  return sum;
}

// A linear layer from `in`(i), i below `count`, to out [width].
template <typename In>
__device__ inline void Linear(const DreamerLayer& layer, const In& in, unsigned count,
                              const cuda::DeviceSpan<float>& out, unsigned width) {
  for (unsigned u = threadIdx.x; u < width; u += kDreamerThreads) {
    out[u] = layer.bias[u] + Products(layer.weight, 0, count, width, u, in);
  }
}

// A lane's state, which the step replaces: deter with the recurrent unit, stoch with the draw.
struct LaneState {
  cuda::DeviceSpan<float> deter;         // [D]
  cuda::DeviceSpan<std::uint8_t> stoch;  // [S]
  std::int32_t action;                   // taken last
  bool fresh;                            // the step begins from zeros
  // What deter was before the step.
  __device__ float Before(unsigned i) const { return fresh ? 0.0F : deter[i]; }
};

// The products of one-hot groups: of group g the row g C + stoch[g], from row `first` on.
__device__ inline float OneHotProducts(const DreamerActingWeights& w, const DreamerLayer& layer,
                                       const cuda::DeviceSpan<std::uint8_t>& stoch,
                                       std::size_t first, unsigned unit) {
  float sum = 0.0F;
  for (unsigned g = 0; g < w.stoch; ++g) {
    sum += layer.weight[(first + g * w.classes + stoch[g]) * w.units + unit];
  }
  return sum;
}

// view [F] -> embed [U].
__device__ inline void Encode(const DreamerActingWeights& w, const cuda::DeviceSpan<float>& mine,
                              const DreamerScratch& at) {
  const cuda::DeviceSpan<float> out[kMlpLayers] = {SliceOf(mine, at.first, w.units),
                                                   SliceOf(mine, at.second, w.units),
                                                   SliceOf(mine, at.embed, w.units)};
  for (int layer = 0; layer < kMlpLayers; ++layer) {
    const cuda::DeviceSpan<float> in = layer == 0 ? SliceOf(mine, 0, w.floats) : out[layer - 1];
    Linear(
        w.encoder[layer], [&](unsigned i) { return in[i]; }, layer == 0 ? w.floats : w.units,
        out[layer], w.units);
    NormSilu(w.encoder[layer], out[layer], w.units);
  }
}

// The three inputs of the recurrent cell, [3 U].
__device__ inline void CoreInputs(const DreamerActingWeights& w, const LaneState& state,
                                  const cuda::DeviceSpan<float>& core) {
  const cuda::DeviceSpan<float> of_deter = SliceOf(core, 0, w.units);
  const cuda::DeviceSpan<float> of_stoch = SliceOf(core, w.units, w.units);
  const cuda::DeviceSpan<float> of_action = SliceOf(core, 2 * w.units, w.units);
  Linear(
      w.core_deter, [&](unsigned i) { return state.Before(i); }, state.fresh ? 0 : w.deter,
      of_deter, w.units);
  for (unsigned u = threadIdx.x; u < w.units; u += kDreamerThreads) {
    const std::size_t row = state.fresh ? 0 : static_cast<std::size_t>(state.action);
    of_stoch[u] = w.core_stoch.bias[u] +
                  (state.fresh ? 0.0F : OneHotProducts(w, w.core_stoch, state.stoch, 0, u));
    of_action[u] =
        w.core_action.bias[u] + (state.fresh ? 0.0F : w.core_action.weight[row * w.units + u]);
  }
  NormSilu(w.core_deter, of_deter, w.units);
  NormSilu(w.core_stoch, of_stoch, w.units);
  NormSilu(w.core_action, of_action, w.units);
}

// The block-diagonal recurrent unit: replaces the lane's deter.
__device__ inline void RecurrentStep(const DreamerActingWeights& w, const LaneState& state,
                                     const cuda::DeviceSpan<float>& mine,
                                     const DreamerScratch& at) {
  const cuda::DeviceSpan<float> core = SliceOf(mine, at.core, 3 * w.units);
  const cuda::DeviceSpan<float> hidden = SliceOf(mine, at.hidden, w.deter);
  const cuda::DeviceSpan<float> gates = SliceOf(mine, at.gates, 3 * w.deter);
  const unsigned part = w.deter / w.blocks;
  CoreInputs(w, state, core);
  for (unsigned d = threadIdx.x; d < w.deter; d += kDreamerThreads) {
    const unsigned block = d / part, unit = d % part;
    const std::size_t rows = std::size_t{block} * (part + 3 * w.units);
    hidden[d] = w.core_hidden.bias[d] +
                Products(w.core_hidden.weight, rows, part, part, unit,
                         [&](unsigned i) { return state.Before(block * part + i); }) +
                Products(w.core_hidden.weight, rows + part, 3 * w.units, part, unit,
                         [&](unsigned i) { return core[i]; });
  }
  NormSilu(w.core_hidden, hidden, w.deter);
  for (unsigned j = threadIdx.x; j < 3 * w.deter; j += kDreamerThreads) {
    const unsigned block = j / (3 * part), unit = j % (3 * part);
    gates[j] = w.core_gates.bias[j] +
               Products(w.core_gates.weight, std::size_t{block} * part, part, 3 * part, unit,
                        [&](unsigned i) { return hidden[block * part + i]; });
  }
  __syncthreads();
  const auto sigmoid = [](float x) { return 1.0F / (1.0F + std::exp(-x)); };
  for (unsigned d = threadIdx.x; d < w.deter; d += kDreamerThreads) {
    const unsigned first = d / part * 3 * part + d % part;
    const float candidate = std::tanh(sigmoid(gates[first]) * gates[first + part]);
    const float update = sigmoid(gates[first + 2 * part] - 1.0F);
    state.deter[d] = update * candidate + (1.0F - update) * state.Before(d);
  }
  __syncthreads();
}

// Log-probabilities [S, C] of the state that the view shows, and the classes drawn from them. False
// when one is not finite; every thread knows.
__device__ inline bool DrawPosterior(const DreamerActingWeights& w, const LaneState& state,
                                     const cuda::DeviceSpan<float>& mine, const DreamerScratch& at,
                                     const LatentDraw& draw) {
  const cuda::DeviceSpan<float> embed = SliceOf(mine, at.embed, w.units);
  const cuda::DeviceSpan<float> y = SliceOf(mine, at.first, w.units);
  const unsigned all = w.stoch * w.classes;
  const cuda::DeviceSpan<float> log_probs = SliceOf(mine, at.log_probs, all);
  for (unsigned u = threadIdx.x; u < w.units; u += kDreamerThreads) {
    y[u] = w.posterior.bias[u] +
           Products(w.posterior.weight, 0, w.deter, w.units, u,
                    [&](unsigned i) { return state.deter[i]; }) +
           Products(w.posterior.weight, w.deter, w.units, w.units, u,
                    [&](unsigned i) { return embed[i]; });
  }
  NormSilu(w.posterior, y, w.units);
  Linear(w.posterior_out, [&](unsigned i) { return y[i]; }, w.units, log_probs, all);
  __syncthreads();
  float bad = 0.0F;
  for (unsigned g = threadIdx.x; g < w.stoch; g += kDreamerThreads) {
    const cuda::DeviceSpan<float> own = SliceOf(log_probs, g * w.classes, w.classes);
    const float normaliser = LogNormaliser(own, static_cast<int>(w.classes));
    const auto share = static_cast<float>(w.unimix);
    for (unsigned c = 0; c < w.classes; ++c) {
      const float p = (1.0F - share) * std::exp(own[c] - normaliser);
      const float log_prob = std::log(p + share / static_cast<float>(w.classes));
      own[c] = log_prob < kLeastLogChance ? kLeastLogChance : log_prob;  // NaN stays NaN
      if (!std::isfinite(own[c])) bad = 1.0F;
    }
    const PhiloxBlock words = LatentWords(draw, w.stoch, g / kLatentsOfADraw);
    state.stoch[g] = DrawLatent(own, w.classes, words.word[g % kLatentsOfADraw]);
  }
  return BlockSum<kDreamerThreads>(kDreamerThreads, [&](unsigned) { return bad; }) == 0.0F;
}

// The actor on the new state -> logits [A, M] of the lane; NaN where the state is not to be used.
__device__ inline void ActOnState(const DreamerActingWeights& w, const LaneState& state,
                                  const cuda::DeviceSpan<float>& mine, const DreamerScratch& at,
                                  bool usable, std::size_t lane, std::size_t lanes,
                                  const cuda::DeviceSpan<float>& logits) {
  const cuda::DeviceSpan<float> out[2] = {SliceOf(mine, at.first, w.units),
                                          SliceOf(mine, at.second, w.units)};
  for (unsigned u = threadIdx.x; u < w.units; u += kDreamerThreads) {
    out[0][u] = w.actor[0].bias[u] +
                Products(w.actor[0].weight, 0, w.deter, w.units, u,
                         [&](unsigned i) { return state.deter[i]; }) +
                OneHotProducts(w, w.actor[0], state.stoch, w.deter, u);
  }
  NormSilu(w.actor[0], out[0], w.units);
  for (int layer = 1; layer < kMlpLayers; ++layer) {
    const cuda::DeviceSpan<float>& in = out[(layer - 1) % 2];
    Linear(w.actor[layer], [&](unsigned i) { return in[i]; }, w.units, out[layer % 2], w.units);
    NormSilu(w.actor[layer], out[layer % 2], w.units);
  }
  const cuda::DeviceSpan<float>& last = out[(kMlpLayers - 1) % 2];
  for (unsigned a = threadIdx.x; a < w.actions; a += kDreamerThreads) {
    const float logit = w.actor_out.bias[a] + Products(w.actor_out.weight, 0, w.units, w.actions, a,
                                                       [&](unsigned i) { return last[i]; });
    logits[a * lanes + lane] = usable ? logit : NAN;
  }
}

// views [M, F] f32 of row `*row` -> the lanes' next states and logits [A, M] f32 without masks. A
// lane begins from zeros where the row is an episode's first or it has no state.
__global__ void __launch_bounds__(kDreamerThreads)
    StepDreamer(DreamerActingWeights w, RowSlots slots, const std::uint64_t* row,
                DreamerDraws draws, cuda::DeviceSpan<const float> views, DreamerStates states,
                cuda::DeviceSpan<float> scratch, cuda::DeviceSpan<float> logits) {
  const std::size_t lane = blockIdx.x, lanes = slots.lanes;
  const DreamerScratch at(w);
  const cuda::DeviceSpan<float> mine = SliceOf(scratch, lane * at.floats, at.floats);
  const std::int32_t action = states.action[lane];
  const LaneState state = {
      SliceOf(states.deter, lane * w.deter, w.deter),
      SliceOf(states.stoch, lane * w.stoch, w.stoch), action,
      (slots.At(*row).flags[lane] & kIsFirst) != 0 || action == kNoDreamerAction};
  for (unsigned i = threadIdx.x; i < w.floats; i += kDreamerThreads) {
    const float x = views[lane * w.floats + i];
    mine[i] = w.symlog ? std::copysign(std::log1p(std::abs(x)), x) : x;
  }
  __syncthreads();
  Encode(w, mine, at);
  RecurrentStep(w, state, mine, at);
  const LatentDraw draw = {draws.seed, draws.token_ids[lane], draws.steps[lane]};
  const bool usable = DrawPosterior(w, state, mine, at, draw);
  ActOnState(w, state, mine, at, usable, lane, lanes, logits);
}

}  // namespace tetrion
