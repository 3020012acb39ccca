#include "services/learner/ingest_agent.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/frame/row_check.h"

namespace tetrion::learner {
namespace {

// Rows taken from one source before the next has its turn.
constexpr std::uint32_t kRowsPerTurn = 64;

bool EveryEpisodeBegins(const RowLayout& layout, const std::byte* row) {
  const auto* flags = reinterpret_cast<const std::uint8_t*>(row + layout.flags);
  return std::all_of(flags, flags + layout.spec.lanes,
                     [](std::uint8_t lane) { return (lane & kIsFirst) != 0; });
}

// Every lane's episode begins for readers of the row.
void BeginEpisodes(const RowLayout& layout, std::byte* row) {
  const RowView view(layout, row);
  for (std::size_t lane = 0; lane < layout.spec.lanes; ++lane) {
    view.flags[lane] |= kIsFirst;
    view.reward[lane] = 0.0F;
  }
}

}  // namespace

IngestAgent::IngestAgent(const Config& config, ReplayGate& replay, ReplayRows& memory, Bell bell,
                         SourceFinder& finder, const Clock& clock)
    : config_(config),
      replay_(replay),
      memory_(memory),
      bell_(bell),
      finder_(finder),
      clock_(clock),
      backlog_rows_(static_cast<std::size_t>(replay.shards())),
      capacity_rows_(static_cast<std::size_t>(replay.shards())) {}

int IngestAgent::DoWork() {
  for (std::unique_ptr<RowSource>& source : finder_.Poll()) Begin(std::move(source));
  int rows = 0;
  // One wait a cycle, each time by the next one: many that wait in turn would hold up the rest.
  wait_ns_ = config_.wait_ns;
  if (!feeds_.empty()) first_feed_ = (first_feed_ + 1) % feeds_.size();
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    rows += Pump(feeds_[(first_feed_ + i) % feeds_.size()]);
  }
  RemoveLeaving();
  std::erase_if(feeds_, [this](Feed& feed) {
    if (feed.ended) feed.pinned.reset();
    if (feed.ended && !feed.removed) leaving_.push_back(std::move(feed.source));
    return feed.ended;
  });
  counters_.rings.store(feeds_.size(), std::memory_order_relaxed);
  counters_.leaving.store(leaving_.size(), std::memory_order_relaxed);
  if (rows == 0) Sleep();
  return rows;
}

void IngestAgent::Begin(std::unique_ptr<RowSource> source) {
  const SourceId& id = source->id();
  log::info("attached {} to shard {} at row {}", id.address, id.shard, source->next_row());
  replay_.BeginGeneration(id.shard);
  NoteCapacity(id.shard, source->capacity_rows());
  rows_.resize(kRowsPerTurn * memory_.layout().row_bytes);
  std::unique_ptr<PinnedSource> pinned;
  try {
    if (!source->memory().empty()) pinned = memory_.Pin(source->memory());
  } catch (const Error& error) {
    log::warn("rows of {} are copied on the host as well: {}", id.address, error.what());
  }
  feeds_.push_back({.source = std::move(source), .pinned = std::move(pinned)});
}

// Another process makes or removes a region meanwhile: that may take longer than rows can wait.
void IngestAgent::RemoveLeaving() {
  if (leaving_.empty() || clock_.NowNs() < next_remove_ns_) return;
  next_remove_ns_ = clock_.NowNs() + config_.remove_every_ns;
  std::erase_if(leaving_, [](const auto& source) { return source->TryRemove(); });
}

void IngestAgent::OnClose() {
  try {
    for (const auto& source : leaving_) source->Remove();
  } catch (const Error& error) {
    log::warn("ended rings stay where they are: {}", error.what());
  }
  leaving_.clear();
}

int IngestAgent::Pump(Feed& feed) {
  if (!Copied(feed)) return 0;
  RowSource& source = *feed.source;
  SourceRows rows = source.Peek();
  AddRelaxed<std::uint64_t>(counters_.rows_lost, rows.void_rows);
  switch (rows.state) {
    case SourceState::kNone:
      return 0;
    case SourceState::kClosed:
    case SourceState::kOwnerDead:
      End(feed, rows.state);
      return 0;
    case SourceState::kUnusable:
      Quarantine(feed, source.problem());
      return 0;
    case SourceState::kRows:
      break;
  }
  rows.count = std::min(rows.count, kRowsPerTurn);
  const std::byte* checked = rows.rows;
  const bool joins = !feed.joined && !EveryEpisodeBegins(memory_.layout(), rows.rows);
  if (feed.pinned == nullptr || joins) {
    std::memcpy(rows_.data(), rows.rows, rows.count * memory_.layout().row_bytes);
    checked = rows_.data();
  }
  if (const std::string wrong = WhatIsWrong(checked, rows); !wrong.empty()) {
    Quarantine(feed, wrong);
    return 0;
  }
  if (joins) BeginEpisodes(memory_.layout(), rows_.data());
  return Push(feed, checked, rows.count);
}

