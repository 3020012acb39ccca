#include "lib/nn/scorer.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/chunked_scorer.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/scorer_parts.h"
#include "lib/nn/scorer_rows.h"

namespace tetrion {
namespace {

// What Backward needs of a chunk: its rows and the inputs of the four SiLUs.
struct Activations {
  void Allocate(int actions, int action_floats, std::int64_t units) {
    constexpr auto kStates = static_cast<std::size_t>(ChunkedScorer::kChunk);
    const auto width = static_cast<std::size_t>(units);
    rows.Allocate(ChunkedScorer::kChunk, actions, action_floats);
    for (auto* hidden : {&hidden1, &hidden2}) {
      hidden->resize(kStates * static_cast<std::size_t>(actions) * width);
    }
    for (auto* hidden : {&value1, &value2}) hidden->resize(kStates * kScorerValueTimes * width);
  }

  ScorerRows rows;
  std::vector<float> hidden1, hidden2;  // [rows, H] before SiLU
  std::vector<float> value1, value2;    // [states, 2 H] before SiLU
};

// Buffers of one team member, overwritten with every chunk.
struct ScorerScratch {
  ScorerScratch(int actions, int action_floats, std::int64_t units, bool training) {
    constexpr auto kStates = static_cast<std::size_t>(ChunkedScorer::kChunk);
    const auto cells = kStates * static_cast<std::size_t>(actions);
    const auto width = static_cast<std::size_t>(units);
    const std::size_t wide = std::max(cells, kStates * kScorerValueTimes) * width;
    inference.Allocate(actions, action_floats, units);
    state_part.resize(kStates * width);
    score.resize(cells);
    active1.resize(wide);
    active2.resize(wide);
    if (!training) return;
    slope1.resize(wide);
    slope2.resize(wide);
    grad1.resize(wide);
    grad2.resize(wide);
    kept.Allocate(ChunkedScorer::kChunk, actions, action_floats);
  }

  Activations inference;
  std::vector<float> state_part;        // [states, H]; in Backward its gradient
  std::vector<float> score;             // [rows]; in Backward its gradient
  std::vector<float> active1, active2;  // after SiLU
  std::vector<float> slope1, slope2;    // SiLU'
  std::vector<float> grad1, grad2;      // loss gradient before SiLU
  KeptRows kept;
};

class Scorer final : public ChunkedScorer {
 public:
  Scorer(const NetworkConfig& config, const EnvSpec& env)
      : ChunkedScorer(config, env, "scorer"),
        hidden_(config.scorer_units),
        value_hidden_(kScorerValueTimes * config.scorer_units),
        kernels_(BestDenseKernels()) {
    DeclareParameters();
    AllocateParameters(config, w3_, value_w3_);
    for (int member = 0; member < members(); ++member) {
      scratch_.emplace_back(actions_, action_floats_, hidden_, config.training);
    }
    if (!config.training) return;
    saved_.resize(static_cast<std::size_t>(most_chunks()));
    for (Activations& saved : saved_) saved.Allocate(actions_, action_floats_, hidden_);
    w2_transposed_.resize(static_cast<std::size_t>(hidden_ * hidden_));
    value_w2_transposed_.resize(static_cast<std::size_t>(value_hidden_ * value_hidden_));
  }

 private:
  void ForwardChunk(const Chunk& chunk, const std::uint64_t* mask, bool keep, float* logits,
                    float* value) override;
  void PrepareBackward() override;
  void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                     float* gradient) override;

  void DeclareParameters();
  void Score(const Chunk& chunk, const std::uint64_t* mask, Activations& act, float* logits);
  void Value(const Chunk& chunk, Activations& act, float* value);
  void ScoreBackward(const Chunk& chunk, const float* grad_logits, float* gradient);
  void ValueBackward(const Chunk& chunk, const float* grad_value, float* gradient);
  ScorerScratch& ScratchOf(const Chunk& chunk) {
    return scratch_[static_cast<std::size_t>(chunk.member)];
  }

