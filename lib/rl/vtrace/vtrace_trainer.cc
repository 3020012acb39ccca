#include "lib/rl/vtrace/vtrace_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/finite.h"
#include "lib/core/setting_check.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/nn/thread_team.h"
#include "lib/rl/guarded_adam.h"
#include "lib/rl/mean_weights.h"
#include "lib/rl/minibatch.h"
#include "lib/rl/parameter_tensors.h"
#include "lib/rl/stage_timer.h"
#include "lib/rl/vtrace/actor_critic_loss.h"
#include "lib/rl/vtrace/vtrace.h"
#include "lib/rl/vtrace/vtrace_figures.h"

namespace tetrion {
namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ExitCode::kUsage, what);
}

void CheckConfig(const VtraceConfig& config, const RowSpec& rows) {
  if (config.window < 1 || config.batch_windows < 1)
    Refuse("window and batch_windows must be >= 1");
  if (config.threads < 1) Refuse("trainer threads must be >= 1");
  VtraceSettings settings = config.settings;
  SettingCheck check;
  settings.Visit(check);
  if (!check.problem().empty()) Refuse(check.problem());
  const std::string misfit = settings.Misfit(config.batch_windows * static_cast<int>(rows.lanes));
  if (!misfit.empty()) Refuse(misfit);
}

class VtraceTrainer final : public Trainer {
 public:
  VtraceTrainer(const VtraceConfig& config, const EnvSpec& env, const RowSpec& rows,
                std::unique_ptr<GradientSync> sync);

  UpdateStats Step(BatchSource& source, std::uint32_t version) override;
  std::span<const FigureInfo> Figures() const override { return kVtraceFigures; }
  void PolicyBlob(std::vector<std::byte>& out) const override;
  std::size_t PolicyBlobBytes() const override { return network_->parameters().size_bytes(); }
  TrainerState Save() const override;
  void Load(const TrainerState& state) override;

 private:
  static constexpr int kParts = 8;  // of the rows of a group

  // Gathers the next batch into groups_ and versions_.
  BatchStatus Take(BatchSource& source, StageTimer& timer, UpdateStats& stats);
  // Fills the lag figures and returns the largest lag of the batch's acting rows.
  std::int64_t MeasureLag(std::uint32_t version, UpdateStats& stats);
  // `again`: the last update was of this group, too.
  void Update(const Minibatch& group, bool again, UpdateStats& stats);
  // The same; figures are this update's whether it is taken or not.
  void TryUpdate(const Minibatch& group, bool again, UpdateStats& stats);
  // Calls work(part) for 0..kParts-1, shared among the team. How many parts there are does not
  // depend on the threads, so neither do sums over them.
  template <typename Work>
  void ForEachPart(const Work& work) {
    const auto one = [&](int, int part) { work(part); };
    team_.Share(kParts, std::cref(one));  // by reference: a copy of it would be allocated
  }
  std::int64_t FirstOf(int part) const { return cells_ * part / kParts; }
  // log_normaliser_, entropy_, log_prob_ and, in grad_logits_, the probabilities of rows [begin,
  // end).
  void FindLogProbs(const Minibatch& group, std::int64_t begin, std::int64_t end);
  // Network outputs, targets, loss and its gradient of a group; nullptr, or what is not finite.
  const char* ForwardAndLoss(const Minibatch& group, bool again, UpdateStats& stats);
  static void Skip(const std::string& problem, UpdateStats& stats);
  // The advantages the policy is trained with, from unweighted_.
  void WeighAdvantage(const Minibatch& group);
  double LearningRate() const;

  // Immutable after construction.
  const VtraceConfig config_;
  const EnvSpec env_;
  const int group_lanes_;     // b
  const std::int64_t cells_;  // T * b: rows with actions of a group
  // State of learning.
  std::unique_ptr<Network> network_;
  ThreadTeam team_;  // for what the network does not do
  GuardedAdam adam_;
  MeanWeights mean_;
  const std::unique_ptr<GradientSync> sync_;
  // Buffers, overwritten by every call.
  std::vector<Minibatch> groups_;
  std::vector<float> logits_, grad_logits_;                   // [T, b, A]
  std::vector<float> log_normaliser_, entropy_;               // [T, b]
  std::vector<float> log_prob_;                               // [T+1, b]
  std::vector<float> value_, grad_value_;                     // [T+1, b], [T, b]
  std::vector<float> target_, advantage_, unweighted_, rho_;  // [T, b]
  std::vector<std::uint32_t> versions_;                       // [T+1, W]
  std::vector<std::int64_t> lags_;                            // [T, W]
  std::int64_t valid_ = 0;                                    // rows of the last loss
};