// Whether no row of the feed's is being copied; gives back those that were.
bool IngestAgent::Copied(Feed& feed) {
  if (feed.copying == 0) return true;
  if (!feed.copied->Passed()) return false;
  feed.source->Release(std::exchange(feed.copying, 0));
  NoteBacklog(feed.source->id().shard, feed.source->backlog_rows());
  return true;
}

// Empty when every row is in order.
std::string IngestAgent::WhatIsWrong(const std::byte* rows, const SourceRows& peeked) const {
  for (std::uint32_t i = 0; i < peeked.count; ++i) {
    const char* wrong = CheckRow(memory_.layout(), rows + i * memory_.layout().row_bytes,
                                 peeked.first + i, config_.action_count, config_.check_records);
    if (wrong != nullptr) return "row " + std::to_string(peeked.first + i) + ": " + wrong;
  }
  return "";
}

// Moves `rows`, which hold what was peeked, into the replay. More than 0 unless the next cycle may
// sleep.
int IngestAgent::Push(Feed& feed, const std::byte* rows, std::uint32_t count) {
  RowSource& source = *feed.source;
  std::uint32_t pushed = 0;
  const Event* copied = nullptr;
  const auto push = [&](std::uint32_t most, std::int64_t timeout_ns) {
    int more = 0;
    const Event* read = nullptr;
    const AcquireResult result =
        PushRows(replay_, memory_, source.id().shard, rows + pushed * memory_.layout().row_bytes,
                 static_cast<int>(most), timeout_ns, more, &read);
    pushed += static_cast<std::uint32_t>(more);
    if (read != nullptr) copied = read;
    return result;
  };
  const AcquireResult first = push(count, 0);
  AcquireResult result = first;
  if (first != AcquireResult::kAcquired && wait_ns_ > 0) {
    // Held back for as long as the next row is, whether it gets in then or not.
    const std::int64_t start_ns = clock_.NowNs();
    result = push(1, wait_ns_);
    const std::int64_t waited_ns = clock_.NowNs() - start_ns;
    wait_ns_ = std::max<std::int64_t>(wait_ns_ - waited_ns, 0);
    AddRelaxed(counters_.limited_ns, waited_ns);
    if (first == AcquireResult::kLeased) AddRelaxed(counters_.leased_ns, waited_ns);
    if (result == AcquireResult::kAcquired) result = push(count - pushed, 0);
  }
  feed.joined |= pushed > 0;
  if (feed.pinned != nullptr && copied != nullptr) {
    feed.copying = pushed;
    feed.copied = copied;
  } else {
    source.Release(pushed);
  }
  AddRelaxed<std::uint64_t>(counters_.rows, pushed);
  // A full ring is what its metric is for, and nothing else looks while no row is taken.
  if (result != AcquireResult::kAcquired) source.LookAgain();
  NoteBacklog(source.id().shard, source.backlog_rows());
  // A limited push has waited already: no sleep on top.
  return std::max(static_cast<int>(pushed), result == AcquireResult::kAcquired ? 0 : 1);
}

void IngestAgent::Quarantine(Feed& feed, const std::string& reason) {
  log::error("quarantined ring {}: {}; its actor has to be restarted", feed.source->id().address,
             reason);
  AddRelaxed<std::uint64_t>(counters_.quarantined, 1);
  feed.source->LookAgain();  // its worker may have published more since
  AddRelaxed<std::uint64_t>(counters_.rows_lost, feed.source->backlog_rows());
  End(feed, SourceState::kUnusable, reason);
}

void IngestAgent::End(Feed& feed, SourceState state, const std::string& reason) {
  RowSource& source = *feed.source;
  const SourceId& id = source.id();
  log::info("ring {} ended at row {}{}", id.address, source.next_row(),
            state == SourceState::kOwnerDead ? ": its actor died" : "");
  replay_.Flush(id.shard);
  feed.removed = source.TryRemove();
  feed.ended = true;
  NoteBacklog(id.shard, 0);
  NoteCapacity(id.shard, 0);
  finder_.Ended(id, state, reason);
}

void IngestAgent::Sleep() {
  const std::uint32_t armed = bell_.Arm();
  for (const Feed& feed : feeds_) {
    if (feed.copying > 0 || feed.source->HasNews()) {
      bell_.Disarm(armed);
      return;
    }
  }
  // Rung or not: the next cycle looks at every source.
  (void)bell_.Wait(armed, config_.wait_ns);
}

}  // namespace tetrion::learner
