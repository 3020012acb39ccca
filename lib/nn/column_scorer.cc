#include "lib/nn/column_scorer.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/board_net.h"
#include "lib/nn/chunked_scorer.h"
#include "lib/nn/scorer_rows.h"

namespace tetrion {
namespace {

// Buffers of one team member, overwritten with every chunk.
struct ColumnScratch {
  ScorerRows rows;            // of a call that keeps none
  KeptRows kept;              // of Backward
  std::vector<float> boards;  // [rows, F + rest of the state]
  std::vector<float> score;   // [rows]; in Backward its slopes
  std::vector<float> unused;  // what a net says again in Backward
  BoardNet::Workspace policy, value;
};

class ColumnScorer final : public ChunkedScorer {
 public:
  ColumnScorer(const NetworkConfig& config, const EnvSpec& env)
      : ChunkedScorer(config, env, "columns"),
        columns_(env.obs.board_columns),
        policy_("score", columns_, RowFloats() - columns_, config.scorer_units, config.precision,
                Adder()),
        value_("value", columns_, static_cast<int>(state_floats_) - columns_,
               kScorerValueTimes * std::int64_t{config.scorer_units}, config.precision, Adder()),
        packed_policy_(policy_.AllocatePacked()),
        packed_value_(value_.AllocatePacked()) {
    AllocateWeights(config, policy_.head_weight(), value_.head_weight());
    const int most_rows = kChunk * actions_;
    for (int member = 0; member < members(); ++member) {
      ColumnScratch& scratch = scratch_.emplace_back();
      scratch.rows.Allocate(kChunk, actions_, action_floats_);
      scratch.boards.resize(static_cast<std::size_t>(most_rows * RowFloats()));
      scratch.score.resize(static_cast<std::size_t>(most_rows));
      policy_.Allocate(most_rows, config.training, scratch.policy);
      value_.Allocate(kChunk, config.training, scratch.value);
      if (!config.training) continue;
      scratch.kept.Allocate(kChunk, actions_, action_floats_);
      scratch.unused.resize(static_cast<std::size_t>(most_rows));
    }
    if (!config.training) return;
    saved_.resize(static_cast<std::size_t>(most_chunks()));
    for (ScorerRows& rows : saved_) rows.Allocate(kChunk, actions_, action_floats_);
  }

 private:
  void ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) override;
  void PrepareForward() override {
    policy_.PackForward(parameters_.data(), packed_policy_);
    value_.PackForward(parameters_.data(), packed_value_);
  }
  void PrepareBackward() override {
    policy_.PackBackward(parameters_.data(), packed_policy_);
    value_.PackBackward(parameters_.data(), packed_value_);
  }
  void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                     float* gradient) override;

  // Of what the policy's net reads of a placement: its row, and the state without its board.
  int RowFloats() const { return action_floats_ + static_cast<int>(state_floats_) - columns_; }
  BoardNet::AddTensor Adder() {
    return [this](const std::string& name, std::vector<std::int64_t> shape) {
      return AddParameter(name, std::move(shape));
    };
  }
  ColumnScratch& ScratchOf(const Chunk& chunk) {
    return scratch_[static_cast<std::size_t>(chunk.member)];
  }
  // What the policy's net reads: rows `after` [first[states], F], each with its state's rest.
  void WriteBoards(const Chunk& chunk, const std::vector<std::int32_t>& first,
                   const std::vector<float>& after, std::vector<float>& boards) const;
  // The state parts of a chunk, one behind the other.
  void CopyStates(const Chunk& chunk, std::vector<float>& boards) const;

  const int columns_;
  const BoardNet policy_, value_;
  std::vector<ColumnScratch> scratch_;  // one a member
  std::vector<ScorerRows> saved_;       // one a chunk of the last Forward
  BoardNet::Packed packed_policy_, packed_value_;
};