std::unique_ptr<Network> MakeTrainingNetwork(const VtraceConfig& config, const EnvSpec& env,
                                             std::int64_t states) {
  return MakeNetwork({.name = config.network,
                      .seed = config.seed,
                      .max_states = static_cast<int>(states),
                      .training = true,
                      .threads = config.threads,
                      .scorer_units = config.scorer_units,
                      .precision = config.precision},
                     env);
}

VtraceTrainer::VtraceTrainer(const VtraceConfig& config, const EnvSpec& env, const RowSpec& rows,
                             std::unique_ptr<GradientSync> sync)
    : config_(config),
      env_(env),
      group_lanes_(config.batch_windows * static_cast<int>(rows.lanes) /
                   config.settings.minibatches),
      cells_(std::int64_t{config.window} * group_lanes_),
      network_(MakeTrainingNetwork(config, env, cells_)),
      team_(config.threads, "batch"),
      adam_({.epsilon = config.adam_epsilon, .weight_decay = config.settings.weight_decay},
            config.settings.grad_clip, *network_),
      mean_(config.settings.average_updates, network_->parameters()),
      sync_(std::move(sync)) {
  TETRION_CHECK(rows.record_bytes == env.obs.record_bytes && rows.has_mask == env.action.has_mask,
                "rows must be this environment's");
  for (int g = 0; g < config.settings.minibatches; ++g)
    groups_.emplace_back(env, config.window, group_lanes_);
  const auto cells = static_cast<std::size_t>(cells_);
  const auto with_last = cells + static_cast<std::size_t>(group_lanes_);
  for (auto* buffer : {&logits_, &grad_logits_}) {
    buffer->resize(cells * static_cast<std::size_t>(env.action.count));
  }
  for (auto* buffer :
       {&log_normaliser_, &entropy_, &grad_value_, &target_, &advantage_, &unweighted_, &rho_}) {
    buffer->resize(cells);
  }
  log_prob_.resize(with_last);
  value_.resize(with_last);
  versions_.resize(static_cast<std::size_t>((config.window + 1) * config.batch_windows));
  lags_.resize(static_cast<std::size_t>(config.window * config.batch_windows));
}

UpdateStats VtraceTrainer::Step(BatchSource& source, std::uint32_t version) {
  UpdateStats stats;
  StageTimer timer;
  stats.status = Take(source, timer, stats);
  if (stats.status != BatchStatus::kReady) return stats;
  const std::int64_t lag = MeasureLag(version, stats);
  ForEachPart([this](int part) {
    for (Minibatch& group : groups_) group.Expand(env_, part, kParts);
  });
  timer.AddTo(stats.sample_s);
  for (int pass = 0; pass < config_.settings.reuse; ++pass) {
    // Learners whose rows differ in age make as many passes all the same.
    const bool may_go_on = !source.Ends() && lag + pass <= config_.settings.max_lag;
    if (pass > 0 && !sync_->AllCanStep(may_go_on)) break;
    for (const Minibatch& group : groups_) Update(group, pass > 0 && groups_.size() == 1, stats);
  }
  return stats;
}

// The batch, and with it the lease, ends here: the writer has its rows back before the update.
BatchStatus VtraceTrainer::Take(BatchSource& source, StageTimer& timer, UpdateStats& stats) {
  const TrainBatch batch = source.Next();
  timer.AddTo(stats.wait_s);
  if (batch.status() != BatchStatus::kReady) return batch.status();
  TETRION_CHECK(batch.windows() == config_.batch_windows &&
                    batch.lanes() == group_lanes_ * config_.settings.minibatches,
                "the source's batches must keep the trainer's shape");
  for (int g = 0; g < config_.settings.minibatches; ++g) {
    groups_[static_cast<std::size_t>(g)].Fill(env_, batch, g * group_lanes_,
                                              config_.settings.reward_scale == "symlog");
  }
  batch.GatherVersions(versions_.data());
  return BatchStatus::kReady;
}

std::int64_t VtraceTrainer::MeasureLag(std::uint32_t version, UpdateStats& stats) {
  for (std::size_t i = 0; i < lags_.size(); ++i) {
    lags_[i] = std::max<std::int64_t>(0, std::int64_t{version} - versions_[i]);
  }
  std::sort(lags_.begin(), lags_.end());
  Figure(stats, "lag_p50") = static_cast<double>(lags_[(lags_.size() - 1) / 2]);
  Figure(stats, "lag_p99") = static_cast<double>(lags_[(lags_.size() - 1) * 99 / 100]);
  return lags_.back();
}

void VtraceTrainer::Update(const Minibatch& group, bool again, UpdateStats& stats) {
  const auto figures = stats.figures;
  const int taken = stats.updates;
  TryUpdate(group, again, stats);
  if (taken > 0 && stats.updates == taken) stats.figures = figures;
}