  const std::int64_t hidden_;        // H, of the shared scoring network
  const std::int64_t value_hidden_;  // of the value network
  const DenseKernels& kernels_;
  std::vector<ScorerScratch> scratch_;  // one a member
  std::vector<Activations> saved_;      // one a chunk of the last Forward
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

void Scorer::ForwardChunk(const Chunk& chunk, const std::uint64_t* mask, bool keep, float* logits,
                          float* value) {
  Activations& act =
      keep ? saved_[static_cast<std::size_t>(chunk.index)] : ScratchOf(chunk).inference;
  if (logits != nullptr || keep) Score(chunk, mask, act, logits);
  if (value != nullptr || keep) Value(chunk, act, value);
}

void Scorer::Score(const Chunk& chunk, const std::uint64_t* mask, Activations& act, float* logits) {
  ScorerScratch& scratch = ScratchOf(chunk);
  ScorerRows& plan = act.rows;
  plan.Plan(chunk.view, view_floats_, mask, chunk.states, actions_);
  const std::int64_t rows = plan.rows;
  float* state_part = scratch.state_part.data();
  kernels_.multiply_from(P(b1_), nullptr, StateOf(chunk.view, 0), view_floats_, chunk.states,
                         state_floats_, P(state_w_), hidden_, state_part);
  kernels_.multiply_from(state_part, plan.state.data(), plan.after.data(), action_floats_, rows,
                         action_floats_, P(after_w_), hidden_, act.hidden1.data());
  kernels_.silu(act.hidden1.data(), rows, hidden_, scratch.active1.data(), nullptr);
  kernels_.multiply_from(P(b2_), nullptr, scratch.active1.data(), hidden_, rows, hidden_, P(w2_),
                         hidden_, act.hidden2.data());
  if (logits == nullptr) return;
  kernels_.silu(act.hidden2.data(), rows, hidden_, scratch.active2.data(), nullptr);
  kernels_.dot(scratch.active2.data(), rows, hidden_, P(w3_), *P(b3_), scratch.score.data());
  plan.Scatter(scratch.score.data(), chunk.states * actions_, logits);
}

void Scorer::Value(const Chunk& chunk, Activations& act, float* value) {
  ScorerScratch& scratch = ScratchOf(chunk);
  const std::int64_t n = value_hidden_;
  kernels_.multiply_from(P(value_b1_), nullptr, StateOf(chunk.view, 0), view_floats_, chunk.states,
                         state_floats_, P(value_w1_), n, act.value1.data());
  kernels_.silu(act.value1.data(), chunk.states, n, scratch.active1.data(), nullptr);
  kernels_.multiply_from(P(value_b2_), nullptr, scratch.active1.data(), n, chunk.states, n,
                         P(value_w2_), n, act.value2.data());
  if (value == nullptr) return;
  kernels_.silu(act.value2.data(), chunk.states, n, scratch.active2.data(), nullptr);
  kernels_.dot(scratch.active2.data(), chunk.states, n, P(value_w3_), *P(value_b3_), value);
}

void Scorer::PrepareBackward() {
  TransposeSquare(P(w2_), hidden_, w2_transposed_.data());
  TransposeSquare(P(value_w2_), value_hidden_, value_w2_transposed_.data());
}

void Scorer::BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                           float* gradient) {
  ScoreBackward(chunk, grad_logits, gradient);
  ValueBackward(chunk, grad_value, gradient);
}

void Scorer::ScoreBackward(const Chunk& chunk, const float* grad_logits, float* gradient) {
  const Activations& act = saved_[static_cast<std::size_t>(chunk.index)];
  ScorerScratch& scratch = ScratchOf(chunk);
  const ScorerRows& plan = act.rows;
  const int states = chunk.states;
  float* grad_score = scratch.score.data();
  plan.Gather(grad_logits, states * actions_, grad_score);
  KeptRows& kept = scratch.kept;
  kept.Choose(plan, states, grad_score);
  const std::int64_t rows = kept.rows;
  float* active1 = scratch.active1.data();
  float* active2 = scratch.active2.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = kept.row[static_cast<std::size_t>(row)];
    std::copy_n(act.hidden1.data() + from * hidden_, hidden_, active1 + row * hidden_);
    std::copy_n(act.hidden2.data() + from * hidden_, hidden_, active2 + row * hidden_);
  }
  kernels_.silu(active1, rows, hidden_, active1, scratch.slope1.data());
  kernels_.silu(active2, rows, hidden_, active2, scratch.slope2.data());
  // Through the dot product: d w3 = active2^T g, d b3 = sum g.
  kernels_.multiply_add(grad_score, rows, 1, rows, active2, hidden_, gradient + w3_);
  for (std::int64_t row = 0; row < rows; ++row) gradient[b3_] += grad_score[row];
  float* grad2 = scratch.grad2.data();
  kernels_.dot_backward(grad_score, rows, hidden_, P(w3_), scratch.slope2.data(), grad2);
  kernels_.outer_add(active1, hidden_, rows, hidden_, grad2, hidden_, gradient + w2_);
  kernels_.column_sum(grad2, rows, hidden_, gradient + b2_);
  float* grad1 = scratch.grad1.data();
  std::fill_n(grad1, rows * hidden_, 0.0F);
  kernels_.multiply_add(grad2, hidden_, rows, hidden_, w2_transposed_.data(), hidden_, grad1);
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
  const Activations& act = saved_[static_cast<std::size_t>(chunk.index)];
  ScorerScratch& scratch = ScratchOf(chunk);
  const int states = chunk.states;
  float* active1 = scratch.active1.data();
  float* active2 = scratch.active2.data();
  kernels_.silu(act.value1.data(), states, value_hidden_, active1, scratch.slope1.data());
  kernels_.silu(act.value2.data(), states, value_hidden_, active2, scratch.slope2.data());
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
  std::fill_n(grad1, states * value_hidden_, 0.0F);
  kernels_.multiply_add(grad2, value_hidden_, states, value_hidden_, value_w2_transposed_.data(),
                        value_hidden_, grad1);
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
