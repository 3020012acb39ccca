#include "services/learner/ring_attacher.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/shm/region.h"
#include "lib/shm/shm_dir.h"
#include "lib/wire/remote_path.h"
#include "services/learner/remote_ring.h"

namespace tetrion::learner {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

// A folder can be spelt in several ways.
std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// The error's text without the folder: a reason is short, and the ring's path stands beside it.
std::string WithoutFolder(std::string text, const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (std::size_t at = 0; !folder.empty() && (at = text.find(folder, at)) != std::string::npos;) {
    text.erase(at, folder.size());
  }
  return text;
}

bool Lists(const std::vector<wire::RingInfo>& list, const wire::RingInfo& ring) {
  return std::any_of(list.begin(), list.end(), [&](const auto& info) {
    return info.path == ring.path && info.owner == ring.owner;
  });
}

bool OwnerHasEnded(const wire::RingInfo& ring) {
  return ring.owner != 0 && ring.session == 0;
}

wire::RingEnd EndOf(SourceState state) {
  TETRION_CHECK(state != SourceState::kRows && state != SourceState::kNone, "the source has ended");
  if (state == SourceState::kClosed) return wire::RingEnd::kClosed;
  return state == SourceState::kOwnerDead ? wire::RingEnd::kOwnerDead : wire::RingEnd::kQuarantined;
}

}  // namespace

RingAttacher::RingAttacher(Config config, RingBoard& board, StreamBoard& streams,
                           const Clock& clock)
    : config_(std::move(config)), board_(board), streams_(streams), clock_(clock) {}

std::vector<std::unique_ptr<RowSource>> RingAttacher::Poll() {
  ForgiveStall();
  TakeList();
  std::vector<std::unique_ptr<RowSource>> attached;
  std::erase_if(waiting_, [&](Waiting& ring) {
    return clock_.NowNs() >= ring.next_try_ns && TryAttach(ring, attached);
  });
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  if (listed_) LookForOrphans();
  if (!dead_paths_.empty()) RemoveDead();
  return attached;
}

void RingAttacher::TakeList() {
  if (!board_.TakeList(seen_, list_)) return;
  std::erase_if(waiting_, [&](const Waiting& ring) {
    if (Lists(list_, ring.info)) return false;
    if (config_.remote != nullptr) config_.remote->Forget(ring.info.path);
    return true;
  });
  const std::vector<EndedRing> ended = board_.Ended();  // reported, not yet acknowledged
  for (const wire::RingInfo& info : list_) {
    if (const auto attached = attached_.find(info.path); attached != attached_.end()) {
      const auto& stream = attached->second.stream;
      // Pairs with RemoteStreams::EndBySilence: a list that comes after the end names the next
      // owner, if another.
      const bool over = stream != nullptr && stream->silent.load(std::memory_order_acquire);
      if (!over) attached->second.owner = info.owner;
      continue;
    }
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const auto& ring) { return ring.info.path == info.path; });
    if (waits != waiting_.end()) {
      waits->info = info;
    } else if (std::none_of(ended.begin(), ended.end(),
                            [&](const auto& e) { return e.Is(info); })) {
      StartWaiting(info);
    }
  }
  if (config_.remote != nullptr) {
    std::set<std::string> ownerless;
    for (const wire::RingInfo& info : list_) {
      if (OwnerHasEnded(info)) ownerless.insert(info.path);
    }
    config_.remote->SetOwnerless(std::move(ownerless));
  }
  listed_ = true;
}

void RingAttacher::StartWaiting(const wire::RingInfo& info) {
  const std::int64_t now_ns = clock_.NowNs();
  waiting_.push_back({.info = info,
                      .since_ns = now_ns,
                      .next_try_ns = now_ns,
                      .is_old = !listed_,
                      .last_error = ""});
}

// While this thread stood still no ring could be opened or attached.
void RingAttacher::ForgiveStall() {
  const std::int64_t now_ns = clock_.NowNs();
  const std::int64_t stall_ns = polled_ns_ == 0 ? 0 : now_ns - polled_ns_;
  polled_ns_ = now_ns;
  if (stall_ns <= kStallNs) return;
  for (Waiting& ring : waiting_) ring.since_ns += stall_ns;
}