void VtraceTrainer::TryUpdate(const Minibatch& group, bool again, UpdateStats& stats) {
  StageTimer timer;
  const char* wrong = ForwardAndLoss(group, again, stats);
  timer.AddTo(stats.forward_s);
  Figure(stats, "learning_rate") = LearningRate();
  const bool ready = wrong == nullptr && valid_ > 0;
  const bool all_ready = sync_->AllCanStep(ready);
  if (wrong != nullptr) return Skip(wrong, stats);
  if (!ready) return;
  if (!all_ready) return Skip("the loss of another learner", stats);
  const std::span<float> gradients = network_->gradients();
  network_->Backward(grad_logits_.data(), grad_value_.data());
  sync_->AllReduce(gradients);
  timer.AddTo(stats.backward_s);
  const AdamStep step = adam_.Step(*network_, Figure(stats, "learning_rate"));
  Figure(stats, "grad_norm") = step.grad_norm;
  if (step.problem.empty()) {
    ++stats.updates;
    mean_.Add(network_->parameters(), adam_.adam().steps());
  } else {
    Skip(step.problem, stats);
  }
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  timer.AddTo(stats.optimise_s);
}

void VtraceTrainer::Skip(const std::string& problem, UpdateStats& stats) {
  if (stats.skipped++ == 0) stats.problem = problem;
}

void FillFigures(const ActorCriticLoss& loss, const VtraceSummary& summary, const ValueFit& fit,
                 UpdateStats& stats) {
  Figure(stats, "policy_loss") = loss.policy;
  Figure(stats, "value_loss") = loss.value;
  Figure(stats, "entropy") = loss.entropy;
  Figure(stats, "loss") = loss.total;
  Figure(stats, "mean_rho") = summary.mean_rho;
  Figure(stats, "clipped_fraction") = summary.clipped_fraction;
  Figure(stats, "explained_variance") = fit.explained_variance;
  Figure(stats, "target_square") = fit.target_square;
}

const char* FirstNotFinite(std::span<const float> reward, std::span<const float> value,
                           std::span<const float> log_prob) {
  return !AllFinite(reward)     ? "a reward"
         : !AllFinite(value)    ? "the value of a state"
         : !AllFinite(log_prob) ? "the log-probability of an action"
                                : "the loss";
}

const char* VtraceTrainer::ForwardAndLoss(const Minibatch& group, bool again, UpdateStats& stats) {
  const std::uint64_t* mask = group.mask.empty() ? nullptr : group.mask.data();
  // The last row's action is not trained: its value bootstraps, nothing more.
  network_->Infer(group.view.data() + cells_ * env_.obs.view_floats,
                  mask == nullptr ? nullptr : mask + cells_, group_lanes_, nullptr,
                  value_.data() + cells_);
  const auto states = static_cast<int>(cells_);
  if (again) {
    network_->ForwardAgain(group.view.data(), mask, states, logits_.data(), value_.data());
  } else {
    network_->Forward(group.view.data(), mask, states, logits_.data(), value_.data());
  }
  ForEachPart([&](int part) { FindLogProbs(group, FirstOf(part), FirstOf(part + 1)); });
  const VtraceSummary summary =
      ComputeVtrace({.discount = config_.settings.discount,
                     .lambda = config_.settings.lambda,
                     .rho_clip = config_.settings.rho_clip,
                     .c_clip = config_.settings.c_clip},
                    {.steps = config_.window,
                     .lanes = group_lanes_,
                     .behaviour_log_prob = group.behaviour_log_prob.data(),
                     .log_prob = log_prob_.data(),
                     .value = value_.data(),
                     .reward = group.reward.data(),
                     .cont = group.cont.data(),
                     .flags = group.flags.data()},
                    {target_.data(), advantage_.data(), unweighted_.data(), rho_.data()});
  if (config_.settings.normalise_advantage) WeighAdvantage(group);
  // The clipped surrogate weighs by the ratio itself.
  const float* advantage = config_.settings.ppo_clip > 0 ? unweighted_.data() : advantage_.data();
  const ActorCriticInput input = {.rows = cells_,
                                  .actions = env_.action.count,
                                  .logits = logits_.data(),
                                  .log_normaliser = log_normaliser_.data(),
                                  .entropy = entropy_.data(),
                                  .value = value_.data(),
                                  .action = group.action.data(),
                                  .flags = group.flags.data(),
                                  .behaviour_log_prob = group.behaviour_log_prob.data(),
                                  .target = target_.data(),
                                  .advantage = advantage};
  valid_ = CountTrained(input);
  ActorCriticLoss parts[kParts], loss;
  ForEachPart([&](int part) {
    parts[part] = ComputeActorCriticLoss({.value_coef = config_.settings.value_coef,
                                          .entropy_coef = config_.settings.entropy_coef,
                                          .ppo_clip = config_.settings.ppo_clip},
                                         input, FirstOf(part), FirstOf(part + 1), valid_,
                                         grad_logits_.data(), grad_value_.data());
  });
  for (const ActorCriticLoss& part : parts) loss.Add(part);
  FillFigures(loss, summary, MeasureFit(input), stats);
  return std::isfinite(loss.total) ? nullptr : FirstNotFinite(group.reward, value_, log_prob_);
}

