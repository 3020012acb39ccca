#include "services/learner/remote_ring.h"

#include <utility>

namespace tetrion::learner {

RemoteRing::RemoteRing(SourceId id, std::shared_ptr<RemoteStream> stream)
    : RowSource(std::move(id)),
      stream_(std::move(stream)),
      ring_(RingConsumer::Beside(stream_->producer)) {}

SourceRows RemoteRing::Peek() {
  if (Broken()) return {.state = SourceState::kUnusable};
  const bool silent = Silent();  // first: what was published before is then found
  const RingPeek peek = ring_.Peek();
  switch (peek.status) {
    case RingStatus::kEmpty:
      return {.state = silent ? SourceState::kOwnerDead : SourceState::kNone};
    case RingStatus::kClosedAndEmpty:
      return {.state = SourceState::kClosed};
    case RingStatus::kCorrupt:
      return {.state = SourceState::kUnusable};
    case RingStatus::kOk:
      break;
  }
  return {
      .state = SourceState::kRows, .rows = peek.records, .first = peek.first, .count = peek.count};
}

bool RemoteRing::HasNews() {
  return Broken() || Silent() || ring_.Peek().status != RingStatus::kEmpty;
}

const std::string& RemoteRing::problem() const {
  return Broken() ? stream_->problem : ring_.corrupt_reason();
}

}  // namespace tetrion::learner
