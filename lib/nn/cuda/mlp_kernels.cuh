#pragma once

#include <cmath>

#include "lib/cuda/kernel.h"
#include "lib/nn/cuda/mlp_plan.h"
#include "lib/nn/cuda/mlp_weights.h"

// Network `mlp` (lib/nn/mlp.h) from views to the policy's logits, both layers and the head in one
// kernel. A block computes all units of a few lanes: a thread keeps the sums of its units for all
// these lanes in registers, reads weights [in, out] coalesced, and activations from shared memory,
// one address for the whole warp. The input passes through shared memory in chunks.
//
// Numeric policy: f32; a unit's products are added in the order of its inputs, so a lane's logits
// do not depend on the other lanes. LayerNorm in two passes over f32.

namespace tetrion {

// A thread's sums: of its units, for the block's lanes.
template <typename Plan>
struct MlpSums {
  float of[Plan::kThreadUnits][Plan::kLanes];
};

// Copies inputs [first, first + kChunk) of the block's lanes to x [kChunk, kStride]; 0 past the
// last lane and input.
template <typename Plan>
__device__ inline void LoadChunk(cuda::DeviceSpan<const float> view, unsigned inputs, unsigned n,
                                 unsigned first, const cuda::SharedSpan<float>& x) {
  const unsigned first_lane = blockIdx.x * Plan::kLanes;
  for (unsigned cell = threadIdx.x; cell < Plan::kChunk * Plan::kLanes; cell += Plan::kThreads) {
    const unsigned i = cell % Plan::kChunk, l = cell / Plan::kChunk;
    const std::size_t lane = first_lane + l;
    const bool inside = lane < n && first + i < inputs;
    x[i * Plan::kStride + l] = inside ? view[lane * inputs + first + i] : 0.0F;
  }
}

// Adds x [count, kStride] times rows first.. of the layer's weights.
template <typename Plan>
__device__ inline void AddProducts(const cuda::SharedSpan<float>& x, unsigned count,
                                   const MlpLayer& layer, unsigned first, MlpSums<Plan>& sums) {
  for (unsigned i = 0; i < count; ++i) {
    float weight[Plan::kThreadUnits];
    TETRION_UNROLL
    for (unsigned u = 0; u < Plan::kThreadUnits; ++u) {
      weight[u] = layer.weight[(first + i) * Plan::kUnits + threadIdx.x + u * Plan::kThreads];
    }
    TETRION_UNROLL
    for (unsigned l = 0; l < Plan::kLanes; ++l) {
      const float value = x[i * Plan::kStride + l];
      TETRION_UNROLL
      for (unsigned u = 0; u < Plan::kThreadUnits; ++u) sums.of[u][l] += weight[u] * value;
    }
  }
}

template <typename Plan>
__device__ inline void StartWithBias(const MlpLayer& layer, MlpSums<Plan>& sums) {
  TETRION_UNROLL
  for (unsigned u = 0; u < Plan::kThreadUnits; ++u) {
    const float bias = layer.bias[threadIdx.x + u * Plan::kThreads];
    TETRION_UNROLL
    for (unsigned l = 0; l < Plan::kLanes; ++l) sums.of[u][l] = bias;
  }
}

template <typename Plan>
__device__ inline void Store(const MlpSums<Plan>& sums, const cuda::SharedSpan<float>& h) {
  TETRION_UNROLL
  for (unsigned u = 0; u < Plan::kThreadUnits; ++u) {
    const unsigned unit = threadIdx.x + u * Plan::kThreads;
    TETRION_UNROLL
    for (unsigned l = 0; l < Plan::kLanes; ++l) h[unit * Plan::kStride + l] = sums.of[u][l];
  }
}

// Sum over the kThreads / kLanes neighbours that share a lane.
template <typename Plan>
__device__ inline float LaneSum(float value) {
  for (unsigned bits = Plan::kThreads / Plan::kLanes / 2; bits > 0; bits /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, static_cast<int>(bits));
  }
  return value;
}