void VtraceTrainer::FindLogProbs(const Minibatch& group, std::int64_t begin, std::int64_t end) {
  const int actions = env_.action.count;
  BestDenseKernels().softmax(logits_.data() + begin * actions, end - begin, actions,
                             grad_logits_.data() + begin * actions, log_normaliser_.data() + begin,
                             entropy_.data() + begin);
  for (std::int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    TETRION_CHECK(group.action[at] >= 0 && group.action[at] < actions, "row holds no action");
    log_prob_[at] = logits_[at * static_cast<std::size_t>(actions) +
                            static_cast<std::size_t>(group.action[at])] -
                    log_normaliser_[at];
  }
}

// To mean 0 and deviation 1 first, times rho afterwards: the other way round a row that the policy
// would hardly choose any more would be pushed by the mean of the others.
void VtraceTrainer::WeighAdvantage(const Minibatch& group) {
  double sum = 0, squares = 0, count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cells_); ++i) {
    if ((group.flags[i] & kIsLast) != 0) continue;
    sum += unweighted_[i];
    squares += static_cast<double>(unweighted_[i]) * unweighted_[i];
    ++count;
  }
  if (count < 2) return;
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean)) + 1e-8;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cells_); ++i) {
    unweighted_[i] = static_cast<float>((unweighted_[i] - mean) / deviation);
    advantage_[i] = rho_[i] * unweighted_[i];
  }
}

double VtraceTrainer::LearningRate() const {
  if (config_.settings.decay_updates == 0) return config_.settings.learning_rate;
  const double done = static_cast<double>(adam_.adam().steps()) /
                      static_cast<double>(config_.settings.decay_updates);
  const double share =
      config_.settings.decay == "harmonic" ? 1.0 / (1.0 + done) : std::max(0.0, 1.0 - done);
  return config_.settings.learning_rate * share;
}

void VtraceTrainer::PolicyBlob(std::vector<std::byte>& out) const {
  const std::span<const float> parameters = std::as_const(*network_).parameters();
  out.resize(parameters.size_bytes());
  std::memcpy(out.data(), parameters.data(), parameters.size_bytes());
}

TrainerState VtraceTrainer::Save() const {
  TrainerState state;
  const std::span<const float> parameters = std::as_const(*network_).parameters();
  AppendTensors(network_->layout(), kPlayedPrefix, mean_.is_on() ? mean_.values() : parameters,
                state);
  if (mean_.is_on()) AppendTensors(network_->layout(), kTrainedPrefix, parameters, state);
  AppendTensors(network_->layout(), kAdamMeanPrefix, adam_.adam().mean(), state);
  AppendTensors(network_->layout(), kAdamSquarePrefix, adam_.adam().square(), state);
  state.counters[kUpdatesCounter] = adam_.adam().steps();
  return state;
}

void VtraceTrainer::Load(const TrainerState& state) {
  const std::int64_t updates = ReadUpdates(state);
  // Everything is read before anything is replaced.
  std::vector<float> played(network_->parameters().size()), parameters(played), mean(played),
      square(played);
  const std::size_t pieces = network_->layout().size();
  const bool has_trained = state.tensors.size() == 4 * pieces;
  ReadTensors(network_->layout(), kPlayedPrefix, state, played);
  ReadTensors(network_->layout(), has_trained ? kTrainedPrefix : kPlayedPrefix, state, parameters);
  ReadTensors(network_->layout(), kAdamMeanPrefix, state, mean);
  ReadTensors(network_->layout(), kAdamSquarePrefix, state, square);
  if (state.tensors.size() != (has_trained ? 4 : 3) * pieces) {
    throw Error(ExitCode::kConfig, "the checkpoint has tensors that this trainer does not know");
  }
  std::copy(parameters.begin(), parameters.end(), network_->parameters().begin());
  if (mean_.is_on()) std::copy(played.begin(), played.end(), mean_.values().begin());
  std::copy(mean.begin(), mean.end(), adam_.adam().mean().begin());
  std::copy(square.begin(), square.end(), adam_.adam().square().begin());
  adam_.adam().set_steps(updates);
}

}  // namespace

std::unique_ptr<Trainer> MakeVtraceTrainer(const VtraceConfig& config, const EnvSpec& env,
                                           const RowSpec& rows,
                                           std::unique_ptr<GradientSync> sync) {
  CheckConfig(config, rows);
  return std::make_unique<VtraceTrainer>(config, env, rows, std::move(sync));
}

}  // namespace tetrion
