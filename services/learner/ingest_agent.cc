#include "services/learner/ingest_agent.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/frame/row_check.h"
#include "lib/shm/shm_dir.h"

namespace tetrion::learner {
namespace {

// Rows taken from one ring before the next has its turn.
constexpr std::uint32_t kRowsPerTurn = 64;

}  // namespace

IngestAgent::IngestAgent(const Config& config, ReplayGate& replay, ReplayRows& memory, Bell bell,
                         RingBoard& board, StreamBoard& streams, const Clock& clock)
    : config_(config),
      replay_(replay),
      memory_(memory),
      bell_(bell),
      board_(board),
      streams_(streams),
      clock_(clock),
      attacher_({.run_id = config.run_id,
                 .shm_dir = config.shm_dir,
                 .shards = replay.shards(),
                 .layout_hash = memory.layout().Hash(),
                 .retry_ns = config.attach_retry_ns},
                board, clock),
      rows_(kRowsPerTurn * memory.layout().row_bytes),
      backlog_rows_(static_cast<std::size_t>(replay.shards())) {}

int IngestAgent::DoWork() {
  for (RingAttacher::Attached& attached : attacher_.Poll()) Begin(std::move(attached));
  int rows = 0;
  for (const auto& ring : rings_) rows += Pump(*ring);
  UnlinkLeaving();
  std::erase_if(rings_, [this](auto& ring) {
    const bool ended = ring->ended;
    if (ended && !ring->unlinked) leaving_.push_back(std::move(ring));
    return ended;
  });
  counters_.rings.store(rings_.size(), std::memory_order_relaxed);
  counters_.leaving.store(leaving_.size(), std::memory_order_relaxed);
  if (rows == 0) Sleep();
  return rows;
}

void IngestAgent::Begin(RingAttacher::Attached attached) {
  auto ring = std::make_unique<Ring>(Ring{.path = attached.info.path,
                                          .slot = attached.info.slot,
                                          .consumer = std::move(attached.consumer)});
  if (IsStreamPath(ring->path)) {
    ring->stream = std::make_shared<StreamShare>(ring->path, ring->consumer.tail());
    streams_.Add(ring->stream);
  }
  log::info("attached {} to shard {} at row {}", ring->path, ring->slot, ring->consumer.tail());
  replay_.BeginGeneration(ring->slot);
  rings_.push_back(std::move(ring));
}

// Another process makes or removes a region meanwhile: that may take longer than rows can wait.
void IngestAgent::UnlinkLeaving() {
  if (leaving_.empty() || clock_.NowNs() < next_unlink_ns_) return;
  next_unlink_ns_ = clock_.NowNs() + config_.dead_check_ns;
  std::erase_if(leaving_, [](const auto& ring) { return ring->consumer.TryUnlink(); });
}

void IngestAgent::OnClose() {
  try {
    for (const auto& ring : leaving_) ring->consumer.Unlink();
  } catch (const Error& error) {
    log::warn("ended rings stay in {}: {}", config_.shm_dir, error.what());
  }
  leaving_.clear();
}

int IngestAgent::Pump(Ring& ring) {
  RingPeek peek = ring.consumer.Peek();
  // Before anything else: a stream that was never attached publishes nothing, and never will.
  if (ring.stream && ring.stream->broken.load(std::memory_order_acquire)) {  // pairs with inference
    Quarantine(ring, ring.stream->problem, ring.consumer.head() - ring.consumer.tail());
    return 0;
  }
  if (peek.status != RingStatus::kOk) {
    LookForEnd(ring, peek.status);
    return 0;
  }
  if (ring.consumer.stride_bytes() != memory_.layout().row_bytes) {
    Quarantine(ring, "its rows have another size than the run's",
               ring.consumer.head() - ring.consumer.tail());
    return 0;
  }
  peek.count = std::min(peek.count, kRowsPerTurn);
  if (ring.stream) {
    const std::uint64_t answered = ring.stream->answered.load(std::memory_order_acquire);
    if (const int dropped = DropVoidRows(ring, peek)) return dropped;
    if (answered <= peek.first) {
      AwaitAnswers(ring);
      return 0;
    }
    ring.dead_since_ns = 0;
    peek.count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(peek.count, answered - peek.first));
  }
  // Another process can write there at any time: copied once, then checked, then used.
  std::memcpy(rows_.data(), peek.records, peek.count * ring.consumer.stride_bytes());
  if (!CheckRows(ring, peek)) return 0;
  int pushed = 0;
  const std::int64_t start_ns = clock_.NowNs();
  const AcquireResult result = PushRows(replay_, memory_, ring.slot, rows_.data(),
                                        static_cast<int>(peek.count), config_.wait_ns, pushed);
  if (result != AcquireResult::kAcquired) {
    AddRelaxed(counters_.limited_ns, clock_.NowNs() - start_ns);
  }
  ring.consumer.Release(static_cast<std::uint64_t>(pushed));
  AddRelaxed<std::uint64_t>(counters_.rows, static_cast<std::uint64_t>(pushed));
  backlog_rows_[static_cast<std::size_t>(ring.slot)].store(
      ring.consumer.head() - ring.consumer.tail(), std::memory_order_relaxed);
  // A limited push has waited already: no sleep on top.
  return std::max(pushed, result == AcquireResult::kAcquired ? 0 : 1);
}