void ColumnScorer::WriteBoards(const Chunk& chunk, const std::vector<std::int32_t>& first,
                               const std::vector<float>& after, std::vector<float>& boards) const {
  const std::int64_t rest = state_floats_ - columns_;
  float* out = boards.data();
  for (int s = 0; s < chunk.states; ++s) {
    const float* state = StateOf(chunk.view, s) + columns_;
    for (std::int32_t row = first[static_cast<std::size_t>(s)];
         row < first[static_cast<std::size_t>(s) + 1]; ++row) {
      out = std::copy_n(after.data() + std::int64_t{row} * action_floats_, action_floats_, out);
      out = std::copy_n(state, rest, out);
    }
  }
}

void ColumnScorer::CopyStates(const Chunk& chunk, std::vector<float>& boards) const {
  for (int s = 0; s < chunk.states; ++s) {
    std::copy_n(StateOf(chunk.view, s), state_floats_, boards.data() + s * state_floats_);
  }
}

void ColumnScorer::ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) {
  ColumnScratch& scratch = ScratchOf(chunk);
  if (logits != nullptr || keep) {
    ScorerRows& rows = keep ? saved_[static_cast<std::size_t>(chunk.index)] : scratch.rows;
    if (!chunk.known) {
      rows.Plan(chunk.view, view_floats_, chunk.mask, chunk.states, actions_);
    }
    if (logits != nullptr) {
      WriteBoards(chunk, rows.first, rows.after, scratch.boards);
      policy_.Forward(parameters_.data(), packed_policy_, scratch.boards.data(), rows.rows,
                      /*slopes=*/false, scratch.policy, scratch.score.data());
      rows.Scatter(scratch.score.data(), chunk.states * actions_, logits);
    }
  }
  if (value == nullptr) return;
  CopyStates(chunk, scratch.boards);
  value_.Forward(parameters_.data(), packed_value_, scratch.boards.data(), chunk.states,
                 /*slopes=*/false, scratch.value, value);
}

void ColumnScorer::BackwardChunk(const Chunk& chunk, const float* grad_logits,
                                 const float* grad_value, float* gradient) {
  ColumnScratch& scratch = ScratchOf(chunk);
  const ScorerRows& rows = saved_[static_cast<std::size_t>(chunk.index)];
  float* grad_score = scratch.score.data();
  rows.Gather(grad_logits, chunk.states * actions_, grad_score);
  KeptRows& kept = scratch.kept;
  kept.Choose(rows, chunk.states, grad_score);
  WriteBoards(chunk, kept.first, kept.after, scratch.boards);
  policy_.Forward(parameters_.data(), packed_policy_, scratch.boards.data(),
                  static_cast<int>(kept.rows), /*slopes=*/true, scratch.policy,
                  scratch.unused.data());
  policy_.Backward(parameters_.data(), packed_policy_, scratch.boards.data(), grad_score,
                   scratch.policy, gradient);
  CopyStates(chunk, scratch.boards);
  value_.Forward(parameters_.data(), packed_value_, scratch.boards.data(), chunk.states,
                 /*slopes=*/true, scratch.value, scratch.unused.data());
  value_.Backward(parameters_.data(), packed_value_, scratch.boards.data(), grad_value,
                  scratch.value, gradient);
}

}  // namespace

std::unique_ptr<Network> MakeColumnScorer(const NetworkConfig& config, const EnvSpec& env) {
  if (env.obs.action_floats == 0 || env.obs.board_columns == 0 || env.action.count > 64) {
    throw Error(ExitCode::kUsage,
                "network columns reads views that show the board that each action leads to, "
                "such as afterstates-boards, but " +
                    env.name + " was given view " + env.obs.view +
                    ": choose --network auto or --view afterstates-boards");
  }
  TETRION_CHECK(config.scorer_units > 0 && config.scorer_units % kScorerUnitsStep == 0,
                "the kernels work on whole vectors");
  return std::make_unique<ColumnScorer>(config, env);
}

}  // namespace tetrion