// True when the ring waits no longer.
bool RingAttacher::TryAttach(Waiting& ring, std::vector<std::unique_ptr<RowSource>>& attached) {
  const wire::RingInfo& info = ring.info;
  if (!config_.refused.empty()) {
    GiveUp(info, config_.refused);
    return true;
  }
  if (info.slot < 0 || info.slot >= config_.shards) {
    GiveUp(info, "its slot is " + std::to_string(info.slot) + ", the replay has " +
                     std::to_string(config_.shards));
    return true;
  }
  if (wire::IsRemoteRingPath(info.path)) return TryTakeRemote(ring, attached);
  try {
    attached.push_back(Attach(info));
    attached_[info.path] = {.owner = info.owner, .stream = nullptr};
    return true;
  } catch (const Error& error) {
    const std::string reason = WithoutFolder(error.what(), info.path);
    if (ring.is_old && !Exists(info.path)) {
      log::warn("ring {} is gone with the rows that no learner had taken", info.path);
      CountAsDead(info, "its actor is dead and its file is gone");
      return true;
    }
    const bool is_ours = dynamic_cast<const Shortage*>(&error) != nullptr;
    const std::int64_t patience_ns = is_ours ? config_.shortage_ns : config_.retry_ns;
    if (error.code() == ExitCode::kTryAgain && HasTime(ring, patience_ns, reason)) return false;
    GiveUp(info, Exists(info.path)
                     ? reason
                     : "the learner finds no such file: actor and learner must share the folder of "
                       "the shared regions: give both the same --shm-dir, a volume both mount");
    return true;
  }
}

// True when the remote ring waits no longer.
bool RingAttacher::TryTakeRemote(Waiting& ring, std::vector<std::unique_ptr<RowSource>>& attached) {
  const wire::RingInfo& info = ring.info;
  if (config_.remote == nullptr) {
    GiveUp(info,
           "its actor sends rows over the network and this learner takes none: start the learner "
           "with --rows-bind tcp://0.0.0.0:9001, or the actor with --rows shm if both share the "
           "folder of the shared regions");
    return true;
  }
  if (std::shared_ptr<RemoteStream> stream = config_.remote->Take(info.path)) {
    attached.push_back(std::make_unique<RemoteRing>(SourceId{.session = info.session,
                                                             .worker = info.worker,
                                                             .shard = info.slot,
                                                             .address = info.path},
                                                    stream));
    attached_[info.path] = {.owner = info.owner, .stream = std::move(stream)};
    return true;
  }
  const std::string refusal = config_.remote->Refusal(info.path);
  const std::int64_t now_ns = clock_.NowNs();
  const bool ended = OwnerHasEnded(info);
  const bool silent = ended || now_ns - ring.since_ns >= config_.remote_silence_ns;
  if (refusal.empty() && !silent) {
    config_.remote->Expect(info.path);
    ring.next_try_ns = now_ns + config_.retry_every_ns;
    return false;
  }
  config_.remote->Forget(info.path);
  if (!refusal.empty()) {
    GiveUp(info, refusal);
    return true;
  }
  const std::string why = ended ? "its actor's session ended before its rows reached this learner"
                                : "its actor never opened it: it does not reach the learner";
  log::warn("ring {} is given up: {}", info.path, why);
  CountAsDead(info, why);
  return true;
}

// Throws Error.
std::unique_ptr<RowSource> RingAttacher::Attach(const wire::RingInfo& info) {
  const bool streamed = IsStreamPath(info.path);
  RingConsumer ring =
      RingConsumer::Attach(info.path, config_.layout.Hash(), {.run_id = config_.run_id},
                           streamed ? RegionKind::kStream : RegionKind::kRing);
  if (ring.record_bytes() != config_.layout.row_bytes) {
    throw Error(ExitCode::kConfig,
                info.path + " has rows of " + std::to_string(ring.record_bytes()) +
                    " bytes, the run's have " + std::to_string(config_.layout.row_bytes) +
                    "; run the same build everywhere and restart its actor");
  }
  SourceId id = {
      .session = info.session, .worker = info.worker, .shard = info.slot, .address = info.path};
  if (!streamed) return std::make_unique<LocalRing>(std::move(id), std::move(ring), clock_);
  const auto share = std::make_shared<StreamShare>(info.path, ring.tail());
  streams_.Add(share);
  return std::make_unique<InferredRing>(std::move(id), std::move(ring), share, clock_);
}

