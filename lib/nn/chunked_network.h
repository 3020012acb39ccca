#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/nn/network.h"
#include "lib/nn/thread_team.h"

namespace tetrion {

// A network that works on a few states at a time, so that what it works on stays in the cache, on a
// team of threads: what all networks of our own arithmetic have in common.
//
// Gradients of the chunks are collected in a fixed number of parts and these added up in order, so
// that a result depends neither on the number of threads nor on which of them took which chunk.
class ChunkedNetwork : public Network {
 public:
  void Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
             float* value) final;
  void Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
               float* value) final;
  void ForwardAgain(const float* view, const std::uint64_t* mask, int n, float* logits,
                    float* value) final;
  void Backward(const float* grad_logits, const float* grad_value) final;

 protected:
  // Some consecutive states of a call, and the buffers of the thread that works on them: those of
  // `member`, overwritten with every chunk, and those of chunk `index`, kept for Backward.
  struct Chunk {
    int member, index;
    const float* view;          // [states, F]
    const std::uint64_t* mask;  // [states]; null without masks
    int states;
    bool known = false;  // of a ForwardAgain: what was kept of the states alone still holds
  };

  // `chunk`: states of a chunk.
  ChunkedNetwork(const NetworkConfig& config, const EnvSpec& env, const std::string& name,
                 int chunk);

  // logits [states, A], masked, and value [states]; either may be null. Any member's thread.
  virtual void ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) = 0;
  // Before the chunks of a call, on the caller's thread: parameters may have changed, but not
  // between Forward and Backward, which uses what PrepareForward left, too.
  virtual void PrepareForward() = 0;
  virtual void PrepareBackward() = 0;
  // Adds to gradient [parameters]. Any member's thread.
  virtual void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                             float* gradient) = 0;

  // After the parameters are declared: allocates them, their gradients and parts of these.
  void AllocateParameters(bool training);

  const float* P(std::size_t offset) const { return parameters_.data() + offset; }
  int members() const { return team_.size(); }
  // Of a call of max_states.
  int most_chunks() const { return ChunksOf(max_states_); }

  const int actions_;
  const std::int64_t view_floats_;

 private:
  // As many threads at most share a backward pass; each part is a buffer as long as the parameters.
  static constexpr int kGradientParts = 8;

  int ChunksOf(int states) const { return (states + chunk_ - 1) / chunk_; }
  Chunk ChunkOf(int member, int index, const float* view, const std::uint64_t* mask,
                int states) const;
  enum class Keep { kNothing, kAll, kAllButTheStates };
  void Run(const float* view, const std::uint64_t* mask, int n, Keep keep, float* logits,
           float* value);

  const int max_states_, chunk_;
  ThreadTeam team_;
  std::vector<std::vector<float>> parts_;  // of the gradient, all but the first; [parameters] each
  // Of the last Forward, also after its Backward.
  const float* forward_view_ = nullptr;
  const std::uint64_t* forward_mask_ = nullptr;
  int forward_states_ = 0;
  bool has_forward_ = false;  // that Backward can be called for
};

}  // namespace tetrion
