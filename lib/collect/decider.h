#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/policy/inference_client.h"
#include "lib/policy/policy.h"
#include "lib/weights/weights_source.h"

namespace tetrion {

enum class [[nodiscard]] Decision {
  kDecided,
  kLater,      // publish the row; Take gives the answer
  kNotFinite,  // the policy gave NaN or infinite logits
  kGiveUp,     // the policy cannot decide for a reason of its own: no sign of broken weights
};

// Chooses the actions of a lane loop's rows. LocalDecider fills a row at once with a policy of its
// own; StreamedDecider has it decided by another process, so that the row is published without
// actions and the answer is taken before the next row is made. One worker thread calls everything.
class Decider {
 public:
  virtual ~Decider() = default;

  // Whether rows are published before they are decided; their answers come by Take.
  virtual bool answers_later() const = 0;
  // What the worker waits for while the state is not kReady.
  virtual WaitReason waits_for() const = 0;
  // Whether a row made now could be decided; waits at most `timeout_ns` while it could not. Throws
  // Error(kTryAgain) with the reason where the state would be kBroken.
  virtual AnswererState Look(std::int64_t timeout_ns) = 0;
  // Writes action and log_prob of every lane of `row` on kDecided only. `env` wrote the row.
  virtual Decision Decide(const RowView& row, const VecEnv& env) = 0;
  // The answer to row number `row`, which was published after kLater: writes actions [M] i32 on
  // kAnswer only. Waits at most `timeout_ns`. Throws Error(kTryAgain) with the reason where the
  // result would be kBroken. CHECKs that answers come later.
  virtual AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::int64_t timeout_ns);
  // The process on the other side of weights or answers has ended. One system call.
  virtual bool PeerGone() const = 0;
  // Version that chose the newest actions; 0 before any.
  virtual std::uint32_t version() const = 0;
};

// Decides with a policy in this process. `weights` is null for policies without weights, else it
// must outlive the decider.
class LocalDecider final : public Decider {
 public:
  LocalDecider(std::unique_ptr<Policy> policy, WeightsSource* weights, int lanes);

  bool answers_later() const override { return false; }
  WaitReason waits_for() const override { return WaitReason::kWeights; }
  AnswererState Look(std::int64_t timeout_ns) override;
  Decision Decide(const RowView& row, const VecEnv& env) override;
  bool PeerGone() const override { return weights_ != nullptr && weights_->LearnerGone(); }
  std::uint32_t version() const override { return policy_->version(); }

 private:
  bool Fresh() { return weights_ == nullptr || weights_->Refresh(*policy_); }

  const std::unique_ptr<Policy> policy_;
  WeightsSource* const weights_;
  std::vector<std::uint32_t> lane_ids_;   // [M] 0..M-1
  std::vector<std::uint64_t> masks_;      // [M] scratch: masks with no legal action widened
  std::vector<std::uint64_t> token_ids_;  // [M] scratch
  std::vector<std::uint32_t> steps_;      // [M] scratch
};

// Has rows decided by `client`'s other end; `client` must outlive the decider.
class StreamedDecider final : public Decider {
 public:
  explicit StreamedDecider(InferenceClient& client) : client_(client) {}

  bool answers_later() const override { return true; }
  WaitReason waits_for() const override { return WaitReason::kAnswer; }
  AnswererState Look(std::int64_t timeout_ns) override;
  Decision Decide(const RowView&, const VecEnv&) override { return Decision::kLater; }
  AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::int64_t timeout_ns) override;
  bool PeerGone() const override { return client_.AnswererGone(); }
  std::uint32_t version() const override { return version_; }

 private:
  InferenceClient& client_;
  std::uint32_t version_ = 0;  // of the last answer
};

}  // namespace tetrion