// Rows that were published for a learner that is gone: no policy has decided them.
int IngestAgent::DropVoidRows(Ring& ring, const RingPeek& peek) {
  const std::uint64_t first = ring.stream->first.load(std::memory_order_relaxed);
  if (peek.first >= first) return 0;
  const std::uint64_t count = std::min<std::uint64_t>(peek.count, first - peek.first);
  ring.consumer.Release(count);
  AddRelaxed<std::uint64_t>(counters_.rows_lost, count);
  return static_cast<int>(count);
}

// Nothing is answered. A live worker waits for us; a dead one's last rows are given some time.
void IngestAgent::AwaitAnswers(Ring& ring) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < ring.next_dead_check_ns) return;
  ring.next_dead_check_ns = now_ns + config_.dead_check_ns;
  if (ring.consumer.OwnerAlive()) return;
  if (ring.dead_since_ns == 0) ring.dead_since_ns = now_ns;
  if (now_ns - ring.dead_since_ns < config_.last_answers_ns) return;
  const std::uint64_t lost = ring.consumer.head() - ring.consumer.tail();
  ring.consumer.Release(lost);
  AddRelaxed<std::uint64_t>(counters_.rows_lost, lost);
}

bool IngestAgent::CheckRows(Ring& ring, const RingPeek& peek) {
  const std::size_t stride = ring.consumer.stride_bytes();
  for (std::uint32_t i = 0; i < peek.count; ++i) {
    const char* wrong = CheckRow(memory_.layout(), rows_.data() + i * stride, peek.first + i,
                                 config_.action_count, config_.check_records);
    if (wrong == nullptr) continue;
    Quarantine(ring, "row " + std::to_string(peek.first + i) + ": " + wrong,
               ring.consumer.head() - ring.consumer.tail());
    return false;
  }
  return true;
}

void IngestAgent::LookForEnd(Ring& ring, RingStatus status) {
  if (status == RingStatus::kCorrupt) {
    Quarantine(ring, ring.consumer.corrupt_reason(), 0);
  } else if (status == RingStatus::kClosedAndEmpty) {
    End(ring, wire::RingEnd::kClosed);
  } else if (clock_.NowNs() >= ring.next_dead_check_ns) {
    ring.next_dead_check_ns = clock_.NowNs() + config_.dead_check_ns;
    if (ring.consumer.OwnerAlive()) return;
    // Dead; but it may have published between the Peek and its death.
    const RingPeek last = ring.consumer.Peek();
    if (last.status == RingStatus::kEmpty) End(ring, wire::RingEnd::kOwnerDead);
    if (last.status == RingStatus::kClosedAndEmpty) End(ring, wire::RingEnd::kClosed);
  }
}

void IngestAgent::End(Ring& ring, wire::RingEnd end, const std::string& reason) {
  log::info("ring {} ended at row {}{}", ring.path, ring.consumer.tail(),
            end == wire::RingEnd::kOwnerDead ? ": its actor died" : "");
  replay_.Flush(ring.slot);
  ring.unlinked = ring.consumer.TryUnlink();
  if (ring.stream) ring.stream->ended.store(true, std::memory_order_release);  // with inference
  ring.ended = true;
  backlog_rows_[static_cast<std::size_t>(ring.slot)].store(0, std::memory_order_relaxed);
  board_.AddEnded({.path = ring.path, .end = end, .reason = reason});
  attacher_.Ended(ring.path);
}

void IngestAgent::Quarantine(Ring& ring, const std::string& reason, std::uint64_t lost) {
  log::error("quarantined ring {}: {}; its actor has to be restarted", ring.path, reason);
  AddRelaxed<std::uint64_t>(counters_.quarantined, 1);
  AddRelaxed<std::uint64_t>(counters_.rows_lost, lost);
  End(ring, wire::RingEnd::kQuarantined, reason);
}

bool IngestAgent::HasWork(Ring& ring) {
  if (ring.stream && ring.stream->broken.load(std::memory_order_relaxed)) return true;
  const RingPeek peek = ring.consumer.Peek();
  if (peek.status != RingStatus::kOk || !ring.stream) return peek.status != RingStatus::kEmpty;
  return ring.stream->answered.load(std::memory_order_acquire) > peek.first;
}

void IngestAgent::Sleep() {
  const std::uint32_t armed = bell_.Arm();
  for (const auto& ring : rings_) {
    if (HasWork(*ring)) {
      bell_.Disarm(armed);
      return;
    }
  }
  // Rung or not: the next cycle looks at every ring.
  (void)bell_.Wait(armed, config_.wait_ns);
}

}  // namespace tetrion::learner
