#include "lib/nn/scorer.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/chunked_scorer.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/multiply_by.h"
#include "lib/nn/scorer_rows.h"

namespace tetrion {
namespace {

// Rows that go through all layers at a time: two layers of 64 units take 32 KiB. Half or twice as
// many are no better (docs/PERFORMANCE.md). A multiple of 32, which the matrix unit takes at once.
constexpr std::int64_t kCachedRows = 64;

// Buffers of one team member, overwritten with every chunk. Wide ones hold rows of the policy's
// layers or of the value's.
struct ScorerScratch {
  ScorerScratch(int actions, int action_floats, std::int64_t units, bool training) {
    constexpr auto kStates = static_cast<std::size_t>(ChunkedScorer::kChunk);
    const auto cells = kStates * static_cast<std::size_t>(actions);
    const auto width = static_cast<std::size_t>(units);
    const std::size_t wide = std::max(cells, kStates * kScorerValueTimes) * width;
    rows.Allocate(ChunkedScorer::kChunk, actions, action_floats);
    state_part.resize(kStates * width);
    score.resize(cells);
    for (auto* buffer : {&active1, &active2}) buffer->resize(wide);
    for (auto* buffer : {&sum1, &sum2}) buffer->resize(kStates * kScorerValueTimes * width);
    if (!training) return;
    for (auto* buffer : {&slope1, &slope2, &grad1, &grad2}) buffer->resize(wide);
    kept.Allocate(ChunkedScorer::kChunk, actions, action_floats);
  }

  ScorerRows rows;                      // of a call that keeps none
  std::vector<float> state_part;        // [states, H]; in Backward its gradient
  std::vector<float> score;             // [rows]; in Backward its gradient
  std::vector<float> active1, active2;  // after SiLU
  std::vector<float> slope1, slope2;    // SiLU'
  std::vector<float> grad1, grad2;      // loss gradient before SiLU
  std::vector<float> sum1, sum2;        // of a call that keeps none, see ValueSums
  KeptRows kept;
};

// What the value's hidden layers give before SiLU, [states, units] each.
struct ValueSums {
  float* layer1;
  float* layer2;
};

class Scorer final : public ChunkedScorer {
 public:
  Scorer(const NetworkConfig& config, const EnvSpec& env)
      : ChunkedScorer(config, env, "scorer"),
        hidden_(config.scorer_units),
        value_hidden_(kScorerValueTimes * config.scorer_units),
        kernels_(BestDenseKernels(config.precision)),
        after_(BestDenseKernels(), action_floats_, hidden_),
        state_(BestDenseKernels(), state_floats_, hidden_),
        value1_(BestDenseKernels(), state_floats_, value_hidden_),
        layer2_(kernels_, hidden_, hidden_),
        value2_(kernels_, value_hidden_, value_hidden_),
        layer2_back_(kernels_, hidden_, hidden_),
        value2_back_(kernels_, value_hidden_, value_hidden_) {
    DeclareParameters();
    AllocateWeights(config, w3_, value_w3_);
    for (int member = 0; member < members(); ++member) {
      scratch_.emplace_back(actions_, action_floats_, hidden_, config.training);
    }
    if (!config.training) return;
    saved_.resize(static_cast<std::size_t>(most_chunks()));
    for (ScorerRows& rows : saved_) rows.Allocate(kChunk, actions_, action_floats_);
    saved_sums_.resize(static_cast<std::size_t>(2 * most_chunks() * kChunk * value_hidden_));
    w2_transposed_.resize(static_cast<std::size_t>(hidden_ * hidden_));
    value_w2_transposed_.resize(static_cast<std::size_t>(value_hidden_ * value_hidden_));
  }

 private:
  void ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) override;
  void PrepareForward() override;
  void PrepareBackward() override;
  void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                     float* gradient) override;