// LayerNorm over the units of each lane, by way of h [kUnits, kStride].
template <typename Plan>
__device__ inline void Normalise(const MlpLayer& layer, MlpSums<Plan>& sums,
                                 const cuda::SharedSpan<float>& h) {
  TETRION_SHARED(float, mean, Plan::kLanes);
  TETRION_SHARED(float, inverse_deviation, Plan::kLanes);
  constexpr unsigned kGroup = Plan::kThreads / Plan::kLanes;
  constexpr auto kCount = static_cast<float>(Plan::kUnits);
  Store<Plan>(sums, h);
  __syncthreads();
  const unsigned lane = threadIdx.x / kGroup, first = threadIdx.x % kGroup;
  float sum = 0.0F;
  for (unsigned unit = first; unit < Plan::kUnits; unit += kGroup) {
    sum += h[unit * Plan::kStride + lane];
  }
  const float average = LaneSum<Plan>(sum) / kCount;
  float squares = 0.0F;
  for (unsigned unit = first; unit < Plan::kUnits; unit += kGroup) {
    const float difference = h[unit * Plan::kStride + lane] - average;
    squares += difference * difference;
  }
  const float variance = LaneSum<Plan>(squares) / kCount;
  if (first == 0) {
    mean[lane] = average;
    inverse_deviation[lane] = 1.0F / std::sqrt(variance + static_cast<float>(kLayerNormEpsilon));
  }
  __syncthreads();
  TETRION_UNROLL
  for (unsigned u = 0; u < Plan::kThreadUnits; ++u) {
    const unsigned unit = threadIdx.x + u * Plan::kThreads;
    const float scale = layer.norm_scale[unit], bias = layer.norm_bias[unit];
    TETRION_UNROLL
    for (unsigned l = 0; l < Plan::kLanes; ++l) {
      const float centred = sums.of[u][l] - mean[l];
      sums.of[u][l] = centred * inverse_deviation[l] * scale + bias;
    }
  }
}

// From a layer's sums to its activations in h [kUnits, kStride], which other threads may still be
// reading and may read behind this.
template <typename Plan>
__device__ inline void Activate(const MlpLayer& layer, MlpSums<Plan>& sums,
                                const cuda::SharedSpan<float>& h) {
  __syncthreads();
  if constexpr (Plan::kNormed) Normalise<Plan>(layer, sums, h);
  TETRION_UNROLL
  for (unsigned u = 0; u < Plan::kThreadUnits; ++u) {
    TETRION_UNROLL
    for (unsigned l = 0; l < Plan::kLanes; ++l) {
      const float sum = sums.of[u][l];
      sums.of[u][l] = Plan::kNormed ? sum / (1.0F + std::exp(-sum)) : std::tanh(sum);
    }
  }
  Store<Plan>(sums, h);
  __syncthreads();
}

// view [n, F] f32 -> logits [A, n] f32: a lane's logits lie n apart, for kernels with a thread a
// lane.
template <typename Plan>
__global__ void __launch_bounds__(Plan::kThreads)
    MlpLogits(MlpWeights weights, cuda::DeviceSpan<const float> view, unsigned n,
              cuda::DeviceSpan<float> logits) {
  const cuda::SharedSpan<float> shared = cuda::SharedBytes<float>();
  const cuda::SharedSpan<float> x = shared.Part(0, Plan::kChunk * Plan::kStride);
  const cuda::SharedSpan<float> h =
      shared.Part(Plan::kChunk * Plan::kStride, Plan::kUnits * Plan::kStride);
  MlpSums<Plan> sums;
  StartWithBias<Plan>(weights.layer[0], sums);
  for (unsigned first = 0; first < weights.inputs; first += Plan::kChunk) {
    LoadChunk<Plan>(view, weights.inputs, n, first, x);
    __syncthreads();
    const unsigned rest = weights.inputs - first;
    AddProducts<Plan>(x, rest < Plan::kChunk ? rest : Plan::kChunk, weights.layer[0], first, sums);
    __syncthreads();
  }
  Activate<Plan>(weights.layer[0], sums, h);
  StartWithBias<Plan>(weights.layer[1], sums);
  AddProducts<Plan>(h, Plan::kUnits, weights.layer[1], 0, sums);
  Activate<Plan>(weights.layer[1], sums, h);
  for (unsigned cell = threadIdx.x; cell < weights.actions * Plan::kLanes; cell += Plan::kThreads) {
    const unsigned l = cell % Plan::kLanes, action = cell / Plan::kLanes;
    const std::size_t lane = blockIdx.x * Plan::kLanes + l;
    if (lane >= n) continue;
    float sum = weights.head.bias[action];
    for (unsigned i = 0; i < Plan::kUnits; ++i) {
      sum += weights.head.weight[i * weights.actions + action] * h[i * Plan::kStride + l];
    }
    logits[std::size_t{action} * n + lane] = sum;
  }
}

}  // namespace tetrion
