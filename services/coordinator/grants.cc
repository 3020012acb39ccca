#include "services/coordinator/grants.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "lib/frame/token.h"

namespace tetrion::coordinator {
namespace {

wire::GrantedRange ToWire(const LedgerRange& range, std::uint32_t max_steps) {
  return {range.first_id, wire::kRangeTokens, range.attempt, max_steps,
          range.done.None() ? wire::Bitmap{} : range.done.ToBitmap()};
}

std::string NotBelow(const char* what, std::uint64_t have, std::uint64_t limit) {
  return std::string(what) + " " + std::to_string(have) + " is not below " + std::to_string(limit);
}

std::string ImpossibleIn(const wire::EpisodeReport& episode, const ReportLimits& limits) {
  if (episode.length_steps > limits.max_steps) {
    return NotBelow("length", episode.length_steps, std::uint64_t{limits.max_steps} + 1);
  }
  if (episode.lane >= limits.lanes) return NotBelow("lane", episode.lane, limits.lanes);
  if (episode.worker >= limits.workers) return NotBelow("worker", episode.worker, limits.workers);
  if (episode.policy_version >= limits.version_limit) {
    return NotBelow("policy version", episode.policy_version, limits.version_limit);
  }
  if (!std::isfinite(episode.episode_return)) return "its return is not finite";
  return {};
}

}  // namespace

std::string ImpossibleIn(const wire::ReportBatch& batch, const ReportLimits& limits) {
  for (const wire::EpisodeReport& episode : batch.episodes) {
    const std::string wrong = ImpossibleIn(episode, limits);
    if (!wrong.empty()) return "report of token " + std::to_string(episode.token_id) + ": " + wrong;
  }
  return "";
}

std::string ImpossibleRequest(std::uint64_t request, std::uint64_t last_request) {
  if (request <= last_request || request - last_request == 1) return "";
  return "request " + std::to_string(request) + " follows " + std::to_string(last_request);
}

void Grants::On(const wire::PeerId& peer, const wire::GrantRequest& m) {
  Session* session = leases_.Live(peer, m.session);
  if (session == nullptr) return;
  if (context_.draining()) {
    context_.Send(peer, context_.AckFor(*session));
    return;
  }
  if (session->role != wire::Role::kActor || !book_.CanStore()) return;
  const std::uint64_t last = book_.ledger.last_request(m.session);
  if (m.request < last) return;  // answered long ago
  if (leases_.RefuseImpossible(m.session, ImpossibleRequest(m.request, last))) return;
  std::uint32_t ranges = m.ranges;
  if (m.request != last) {
    const std::uint64_t most =
        MaxTokensHeld(session->workers, static_cast<std::uint64_t>(config_.run_config.lanes));
    const std::uint64_t held = book_.ledger.outstanding(m.session);
    const std::uint64_t room = held < most ? (most - held) / wire::kRangeTokens : 0;
    ranges = static_cast<std::uint32_t>(std::min<std::uint64_t>(ranges, room));
    if (ranges == 0) return;  // it has more than it can need: it asks again
  }
  wire::Grant grant{m.session, m.request, {}};
  for (const LedgerRange& range : book_.ledger.Grant(m.session, m.request, ranges)) {
    grant.ranges.push_back(ToWire(range, config_.run_config.max_steps));
    const std::uint64_t fresh = wire::kRangeTokens - range.done.Count();
    if (m.request != last) book_.processes.AddGranted(session->process, fresh);
  }
  session->last_request = m.request;
  // A repeated request waits for the same commit: its ticket lies before this one.
  context_.ReplyAfter(book_.Persist({.sessions = {*session}}, Durability::kPromise), peer,
                      m.session, std::move(grant));
}

void Grants::On(const wire::PeerId& peer, wire::ReportBatch&& m) {
  const Session* session = leases_.Live(peer, m.session);
  if (session == nullptr || session->role != wire::Role::kActor || !book_.CanStore()) return;
  const RunConfig& run = config_.run_config;
  if (leases_.RefuseImpossible(m.session,
                               ImpossibleIn(m, {.max_steps = run.max_steps,
                                                .lanes = static_cast<std::uint32_t>(run.lanes),
                                                .workers = session->workers,
                                                .version_limit = book_.versions.limit()}))) {
    return;
  }
  if (leases_.RefuseImpossible(m.session, book_.CountSteps(session->process, m.env_steps))) return;
  ReportRow row{m.session, context_.sender.run_id, m.batch, std::move(m.episodes)};
  const ReportTally tally = book_.ledger.Report(m.session, row.episodes);
  book_.state.AddEpisodes(row.episodes);
  metrics_.Episodes(row.episodes);
  context_.ReplyAfter(
      book_.Persist({.report = std::move(row)}, Durability::kReport), peer, m.session,
      wire::ReportAck{m.session, m.batch, tally.accepted, tally.duplicates, tally.refused});
}

void Grants::On(const wire::PeerId& peer, const wire::Abandon& m) {
  if (leases_.Live(peer, m.session) == nullptr || !book_.CanStore()) return;
  std::uint32_t freed = 0;
  for (const wire::HeldRange& range : m.tokens) {
    freed += book_.ledger.Abandon(m.session, ClaimedTokens::From(range));
  }
  if (freed > 0 && m.reason != "drain") {
    context_.LogOdd("session " + std::to_string(SessionTable::SequenceOf(m.session)) +
                    " gave back " + std::to_string(freed) + " tokens: " + m.reason);
  }
  context_.ReplyAfter(book_.Persist({}, Durability::kReport), peer, m.session,
                      wire::AbandonAck{m.session, m.request});
}

}  // namespace tetrion::coordinator
