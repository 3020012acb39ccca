#include "lib/nn/scorer.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/scorer_parts.h"
#include "lib/nn/scorer_rows.h"
#include "lib/nn/thread_team.h"

namespace tetrion {
namespace {

// What Backward needs of a chunk: its rows and the inputs of the four SiLUs.
struct Activations {
  void Allocate(int actions, int action_floats, std::int64_t units) {
    const auto cells = static_cast<std::size_t>(kScorerChunk * actions);
    rows.Allocate(kScorerChunk, actions, action_floats);
    const auto width = static_cast<std::size_t>(units);
    for (auto* hidden : {&hidden1, &hidden2}) hidden->resize(cells * width);
    for (auto* hidden : {&value1, &value2})
      hidden->resize(kScorerChunk * kScorerValueTimes * width);
  }

  ScorerRows rows;
  std::vector<float> hidden1, hidden2;  // [rows, H] before SiLU
  std::vector<float> value1, value2;    // [states, 2 H] before SiLU
};

// Buffers of one team member, overwritten with every chunk.
struct ScorerScratch {
  ScorerScratch(int actions, int action_floats, std::int64_t units, std::size_t parameter_count,
                bool training, bool own_gradient) {
    const auto cells = static_cast<std::size_t>(kScorerChunk * actions);
    const auto width = static_cast<std::size_t>(units);
    const std::size_t wide = std::max(cells, std::size_t{kScorerChunk * kScorerValueTimes}) * width;
    inference.Allocate(actions, action_floats, units);
    state_part.resize(kScorerChunk * width);
    score.resize(cells);
    active1.resize(wide);
    active2.resize(wide);
    if (!training) return;
    slope1.resize(wide);
    slope2.resize(wide);
    grad1.resize(wide);
    grad2.resize(wide);
    kept.Allocate(kScorerChunk, actions, action_floats);
    if (own_gradient) gradient.resize(parameter_count);
  }

  Activations inference;
  std::vector<float> state_part;        // [states, H]; in Backward its gradient
  std::vector<float> score;             // [rows]; in Backward its gradient
  std::vector<float> active1, active2;  // after SiLU
  std::vector<float> slope1, slope2;    // SiLU'
  std::vector<float> grad1, grad2;      // loss gradient before SiLU
  KeptRows kept;
  std::vector<float> gradient;  // [parameters] of this member; member 0 adds to the network's
};

class Scorer final : public Network {
 public:
  Scorer(const NetworkConfig& config, const EnvSpec& env)
      : actions_(env.action.count),
        action_floats_(env.obs.action_floats),
        state_floats_(env.obs.view_floats - std::int64_t{actions_} * action_floats_),
        view_floats_(env.obs.view_floats),
        max_states_(config.max_states),
        hidden_(config.scorer_units),
        value_hidden_(kScorerValueTimes * config.scorer_units),
        kernels_(BestDenseKernels()),
        team_(std::max(1, config.threads)) {
    name_ = "scorer";
    DeclareParameters();
    AllocateBuffers(config.training);
    InitialiseScorer(layout_, w3_, value_w3_, config.seed, parameters());
    for (int member = 0; member < team_.size(); ++member) {
      scratch_.emplace_back(actions_, action_floats_, hidden_, parameters_.size(), config.training,
                            member > 0);
    }
    if (!config.training) return;
    saved_.resize(static_cast<std::size_t>(ScorerChunks(max_states_)));
    for (Activations& saved : saved_) saved.Allocate(actions_, action_floats_, hidden_);
    w2_transposed_.resize(static_cast<std::size_t>(hidden_ * hidden_));
    value_w2_transposed_.resize(static_cast<std::size_t>(value_hidden_ * value_hidden_));
  }

  void Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
             float* value) override {
    Run(view, mask, n, logits, value, /*save=*/false);
  }

  void Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
               float* value) override {
    TETRION_CHECK(!gradients_.empty(), "Forward is for networks made for training");
    Run(view, mask, n, logits, value, /*save=*/true);
    forward_view_ = view;
    forward_states_ = n;
  }

