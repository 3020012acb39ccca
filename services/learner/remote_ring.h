#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/shm/ring_consumer.h"
#include "services/learner/remote_board.h"
#include "services/learner/row_source.h"

namespace tetrion::learner {

// The rows of a worker of another host: the ring that the rows thread writes them into. A silent
// actor counts as dead.
class RemoteRing final : public RowSource {
 public:
  // `stream` was taken from the board.
  RemoteRing(SourceId id, std::shared_ptr<RemoteStream> stream);
  ~RemoteRing() override { End(); }

  SourceRows Peek() override;
  void Release(std::uint64_t n) override { ring_.Release(n); }
  bool HasNews() override;
  void LookAgain() override { (void)ring_.Peek(ring_.head() - ring_.tail()); }
  std::uint64_t next_row() const override { return ring_.tail(); }
  std::uint64_t backlog_rows() const override { return ring_.head() - ring_.tail(); }
  std::uint64_t capacity_rows() const override { return ring_.capacity(); }
  std::span<std::byte> memory() override { return ring_.mapping(); }
  const std::string& problem() const override;
  // Nothing is left on this host.
  bool TryRemove() override {
    End();
    return true;
  }
  void Remove() override { End(); }

 private:
  // Each pairs with the rows thread.
  bool Silent() const { return stream_->silent.load(std::memory_order_acquire); }
  bool Broken() const { return stream_->broken.load(std::memory_order_acquire); }
  void End() { stream_->ended.store(true, std::memory_order_release); }

  const std::shared_ptr<RemoteStream> stream_;
  RingConsumer ring_;
};

}  // namespace tetrion::learner