  void DeclareParameters();
  // What the chunk's states add to the policy's first layer, in the member's scratch.
  void StateParts(const Chunk& chunk);
  // The policy's two hidden layers of rows [begin, begin + rows) of afterstates [., F] and their
  // states [.], after SiLU, and with `slopes` its slopes, in the member's scratch from its start.
  // Reads what StateParts left.
  void PolicyLayers(const Chunk& chunk, const std::vector<float>& after,
                    const std::vector<std::int32_t>& state, std::int64_t begin, std::int64_t rows,
                    bool slopes);
  // value [states], unless null, and the sums on the way to it.
  void ValueForward(const Chunk& chunk, const ValueSums& sums, float* value);
  void ScoreBackward(const Chunk& chunk, const float* grad_logits, float* gradient);
  void ValueBackward(const Chunk& chunk, const float* grad_value, float* gradient);
  // Those that Backward will read.
  ValueSums SavedSumsOf(const Chunk& chunk) {
    const std::int64_t layer = kChunk * value_hidden_;
    float* first = saved_sums_.data() + 2 * chunk.index * layer;
    return {first, first + layer};
  }
  ScorerScratch& ScratchOf(const Chunk& chunk) {
    return scratch_[static_cast<std::size_t>(chunk.member)];
  }

  const std::int64_t hidden_;        // H, of the shared scoring network
  const std::int64_t value_hidden_;  // of the value network
  const DenseKernels& kernels_;
  PackedWeights after_, state_, value1_;  // of a view's numbers, which stay f32
  PackedWeights layer2_, value2_;
  PackedWeights layer2_back_, value2_back_;  // transposed
  std::vector<ScorerScratch> scratch_;       // one a member
  std::vector<ScorerRows> saved_;            // one a chunk of the last Forward
  std::vector<float> saved_sums_;            // both layers of a chunk, of each of them
  std::vector<float> w2_transposed_, value_w2_transposed_;
  // Offsets in the flat buffer; weights are [in, out].
  std::size_t after_w_, state_w_, b1_, w2_, b2_, w3_, b3_;
  std::size_t value_w1_, value_b1_, value_w2_, value_b2_, value_w3_, value_b3_;
};

void Scorer::DeclareParameters() {
  after_w_ = AddParameter("score.after.weight", {action_floats_, hidden_});
  state_w_ = AddParameter("score.state.weight", {state_floats_, hidden_});
  b1_ = AddParameter("score.1.bias", {hidden_});
  w2_ = AddParameter("score.2.weight", {hidden_, hidden_});
  b2_ = AddParameter("score.2.bias", {hidden_});
  w3_ = AddParameter("score.3.weight", {hidden_, 1});
  b3_ = AddParameter("score.3.bias", {1});
  value_w1_ = AddParameter("value.1.weight", {state_floats_, value_hidden_});
  value_b1_ = AddParameter("value.1.bias", {value_hidden_});
  value_w2_ = AddParameter("value.2.weight", {value_hidden_, value_hidden_});
  value_b2_ = AddParameter("value.2.bias", {value_hidden_});
  value_w3_ = AddParameter("value.3.weight", {value_hidden_, 1});
  value_b3_ = AddParameter("value.3.bias", {1});
}

void Scorer::ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) {
  ScorerScratch& scratch = ScratchOf(chunk);
  if (logits != nullptr || keep) {
    ScorerRows& plan = keep ? saved_[static_cast<std::size_t>(chunk.index)] : scratch.rows;
    if (!chunk.known) {
      plan.Plan(chunk.view, view_floats_, chunk.mask, chunk.states, actions_);
    }
    if (logits != nullptr) {
      StateParts(chunk);
      for (std::int64_t begin = 0; begin < plan.rows; begin += kCachedRows) {
        const std::int64_t rows = std::min(kCachedRows, plan.rows - begin);
        PolicyLayers(chunk, plan.after, plan.state, begin, rows, /*slopes=*/false);
        kernels_.dot(scratch.active2.data(), rows, hidden_, P(w3_), *P(b3_),
                     scratch.score.data() + begin);
      }
      plan.Scatter(scratch.score.data(), chunk.states * actions_, logits);
    }
  }
  if (value != nullptr || keep) {
    ValueForward(chunk,
                 keep ? SavedSumsOf(chunk) : ValueSums{scratch.sum1.data(), scratch.sum2.data()},
                 value);
  }
}

