#include "lib/nn/chunked_scorer.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/core/check.h"
#include "lib/nn/init.h"

namespace tetrion {

ChunkedScorer::ChunkedScorer(const NetworkConfig& config, const EnvSpec& env,
                             const std::string& name)
    : actions_(env.action.count),
      action_floats_(env.obs.action_floats),
      state_floats_(env.obs.view_floats - std::int64_t{actions_} * action_floats_),
      view_floats_(env.obs.view_floats),
      max_states_(config.max_states),
      team_(std::max(1, config.threads), name) {
  name_ = name;
}

void ChunkedScorer::AllocateParameters(const NetworkConfig& config, std::size_t policy_head,
                                       std::size_t value_head) {
  constexpr double kPolicyHeadGain = 0.01;
  AllocateBuffers(config.training);
  std::uint64_t stream = 0;
  for (const ParameterInfo& info : layout_) {
    ++stream;
    if (info.shape.size() != 2) continue;
    const double gain = info.offset == policy_head  ? kPolicyHeadGain
                        : info.offset == value_head ? 1.0
                                                    : std::sqrt(2.0);
    OrthogonalInit(parameters().subspan(info.offset, info.size), info.shape[0], info.shape[1], gain,
                   config.seed, stream);
  }
  if (!config.training) return;
  parts_.resize(static_cast<std::size_t>(std::min(kGradientParts, most_chunks()) - 1));
  for (std::vector<float>& part : parts_) part.resize(parameters_.size());
}

ChunkedScorer::Chunk ChunkedScorer::ChunkOf(int member, int index, const float* view,
                                            int states) const {
  const int begin = index * kChunk;
  return {member, index, view + begin * view_floats_, std::min(kChunk, states - begin)};
}

void ChunkedScorer::Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
                          float* value) {
  Run(view, mask, n, /*keep=*/false, logits, value);
}

void ChunkedScorer::Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
                            float* value) {
  TETRION_CHECK(!gradients_.empty(), "Forward is for networks made for training");
  Run(view, mask, n, /*keep=*/true, logits, value);
  forward_view_ = view;
  forward_states_ = n;
}

void ChunkedScorer::Run(const float* view, const std::uint64_t* mask, int n, bool keep,
                        float* logits, float* value) {
  TETRION_CHECK(n >= 0 && n <= max_states_, "more states than the network was made for");
  PrepareForward();
  const auto work = [&](int member, int index) {
    const int begin = index * kChunk;
    ForwardChunk(ChunkOf(member, index, view, n), mask == nullptr ? nullptr : mask + begin, keep,
                 logits == nullptr ? nullptr : logits + std::int64_t{begin} * actions_,
                 value == nullptr ? nullptr : value + begin);
  };
  team_.Share(ChunksOf(n), std::cref(work));  // by reference: a copy of it would be allocated
}

void ChunkedScorer::Backward(const float* grad_logits, const float* grad_value) {
  TETRION_CHECK(forward_view_ != nullptr, "Backward needs a Forward");
  PrepareBackward();
  const int chunks = ChunksOf(forward_states_);
  const int parts = std::min(static_cast<int>(parts_.size()) + 1, chunks);
  const auto work = [&](int member, int part) {
    float* gradient = gradients_.data();
    if (part > 0) {
      std::vector<float>& own = parts_[static_cast<std::size_t>(part - 1)];
      std::fill(own.begin(), own.end(), 0.0F);
      gradient = own.data();
    }
    for (int index = chunks * part / parts; index < chunks * (part + 1) / parts; ++index) {
      const int begin = index * kChunk;
      BackwardChunk(ChunkOf(member, index, forward_view_, forward_states_),
                    grad_logits + std::int64_t{begin} * actions_, grad_value + begin, gradient);
    }
  };
  team_.Share(parts, std::cref(work));
  for (int part = 1; part < parts; ++part) {
    const std::vector<float>& own = parts_[static_cast<std::size_t>(part - 1)];
    for (std::size_t i = 0; i < own.size(); ++i) gradients_[i] += own[i];
  }
  forward_view_ = nullptr;
}

}  // namespace tetrion
