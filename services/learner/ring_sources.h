#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/shm/ring_consumer.h"
#include "services/learner/boards.h"
#include "services/learner/row_source.h"

namespace tetrion::learner {

// The rows of a worker of this host that decides by itself: its ring.
class LocalRing final : public RowSource {
 public:
  // How often the owner of a ring without rows is looked at.
  static constexpr std::int64_t kDeadCheckNs = 50 * kNanosPerMilli;

  // The ring's records are rows of the run.
  LocalRing(SourceId id, RingConsumer ring, const Clock& clock);

  SourceRows Peek() override;
  void Release(std::uint64_t n) override { ring_.Release(n); }
  bool HasNews() override { return ring_.Peek().status != RingStatus::kEmpty; }
  void LookAgain() override { (void)ring_.Peek(ring_.head() - ring_.tail()); }
  std::uint64_t next_row() const override { return ring_.tail(); }
  std::uint64_t backlog_rows() const override { return ring_.head() - ring_.tail(); }
  std::uint64_t capacity_rows() const override { return ring_.capacity(); }
  std::span<std::byte> memory() override { return ring_.mapping(); }
  const std::string& problem() const override { return problem_; }
  bool TryRemove() override { return ring_.TryUnlink(); }
  void Remove() override { ring_.Unlink(); }

  // Whether the owner's process is dead. Looks each kDeadCheckNs and says false in between.
  bool FindsOwnerDead();

 private:
  const Clock& clock_;
  RingConsumer ring_;
  std::int64_t next_dead_check_ns_ = 0;
  std::string problem_;
};

// The rows of a streamed worker of this host: its ring, as far as inference has answered. Rows that
// no policy has decided, or will, are passed over as void.
class InferredRing final : public RowSource {
 public:
  // How long rows of a dead worker wait for their answers before they are void.
  static constexpr std::int64_t kLastAnswersNs = 500 * kNanosPerMilli;

  // `share` is what inference was given.
  InferredRing(SourceId id, RingConsumer ring, std::shared_ptr<StreamShare> share,
               const Clock& clock);

  SourceRows Peek() override;
  void Release(std::uint64_t n) override { ring_.Release(n); }
  bool HasNews() override;
  void LookAgain() override { ring_.LookAgain(); }
  std::uint64_t next_row() const override { return ring_.next_row(); }
  std::uint64_t backlog_rows() const override { return ring_.backlog_rows(); }
  std::uint64_t capacity_rows() const override { return ring_.capacity_rows(); }
  std::span<std::byte> memory() override { return ring_.memory(); }
  const std::string& problem() const override;
  bool TryRemove() override;
  void Remove() override;

 private:
  // Each pairs with inference.
  bool Broken() const { return share_->broken.load(std::memory_order_acquire); }
  void EndShare() { share_->ended.store(true, std::memory_order_release); }
  std::uint64_t GiveUpUnanswered();

  const Clock& clock_;
  LocalRing ring_;  // without an id of its own
  const std::shared_ptr<StreamShare> share_;
  std::int64_t dead_since_ns_ = 0;  // when the owner was first found dead with rows unanswered
};

}  // namespace tetrion::learner