void RingAttacher::Ended(const SourceId& id, SourceState state, const std::string& reason) {
  const auto attached = attached_.find(id.address);
  TETRION_CHECK(attached != attached_.end(), "only what was attached ends");
  const std::uint64_t owner = attached->second.owner;
  board_.AddEnded({.path = id.address, .owner = owner, .end = EndOf(state), .reason = reason});
  attached_.erase(attached);
  const auto anew = std::ranges::find_if(list_, [&](const wire::RingInfo& info) {
    return info.path == id.address && info.owner != owner;
  });
  if (anew != list_.end()) StartWaiting(*anew);
}

// Whether a ring that cannot be attached for now is tried again; each new error is logged once.
bool RingAttacher::HasTime(Waiting& ring, std::int64_t patience_ns, const std::string& error) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns - ring.since_ns >= patience_ns) return false;
  if (ring.last_error != error) log::warn("cannot attach {} yet: {}", ring.info.path, error);
  ring.last_error = error;
  ring.next_try_ns = now_ns + config_.retry_every_ns;
  return true;
}

void RingAttacher::CountAsDead(const wire::RingInfo& info, const std::string& reason) {
  board_.AddEnded(
      {.path = info.path, .owner = info.owner, .end = wire::RingEnd::kOwnerDead, .reason = reason});
}

void RingAttacher::GiveUp(const wire::RingInfo& info, const std::string& reason) {
  log::error("cannot attach ring {}: {}", info.path, reason);
  AddRelaxed<std::uint64_t>(given_up_, 1);
  board_.AddEnded({.path = info.path,
                   .owner = info.owner,
                   .end = wire::RingEnd::kUnattachable,
                   .reason = reason});
  if (wire::IsRemoteRingPath(info.path)) return;  // no file
  RemoveSoon(info.path);
}

void RingAttacher::RemoveSoon(const std::string& path) {
  dead_paths_.push_back(path);
  remove_until_ns_ = clock_.NowNs() + config_.remove_within_ns;
}

bool RingAttacher::Knows(const std::string& name) const {
  const auto is_it = [&](const std::string& path) { return FileName(path) == name; };
  return std::ranges::any_of(list_, is_it, &wire::RingInfo::path) ||
         std::ranges::any_of(attached_, [&](const auto& ring) { return is_it(ring.first); }) ||
         std::ranges::any_of(dead_paths_, is_it);
}

// An actor that lives announces its rings within the time between two looks, and locks them anyway.
void RingAttacher::LookForOrphans() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_look_ns_) return;
  const bool is_first = next_look_ns_ == 0;
  next_look_ns_ = now_ns + config_.look_every_ns;
  std::set<std::string> unknown;
  for (const RegionFile& file : ListRegions(config_.shm_dir)) {
    const bool is_dead_ring =
        file.run_id == config_.run_id && IsRingPath(file.path) && !file.locked;
    if (!is_dead_ring || Knows(FileName(file.path))) continue;
    unknown.insert(file.path);
    if (!is_first && !unknown_.contains(file.path)) continue;
    log::warn("{}: no session knows this ring, and its actor is dead; it is removed", file.path);
    RemoveSoon(file.path);
  }
  unknown_ = std::move(unknown);
}

// Waits with files whose owners live, and while the folder is locked.
void RingAttacher::RemoveDead() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_remove_ns_) return;
  next_remove_ns_ = now_ns + config_.retry_every_ns;
  std::erase_if(dead_paths_, [&](const std::string& path) {
    return TryRemoveDeadRing(config_.shm_dir, config_.run_id, path);
  });
  if (dead_paths_.empty() || now_ns < remove_until_ns_) return;
  log::warn("{}: rings that were given up stay for now: they, or the folder, are still locked",
            config_.shm_dir);
  dead_paths_.clear();
}

}  // namespace tetrion::learner
