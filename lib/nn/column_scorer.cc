#include "lib/nn/column_scorer.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/board_net.h"
#include "lib/nn/scorer_parts.h"
#include "lib/nn/scorer_rows.h"
#include "lib/nn/thread_team.h"

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
  std::vector<float> gradient;  // [parameters]; member 0 adds to the network's
};

class ColumnScorer final : public Network {
 public:
  ColumnScorer(const NetworkConfig& config, const EnvSpec& env)
      : actions_(env.action.count),
        columns_(env.obs.board_columns),
        action_floats_(env.obs.action_floats),
        view_floats_(env.obs.view_floats),
        state_floats_(static_cast<int>(view_floats_ - std::int64_t{actions_} * action_floats_)),
        max_states_(config.max_states),
        policy_("score", columns_, RowFloats() - columns_, config.scorer_units, Adder()),
        value_("value", columns_, state_floats_ - columns_,
               kScorerValueTimes * std::int64_t{config.scorer_units}, Adder()),
        team_(std::max(1, config.threads), "columns") {
    name_ = "columns";
    AllocateBuffers(config.training);
    InitialiseScorer(layout_, policy_.head_weight(), value_.head_weight(), config.seed,
                     parameters());
    const int most_rows = kScorerChunk * actions_;
    for (int member = 0; member < team_.size(); ++member) {
      ColumnScratch& scratch = scratch_.emplace_back();
      scratch.rows.Allocate(kScorerChunk, actions_, action_floats_);
      scratch.boards.resize(static_cast<std::size_t>(most_rows * RowFloats()));
      scratch.score.resize(static_cast<std::size_t>(most_rows));
      policy_.Allocate(most_rows, config.training, scratch.policy);
      value_.Allocate(kScorerChunk, config.training, scratch.value);
      if (!config.training) continue;
      scratch.kept.Allocate(kScorerChunk, actions_, action_floats_);
      scratch.unused.resize(static_cast<std::size_t>(most_rows));
      if (member > 0) scratch.gradient.resize(parameters_.size());
    }
    if (!config.training) return;
    saved_.resize(static_cast<std::size_t>(ScorerChunks(max_states_)));
    for (ScorerRows& rows : saved_) rows.Allocate(kScorerChunk, actions_, action_floats_);
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
  // Of what the policy's net reads of a placement: its row, and the state without its board.
  int RowFloats() const { return action_floats_ + state_floats_ - columns_; }
  BoardNet::AddTensor Adder() {
    return [this](const std::string& name, std::vector<std::int64_t> shape) {
      return AddParameter(name, std::move(shape));
    };
  }

  void Run(const float* view, const std::uint64_t* mask, int n, float* logits, float* value,
           bool save);
  void ChunkBackward(const float* view, int states, const ScorerRows& rows,
                     const float* grad_logits, const float* grad_value, ColumnScratch& scratch,
                     float* gradient);
  // What the policy's net reads: rows `after` [first[states], F], each with its state's rest.
  void WriteBoards(const float* view, int states, const std::vector<std::int32_t>& first,
                   const std::vector<float>& after, std::vector<float>& boards) const;
  const float* StateOf(const float* view, int s) const {
    return view + s * view_floats_ + std::int64_t{actions_} * action_floats_;
  }
  // The state parts of a chunk, one behind the other.
  void CopyStates(const float* view, int states, std::vector<float>& boards) const;

  const int actions_, columns_, action_floats_;
  const std::int64_t view_floats_;
  const int state_floats_;
  const int max_states_;
  const BoardNet policy_, value_;
  ThreadTeam team_;
  std::vector<ColumnScratch> scratch_;  // one a member
  std::vector<ScorerRows> saved_;       // one a chunk of the last Forward
  BoardNet::Transposed policy_transposed_, value_transposed_;
  const float* forward_view_ = nullptr;
  int forward_states_ = 0;
};

void ColumnScorer::WriteBoards(const float* view, int states,
                               const std::vector<std::int32_t>& first,
                               const std::vector<float>& after, std::vector<float>& boards) const {
  const int rest = state_floats_ - columns_;
  float* out = boards.data();
  for (int s = 0; s < states; ++s) {
    const float* state = StateOf(view, s) + columns_;
    for (std::int32_t row = first[static_cast<std::size_t>(s)];
         row < first[static_cast<std::size_t>(s) + 1]; ++row) {
      out = std::copy_n(after.data() + std::int64_t{row} * action_floats_, action_floats_, out);
      out = std::copy_n(state, rest, out);
    }
  }
}

void ColumnScorer::CopyStates(const float* view, int states, std::vector<float>& boards) const {
  for (int s = 0; s < states; ++s) {
    std::copy_n(StateOf(view, s), state_floats_, boards.data() + std::int64_t{s} * state_floats_);
  }
}

void ColumnScorer::Run(const float* view, const std::uint64_t* mask, int n, float* logits,
                       float* value, bool save) {
  TETRION_CHECK(n >= 0 && n <= max_states_, "more states than the network was made for");
  ForEachScorerChunk(team_, n, [&](int member, int chunk, int begin, int states) {
    ColumnScratch& scratch = scratch_[static_cast<std::size_t>(member)];
    const float* of_chunk = view + begin * view_floats_;
    if (logits != nullptr || save) {
      ScorerRows& rows = save ? saved_[static_cast<std::size_t>(chunk)] : scratch.rows;
      rows.Plan(of_chunk, view_floats_, mask == nullptr ? nullptr : mask + begin, states, actions_);
      if (logits != nullptr) {
        WriteBoards(of_chunk, states, rows.first, rows.after, scratch.boards);
        policy_.Forward(parameters_.data(), scratch.boards.data(), rows.rows, scratch.policy,
                        scratch.score.data());
        float* out = logits + std::int64_t{begin} * actions_;
        for (int cell = 0; cell < states * actions_; ++cell) {
          const std::int32_t row = rows.row_of[static_cast<std::size_t>(cell)];
          out[cell] = row < 0 ? kMaskedLogit : scratch.score[static_cast<std::size_t>(row)];
        }
      }
    }
    if (value == nullptr) return;
    CopyStates(of_chunk, states, scratch.boards);
    value_.Forward(parameters_.data(), scratch.boards.data(), states, scratch.value, value + begin);
  });
}

void ColumnScorer::Backward(const float* grad_logits, const float* grad_value) {
  TETRION_CHECK(forward_view_ != nullptr, "Backward needs a Forward");
  policy_.Transpose(parameters_.data(), policy_transposed_);
  value_.Transpose(parameters_.data(), value_transposed_);
  for (ColumnScratch& scratch : scratch_) {
    std::fill(scratch.gradient.begin(), scratch.gradient.end(), 0.0F);
  }
  ForEachScorerChunk(team_, forward_states_, [&](int member, int chunk, int begin, int states) {
    ColumnScratch& scratch = scratch_[static_cast<std::size_t>(member)];
    ChunkBackward(forward_view_ + begin * view_floats_, states,
                  saved_[static_cast<std::size_t>(chunk)],
                  grad_logits + std::int64_t{begin} * actions_, grad_value + begin, scratch,
                  member == 0 ? gradients_.data() : scratch.gradient.data());
  });
  for (std::size_t member = 1; member < scratch_.size(); ++member) {
    const std::vector<float>& part = scratch_[member].gradient;
    for (std::size_t i = 0; i < part.size(); ++i) gradients_[i] += part[i];
  }
  forward_view_ = nullptr;
}

void ColumnScorer::ChunkBackward(const float* view, int states, const ScorerRows& rows,
                                 const float* grad_logits, const float* grad_value,
                                 ColumnScratch& scratch, float* gradient) {
  float* grad_score = scratch.score.data();
  std::fill_n(grad_score, rows.rows, 0.0F);
  for (int cell = 0; cell < states * actions_; ++cell) {
    const std::int32_t row = rows.row_of[static_cast<std::size_t>(cell)];
    if (row >= 0) grad_score[row] += grad_logits[cell];
  }
  KeptRows& kept = scratch.kept;
  kept.Choose(rows, states, grad_score);
  WriteBoards(view, states, kept.first, kept.after, scratch.boards);
  policy_.Forward(parameters_.data(), scratch.boards.data(), static_cast<int>(kept.rows),
                  scratch.policy, scratch.unused.data());
  policy_.Backward(parameters_.data(), policy_transposed_, scratch.boards.data(), grad_score,
                   scratch.policy, gradient);
  CopyStates(view, states, scratch.boards);
  value_.Forward(parameters_.data(), scratch.boards.data(), states, scratch.value,
                 scratch.unused.data());
  value_.Backward(parameters_.data(), value_transposed_, scratch.boards.data(), grad_value,
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