void Scorer::ValueForward(const Chunk& chunk, const ValueSums& sums, float* value) {
  ScorerScratch& scratch = ScratchOf(chunk);
  const std::int64_t n = value_hidden_;
  float* active1 = scratch.active1.data();
  float* active2 = scratch.active2.data();
  value1_.Multiply(P(value_b1_), nullptr, StateOf(chunk.view, 0), view_floats_, chunk.states,
                   sums.layer1);
  kernels_.silu(sums.layer1, chunk.states, n, active1, nullptr);
  value2_.Multiply(P(value_b2_), nullptr, active1, n, chunk.states, sums.layer2);
  if (value == nullptr) return;
  kernels_.silu(sums.layer2, chunk.states, n, active2, nullptr);
  kernels_.dot(active2, chunk.states, n, P(value_w3_), *P(value_b3_), value);
}

void Scorer::StateParts(const Chunk& chunk) {
  state_.Multiply(P(b1_), nullptr, StateOf(chunk.view, 0), view_floats_, chunk.states,
                  ScratchOf(chunk).state_part.data());
}

void Scorer::PolicyLayers(const Chunk& chunk, const std::vector<float>& after,
                          const std::vector<std::int32_t>& state, std::int64_t begin,
                          std::int64_t rows, bool slopes) {
  ScorerScratch& scratch = ScratchOf(chunk);
  float* active1 = scratch.active1.data();
  float* active2 = scratch.active2.data();
  after_.Multiply(scratch.state_part.data(), state.data() + begin,
                  after.data() + begin * action_floats_, action_floats_, rows, active1);
  kernels_.silu(active1, rows, hidden_, active1, slopes ? scratch.slope1.data() : nullptr);
  layer2_.Multiply(P(b2_), nullptr, active1, hidden_, rows, active2);
  kernels_.silu(active2, rows, hidden_, active2, slopes ? scratch.slope2.data() : nullptr);
}

void Scorer::PrepareForward() {
  after_.Pack(P(after_w_));
  state_.Pack(P(state_w_));
  layer2_.Pack(P(w2_));
  value1_.Pack(P(value_w1_));
  value2_.Pack(P(value_w2_));
}

void Scorer::PrepareBackward() {
  kernels_.transpose(P(w2_), hidden_, hidden_, w2_transposed_.data());
  kernels_.transpose(P(value_w2_), value_hidden_, value_hidden_, value_w2_transposed_.data());
  layer2_back_.Pack(w2_transposed_.data());
  value2_back_.Pack(value_w2_transposed_.data());
}

void Scorer::BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                           float* gradient) {
  ScoreBackward(chunk, grad_logits, gradient);
  ValueBackward(chunk, grad_value, gradient);
}

