#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/nn/network.h"
#include "lib/nn/thread_team.h"

namespace tetrion {

// A network that works on a few states at a time, so that what it works on stays in the cache, on a
// team of threads: what the networks scorer and columns have in common. Views begin with a row of
// action_floats floats for every action; the rest is the state.
//
// Gradients of the chunks are collected in a fixed number of parts and these added up in order, so
// that a result depends neither on the number of threads nor on which of them took which chunk.
class ChunkedScorer : public Network {
 public:
  static constexpr int kChunk = 16;  // states

  void Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
             float* value) final;
  void Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
               float* value) final;
  void Backward(const float* grad_logits, const float* grad_value) final;

 protected:
  // Some consecutive states of a call, and the buffers of the thread that works on them: those of
  // `member`, overwritten with every chunk, and those of chunk `index`, kept for Backward.
  struct Chunk {
    int member, index;
    const float* view;  // [states, F]
    int states;
  };

  ChunkedScorer(const NetworkConfig& config, const EnvSpec& env, const std::string& name);

  // logits [states, A], masked, and value [states]; either may be null. Any member's thread.
  virtual void ForwardChunk(const Chunk& chunk, const std::uint64_t* mask, bool keep, float* logits,
                            float* value) = 0;
  // Before the chunks of a call, on the caller's thread: parameters may have changed, but not
  // between Forward and Backward, which uses what PrepareForward left, too.
  virtual void PrepareForward() = 0;
  virtual void PrepareBackward() = 0;
  // Adds to gradient [parameters]. Any member's thread.
  virtual void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                             float* gradient) = 0;

  // After the parameters are declared: allocates them, with orthogonal weights [in, out] and biases
  // 0, their gradients and parts of these. The two heads are named by their offsets: logits start
  // near 0, so that the first policy is nearly uniform.
  void AllocateParameters(const NetworkConfig& config, std::size_t policy_head,
                          std::size_t value_head);

  const float* P(std::size_t offset) const { return parameters_.data() + offset; }
  const float* StateOf(const float* view, std::int64_t state) const {
    return view + state * view_floats_ + std::int64_t{actions_} * action_floats_;
  }
  int members() const { return team_.size(); }
  // Of a call of max_states.
  int most_chunks() const { return ChunksOf(max_states_); }

  const int actions_, action_floats_;
  const std::int64_t state_floats_, view_floats_;

 private:
  // As many threads at most share a backward pass; each part is a buffer as long as the parameters.
  static constexpr int kGradientParts = 8;

  static int ChunksOf(int states) { return (states + kChunk - 1) / kChunk; }
  Chunk ChunkOf(int member, int index, const float* view, int states) const;
  void Run(const float* view, const std::uint64_t* mask, int n, bool keep, float* logits,
           float* value);

  const int max_states_;
  ThreadTeam team_;
  std::vector<std::vector<float>> parts_;  // of the gradient, all but the first; [parameters] each
  const float* forward_view_ = nullptr;
  int forward_states_ = 0;
};

}  // namespace tetrion