  void Backward(const float* grad_logits, const float* grad_value) override;

 private:
  void DeclareParameters();
  void Run(const float* view, const std::uint64_t* mask, int n, float* logits, float* value,
           bool save);
  void ScoreChunk(const float* view, const std::uint64_t* mask, int states, Activations& act,
                  ScorerScratch& scratch, float* logits);
  void ValueChunk(const float* view, int states, Activations& act, ScorerScratch& scratch,
                  float* value);
  void ScoreChunkBackward(const float* view, int states, const Activations& act,
                          const float* grad_logits, ScorerScratch& scratch, float* gradient);
  void ValueChunkBackward(const float* view, int states, const Activations& act,
                          const float* grad_value, ScorerScratch& scratch, float* gradient);
  const float* P(std::size_t offset) const { return parameters_.data() + offset; }

  const int actions_;
  const int action_floats_;          // F, of an afterstate
  const std::int64_t state_floats_;  // S
  const std::int64_t view_floats_;
  const int max_states_;
  const std::int64_t hidden_;        // H, of the shared scoring network
  const std::int64_t value_hidden_;  // of the value network
  const DenseKernels& kernels_;
  ThreadTeam team_;
  std::vector<ScorerScratch> scratch_;  // one a member
  std::vector<Activations> saved_;      // one a chunk of the last Forward
  std::vector<float> w2_transposed_, value_w2_transposed_;
  const float* forward_view_ = nullptr;
  int forward_states_ = 0;
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

void Scorer::Run(const float* view, const std::uint64_t* mask, int n, float* logits, float* value,
                 bool save) {
  TETRION_CHECK(n >= 0 && n <= max_states_, "more states than the network was made for");
  ForEachScorerChunk(team_, n, [&](int member, int chunk, int begin, int states) {
    ScorerScratch& scratch = scratch_[static_cast<std::size_t>(member)];
    Activations& act = save ? saved_[static_cast<std::size_t>(chunk)] : scratch.inference;
    const float* chunk_view = view + begin * view_floats_;
    if (logits != nullptr || save) {
      ScoreChunk(chunk_view, mask == nullptr ? nullptr : mask + begin, states, act, scratch,
                 logits == nullptr ? nullptr : logits + std::int64_t{begin} * actions_);
    }
    if (value != nullptr || save) {
      ValueChunk(chunk_view, states, act, scratch, value == nullptr ? nullptr : value + begin);
    }
  });
}

void Scorer::ScoreChunk(const float* view, const std::uint64_t* mask, int states, Activations& act,
                        ScorerScratch& scratch, float* logits) {
  ScorerRows& plan = act.rows;
  plan.Plan(view, view_floats_, mask, states, actions_);
  const std::int64_t rows = plan.rows;
  float* state_part = scratch.state_part.data();
  FillRows(P(b1_), states, hidden_, state_part);
  kernels_.multiply_add(view + std::int64_t{actions_} * action_floats_, view_floats_, states,
                        state_floats_, P(state_w_), hidden_, state_part);
  float* hidden1 = act.hidden1.data();
  for (int s = 0; s < states; ++s) {
    const std::int32_t begin = plan.first[static_cast<std::size_t>(s)];
    FillRows(state_part + s * hidden_, plan.first[static_cast<std::size_t>(s) + 1] - begin, hidden_,
             hidden1 + std::int64_t{begin} * hidden_);
  }
  kernels_.multiply_add(plan.after.data(), action_floats_, rows, action_floats_, P(after_w_),
                        hidden_, hidden1);
  kernels_.silu(hidden1, rows, hidden_, scratch.active1.data(), nullptr);
  float* hidden2 = act.hidden2.data();
  FillRows(P(b2_), rows, hidden_, hidden2);
  kernels_.multiply_add(scratch.active1.data(), hidden_, rows, hidden_, P(w2_), hidden_, hidden2);
  kernels_.silu(hidden2, rows, hidden_, scratch.active2.data(), nullptr);
  kernels_.dot(scratch.active2.data(), rows, hidden_, P(w3_), *P(b3_), scratch.score.data());
  if (logits == nullptr) return;
  for (int cell = 0; cell < states * actions_; ++cell) {
    const std::int32_t row = plan.row_of[static_cast<std::size_t>(cell)];
    logits[cell] = row < 0 ? kMaskedLogit : scratch.score[static_cast<std::size_t>(row)];
  }
}

void Scorer::ValueChunk(const float* view, int states, Activations& act, ScorerScratch& scratch,
                        float* value) {
  FillRows(P(value_b1_), states, value_hidden_, act.value1.data());
  kernels_.multiply_add(view + std::int64_t{actions_} * action_floats_, view_floats_, states,
                        state_floats_, P(value_w1_), value_hidden_, act.value1.data());
  kernels_.silu(act.value1.data(), states, value_hidden_, scratch.active1.data(), nullptr);
  FillRows(P(value_b2_), states, value_hidden_, act.value2.data());
  kernels_.multiply_add(scratch.active1.data(), value_hidden_, states, value_hidden_, P(value_w2_),
                        value_hidden_, act.value2.data());
  if (value == nullptr) return;
  kernels_.silu(act.value2.data(), states, value_hidden_, scratch.active2.data(), nullptr);
  kernels_.dot(scratch.active2.data(), states, value_hidden_, P(value_w3_), *P(value_b3_), value);
}

void Scorer::Backward(const float* grad_logits, const float* grad_value) {
  TETRION_CHECK(forward_view_ != nullptr, "Backward needs a Forward");
  TransposeSquare(P(w2_), hidden_, w2_transposed_.data());
  TransposeSquare(P(value_w2_), value_hidden_, value_w2_transposed_.data());
  for (ScorerScratch& scratch : scratch_)
    std::fill(scratch.gradient.begin(), scratch.gradient.end(), 0.0F);
  ForEachScorerChunk(team_, forward_states_, [&](int member, int chunk, int begin, int states) {
    ScorerScratch& scratch = scratch_[static_cast<std::size_t>(member)];
    const Activations& act = saved_[static_cast<std::size_t>(chunk)];
    float* gradient = member == 0 ? gradients_.data() : scratch.gradient.data();
    const float* view = forward_view_ + begin * view_floats_;
    ScoreChunkBackward(view, states, act, grad_logits + std::int64_t{begin} * actions_, scratch,
                       gradient);
    ValueChunkBackward(view, states, act, grad_value + begin, scratch, gradient);
  });
  for (std::size_t member = 1; member < scratch_.size(); ++member) {
    const std::vector<float>& part = scratch_[member].gradient;
    for (std::size_t i = 0; i < part.size(); ++i) gradients_[i] += part[i];
  }
  forward_view_ = nullptr;
}

void Scorer::ScoreChunkBackward(const float* view, int states, const Activations& act,
                                const float* grad_logits, ScorerScratch& scratch, float* gradient) {
  const ScorerRows& plan = act.rows;
  float* grad_score = scratch.score.data();
  std::fill_n(grad_score, plan.rows, 0.0F);
  for (int cell = 0; cell < states * actions_; ++cell) {
    const std::int32_t row = plan.row_of[static_cast<std::size_t>(cell)];
    if (row >= 0) grad_score[row] += grad_logits[cell];
  }
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
  kernels_.outer_add(view + std::int64_t{actions_} * action_floats_, view_floats_, states,
                     state_floats_, grad_state, hidden_, gradient + state_w_);
  kernels_.column_sum(grad_state, states, hidden_, gradient + b1_);
}

void Scorer::ValueChunkBackward(const float* view, int states, const Activations& act,
                                const float* grad_value, ScorerScratch& scratch, float* gradient) {
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
  kernels_.outer_add(view + std::int64_t{actions_} * action_floats_, view_floats_, states,
                     state_floats_, grad1, value_hidden_, gradient + value_w1_);
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