void Scorer::ScoreBackward(const Chunk& chunk, const float* grad_logits, float* gradient) {
  ScorerScratch& scratch = ScratchOf(chunk);
  const ScorerRows& plan = saved_[static_cast<std::size_t>(chunk.index)];
  const int states = chunk.states;
  float* grad_score = scratch.score.data();
  plan.Gather(grad_logits, states * actions_, grad_score);
  KeptRows& kept = scratch.kept;
  kept.Choose(plan, states, grad_score);
  const std::int64_t rows = kept.rows;
  StateParts(chunk);
  PolicyLayers(chunk, kept.after, kept.state, 0, rows, /*slopes=*/true);
  const float* active1 = scratch.active1.data();
  const float* active2 = scratch.active2.data();
  // Through the dot product: d w3 = active2^T g, d b3 = sum g.
  kernels_.multiply_add(grad_score, rows, 1, rows, active2, hidden_, gradient + w3_);
  for (std::int64_t row = 0; row < rows; ++row) gradient[b3_] += grad_score[row];
  float* grad2 = scratch.grad2.data();
  kernels_.dot_backward(grad_score, rows, hidden_, P(w3_), scratch.slope2.data(), grad2);
  kernels_.outer_add(active1, hidden_, rows, hidden_, grad2, hidden_, gradient + w2_);
  kernels_.column_sum(grad2, rows, hidden_, gradient + b2_);
  float* grad1 = scratch.grad1.data();
  layer2_back_.Multiply(nullptr, nullptr, grad2, hidden_, rows, grad1);
  MultiplyBy(scratch.slope1.data(), rows * hidden_, grad1);
  kernels_.outer_add(kept.after.data(), action_floats_, rows, action_floats_, grad1, hidden_,
                     gradient + after_w_);
  float* grad_state = scratch.state_part.data();
  std::fill_n(grad_state, states * hidden_, 0.0F);
  for (int s = 0; s < states; ++s) {
    const std::int64_t begin = kept.first[static_cast<std::size_t>(s)];
    kernels_.column_sum(grad1 + begin * hidden_,
                        kept.first[static_cast<std::size_t>(s) + 1] - begin, hidden_,
                        grad_state + s * hidden_);
  }
  kernels_.outer_add(StateOf(chunk.view, 0), view_floats_, states, state_floats_, grad_state,
                     hidden_, gradient + state_w_);
  kernels_.column_sum(grad_state, states, hidden_, gradient + b1_);
}

void Scorer::ValueBackward(const Chunk& chunk, const float* grad_value, float* gradient) {
  ScorerScratch& scratch = ScratchOf(chunk);
  const int states = chunk.states;
  const ValueSums sums = SavedSumsOf(chunk);
  float* active1 = scratch.active1.data();
  float* active2 = scratch.active2.data();
  kernels_.silu(sums.layer1, states, value_hidden_, active1, scratch.slope1.data());
  kernels_.silu(sums.layer2, states, value_hidden_, active2, scratch.slope2.data());
  kernels_.multiply_add(grad_value, states, 1, states, active2, value_hidden_,
                        gradient + value_w3_);
  for (int s = 0; s < states; ++s) gradient[value_b3_] += grad_value[s];
  float* grad2 = scratch.grad2.data();
  kernels_.dot_backward(grad_value, states, value_hidden_, P(value_w3_), scratch.slope2.data(),
                        grad2);
  kernels_.outer_add(active1, value_hidden_, states, value_hidden_, grad2, value_hidden_,
                     gradient + value_w2_);
  kernels_.column_sum(grad2, states, value_hidden_, gradient + value_b2_);
  float* grad1 = scratch.grad1.data();
  value2_back_.Multiply(nullptr, nullptr, grad2, value_hidden_, states, grad1);
  MultiplyBy(scratch.slope1.data(), states * value_hidden_, grad1);
  kernels_.outer_add(StateOf(chunk.view, 0), view_floats_, states, state_floats_, grad1,
                     value_hidden_, gradient + value_w1_);
  kernels_.column_sum(grad1, states, value_hidden_, gradient + value_b1_);
}

}  // namespace

std::unique_ptr<Network> MakeScorer(const NetworkConfig& config, const EnvSpec& env) {
  if (env.obs.action_floats == 0 || env.obs.board_columns > 0 || env.action.count > 64 ||
      env.obs.view_floats <= std::int64_t{env.action.count} * env.obs.action_floats) {
    throw Error(ExitCode::kUsage,
                "network scorer reads views that say what each action leads to in features, "
                "such as afterstates, but " +
                    env.name + " was given view " + env.obs.view +
                    ": choose --network auto or --view afterstates");
  }
  TETRION_CHECK(config.scorer_units > 0 && config.scorer_units % kScorerUnitsStep == 0,
                "the kernels work on whole vectors");
  return std::make_unique<Scorer>(config, env);
}

}  // namespace tetrion
