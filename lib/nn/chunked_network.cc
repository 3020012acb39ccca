#include "lib/nn/chunked_network.h"

#include <algorithm>
#include <functional>

#include "lib/core/check.h"

namespace tetrion {

ChunkedNetwork::ChunkedNetwork(const NetworkConfig& config, const EnvSpec& env,
                               const std::string& name, int chunk)
    : actions_(env.action.count),
      view_floats_(env.obs.view_floats),
      max_states_(config.max_states),
      chunk_(chunk),
      team_(std::max(1, config.threads), name) {
  name_ = name;
}

void ChunkedNetwork::AllocateParameters(bool training) {
  AllocateBuffers(training);
  if (!training) return;
  parts_.resize(static_cast<std::size_t>(std::min(kGradientParts, most_chunks()) - 1));
  for (std::vector<float>& part : parts_) part.resize(parameters_.size());
}

ChunkedNetwork::Chunk ChunkedNetwork::ChunkOf(int member, int index, const float* view,
                                              const std::uint64_t* mask, int states) const {
  const int begin = index * chunk_;
  return {member, index, view + begin * view_floats_, mask == nullptr ? nullptr : mask + begin,
          std::min(chunk_, states - begin)};
}

void ChunkedNetwork::Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
                           float* value) {
  Run(view, mask, n, Keep::kNothing, logits, value);
}

void ChunkedNetwork::Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
                             float* value) {
  TETRION_CHECK(!gradients_.empty(), "Forward is for networks made for training");
  Run(view, mask, n, Keep::kAll, logits, value);
  forward_view_ = view;
  forward_mask_ = mask;
  forward_states_ = n;
  has_forward_ = true;
}

void ChunkedNetwork::ForwardAgain(const float* view, const std::uint64_t* mask, int n,
                                  float* logits, float* value) {
  TETRION_CHECK(view == forward_view_ && mask == forward_mask_ && n == forward_states_,
                "the states of the last Forward");
  Run(view, mask, n, Keep::kAllButTheStates, logits, value);
  has_forward_ = true;
}

void ChunkedNetwork::Run(const float* view, const std::uint64_t* mask, int n, Keep keep,
                         float* logits, float* value) {
  TETRION_CHECK(n >= 0 && n <= max_states_, "more states than the network was made for");
  PrepareForward();
  const auto work = [&](int member, int index) {
    const int begin = index * chunk_;
    Chunk chunk = ChunkOf(member, index, view, mask, n);
    chunk.known = keep == Keep::kAllButTheStates;
    ForwardChunk(chunk, keep != Keep::kNothing,
                 logits == nullptr ? nullptr : logits + std::int64_t{begin} * actions_,
                 value == nullptr ? nullptr : value + begin);
  };
  team_.Share(ChunksOf(n), std::cref(work));  // by reference: a copy of it would be allocated
}

void ChunkedNetwork::Backward(const float* grad_logits, const float* grad_value) {
  TETRION_CHECK(has_forward_, "Backward needs a Forward");
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
      const int begin = index * chunk_;
      BackwardChunk(ChunkOf(member, index, forward_view_, forward_mask_, forward_states_),
                    grad_logits + std::int64_t{begin} * actions_, grad_value + begin, gradient);
    }
  };
  team_.Share(parts, std::cref(work));
  for (int part = 1; part < parts; ++part) {
    const std::vector<float>& own = parts_[static_cast<std::size_t>(part - 1)];
    for (std::size_t i = 0; i < own.size(); ++i) gradients_[i] += own[i];
  }
  has_forward_ = false;
}

}  // namespace tetrion
