#include "services/coordinator/ledger.h"

#include <algorithm>

namespace tetrion::coordinator {

using wire::kRangeTokens;

namespace {

// First id of the range that the episode's token is in.
std::uint64_t FirstOf(const wire::EpisodeReport& episode) {
  return episode.token_id - episode.token_id % kRangeTokens;
}

}  // namespace

Ledger::Ledger(std::span<const LedgerRange> open_ranges, std::uint64_t next_id,
               const LedgerCounts& counts)
    : next_id_(next_id), counts_(counts) {
  for (const LedgerRange& range : open_ranges) {
    ranges_.emplace(range.first_id, range);
    if (range.session == 0) {
      free_.insert(range.first_id);
      continue;
    }
    Owner& owner = owners_[range.session];
    owner.ranges.insert(range.first_id);
    owner.outstanding += OutstandingOf(range);
    owner.last_request = std::max(owner.last_request, range.grant);
  }
}

void Ledger::RestoreRequest(std::uint64_t session, std::uint64_t request) {
  Owner& owner = owners_[session];
  owner.last_request = std::max(owner.last_request, request);
}

std::uint32_t Ledger::OutstandingOf(const LedgerRange& range) {
  return range.session == 0 ? 0 : kRangeTokens - (range.done | range.abandoned).Count();
}

std::uint64_t Ledger::outstanding(std::uint64_t session) const {
  const auto owner = owners_.find(session);
  return owner == owners_.end() ? 0 : owner->second.outstanding;
}

std::uint64_t Ledger::last_request(std::uint64_t session) const {
  const auto owner = owners_.find(session);
  return owner == owners_.end() ? 0 : owner->second.last_request;
}

std::vector<LedgerRange> Ledger::Grant(std::uint64_t session, std::uint64_t request,
                                       std::uint32_t ranges) {
  std::vector<LedgerRange> granted;
  Owner& owner = owners_[session];
  if (request <= owner.last_request) {
    if (request != owner.last_request) return granted;
    for (const std::uint64_t first_id : owner.ranges) {
      const LedgerRange& range = ranges_.at(first_id);
      if (range.grant == request) granted.push_back(range);
    }
    return granted;
  }
  owner.last_request = request;
  for (std::uint32_t i = 0; i < ranges; ++i) {
    std::uint64_t first_id = next_id_;
    if (free_.empty()) {
      next_id_ += kRangeTokens;
      counts_.issued += kRangeTokens;
      ranges_[first_id] = {.first_id = first_id, .attempt = 1};
    } else {
      first_id = *free_.begin();
      free_.erase(free_.begin());
      counts_.free_again -= kRangeTokens - ranges_.at(first_id).done.Count();
    }
    LedgerRange& range = ranges_.at(first_id);
    range.session = session;
    range.grant = request;
    range.abandoned = {};
    owner.ranges.insert(first_id);
    owner.outstanding += OutstandingOf(range);
    Touch(range);
    granted.push_back(range);
  }
  return granted;
}

ReportTally Ledger::Report(std::uint64_t session, std::vector<wire::EpisodeReport>& episodes) {
  ReportTally tally;
  wire::EpisodeReport* accepted = episodes.data();
  for (std::span<const wire::EpisodeReport> rest = episodes; !rest.empty();) {
    std::size_t count = 1;
    while (count < rest.size() && rest[count].attempt == rest[0].attempt &&
           FirstOf(rest[count]) == FirstOf(rest[0])) {
      ++count;
    }
    accepted = ReportRun(session, rest.first(count), accepted, tally);
    rest = rest.subspan(count);
  }
  episodes.resize(static_cast<std::size_t>(accepted - episodes.data()));
  counts_.done += tally.accepted;
  counts_.duplicates += tally.duplicates;
  counts_.refused += tally.refused;
  return tally;
}

wire::EpisodeReport* Ledger::ReportRun(std::uint64_t session,
                                       std::span<const wire::EpisodeReport> run,
                                       wire::EpisodeReport* accepted, ReportTally& tally) {
  const std::uint64_t first_id = FirstOf(run[0]);
  const auto found = ranges_.find(first_id);
  if (found == ranges_.end()) {
    const bool issued = first_id < next_id_;  // then it is all done and forgotten
    (issued ? tally.duplicates : tally.refused) += static_cast<std::uint32_t>(run.size());
    return accepted;
  }
  LedgerRange& range = found->second;
  const bool holds = range.session == session && range.attempt == run[0].attempt;
  Bits256 done = range.done;
  const Bits256 closed = holds ? range.abandoned : ~Bits256{};
  std::uint32_t count = 0;
  for (const wire::EpisodeReport& episode : run) {
    const auto bit = static_cast<std::uint32_t>(episode.token_id - first_id);
    if (done.Test(bit)) {
      ++tally.duplicates;
    } else if (closed.Test(bit)) {
      ++tally.refused;
    } else {
      done.Set(bit);
      accepted[count++] = episode;
    }
  }
  if (count > 0) {
    range.done = done;
    owners_.at(session).outstanding -= count;
    tally.accepted += count;
    Settle(range);
  }
  return accepted + count;
}

void Ledger::Settle(LedgerRange& range) {
  if (!(range.done | range.abandoned).All()) {
    Touch(range);
    return;
  }
  const auto owner = owners_.find(range.session);
  if (owner != owners_.end()) owner->second.ranges.erase(range.first_id);
  range.session = 0;
  range.grant = 0;
  range.abandoned = {};
  if (range.done.All()) {
    Touch(range);
    ranges_.erase(range.first_id);
    return;
  }
  ++range.attempt;
  free_.insert(range.first_id);
  Touch(range);
}

std::uint32_t Ledger::GiveBack(LedgerRange& range, const Bits256& tokens) {
  const Bits256 freed = tokens & ~(range.done | range.abandoned);
  const std::uint32_t count = freed.Count();
  if (count == 0) return 0;
  range.abandoned = range.abandoned | freed;
  counts_.free_again += count;
  owners_.at(range.session).outstanding -= count;
  Settle(range);
  return count;
}

std::uint32_t Ledger::Abandon(std::uint64_t session, const ClaimedTokens& tokens) {
  const auto found = ranges_.find(tokens.first_id);
  if (found == ranges_.end()) return 0;
  LedgerRange& range = found->second;
  if (range.session != session || range.attempt != tokens.attempt) return 0;
  const std::uint32_t count = GiveBack(range, tokens.tokens);
  counts_.abandoned += count;
  return count;
}

std::uint64_t Ledger::EndSession(std::uint64_t session) {
  const std::uint64_t freed = ReRegister(session, {}, next_id_);
  owners_.erase(session);
  return freed;
}

std::uint64_t Ledger::ReRegister(std::uint64_t session, std::span<const ClaimedTokens> held,
                                 std::uint64_t held_below) {
  const auto owner = owners_.find(session);
  if (owner == owners_.end()) return 0;
  const std::uint64_t last_request = owner->second.last_request;
  bool last_grant_open = false, last_grant_known = false;
  std::uint64_t freed = 0;
  const std::set<std::uint64_t> owned = owner->second.ranges;  // GiveBack changes the original
  for (const std::uint64_t first_id : owned) {
    LedgerRange& range = ranges_.at(first_id);
    if (first_id >= held_below) {
      last_grant_known = last_grant_known || range.grant == last_request;
      continue;
    }
    Bits256 kept;
    for (const ClaimedTokens& part : held) {
      if (part.first_id == first_id && part.attempt == range.attempt) kept = kept | part.tokens;
    }
    if (range.grant == last_request) {
      last_grant_open = true;
      last_grant_known = last_grant_known || !kept.None();
    }
    freed += GiveBack(range, ~kept);
  }
  counts_.freed += freed;
  if (last_grant_open && !last_grant_known) owner->second.last_request = last_request - 1;
  return freed;
}

std::vector<LedgerRange> Ledger::TakeDirty() {
  std::vector<LedgerRange> dirty;
  dirty.reserve(dirty_.size());
  for (const auto& [first_id, range] : dirty_) dirty.push_back(range);
  dirty_.clear();
  return dirty;
}

bool Ledger::Consistent() const {
  std::uint64_t outstanding = 0, free_again = 0, done_open = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> held;
  for (const auto& [first_id, range] : ranges_) {
    const std::uint32_t done = range.done.Count();
    const std::uint32_t abandoned = range.abandoned.Count();
    if (!(range.done & range.abandoned).None()) return false;
    done_open += done;
    if (range.session == 0) {
      free_again += kRangeTokens - done;
    } else {
      free_again += abandoned;
      outstanding += OutstandingOf(range);
      held[range.session] += OutstandingOf(range);
    }
  }
  for (const auto& [session, owner] : owners_) {
    if (owner.outstanding != held[session]) return false;
  }
  const std::uint64_t done = next_id_ - ranges_.size() * kRangeTokens + done_open;
  return counts_.issued == next_id_ && counts_.done == done && counts_.free_again == free_again &&
         counts_.Outstanding() == outstanding && counts_.issued == done + outstanding + free_again;
}

}  // namespace tetrion::coordinator
