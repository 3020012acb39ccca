#include "services/coordinator/session_table.h"

#include <algorithm>

#include "lib/core/check.h"

namespace tetrion {

SessionTable::SessionTable(const Clock& clock, std::int64_t lease_ns, std::uint64_t next_number)
    : clock_(clock), lease_ns_(lease_ns), next_number_(std::max<std::uint64_t>(next_number, 1)) {}

Session& SessionTable::Open(const Session& description) {
  Session& session = sessions_[next_number_];
  session = description;
  session.number = next_number_++;
  Renew(session);
  return session;
}

void SessionTable::Restore(const Session& session) {
  TETRION_CHECK(session.number < next_number_, "a stored session's number was given out");
  Session& restored = sessions_[session.number];
  restored = session;
  Renew(restored);
}

Session* SessionTable::Find(std::uint64_t number) {
  const auto found = sessions_.find(number);
  return found == sessions_.end() ? nullptr : &found->second;
}

Session* SessionTable::FindSame(wire::Role role, const std::string& peer, std::uint64_t nonce) {
  for (auto& [number, session] : sessions_) {
    if (session.role != role) continue;
    if (nonce != 0 ? session.nonce == nonce : session.peer == peer && session.nonce == 0) {
      return &session;
    }
  }
  return nullptr;
}

Session* SessionTable::Learner() {
  for (auto& [number, session] : sessions_) {
    if (session.role == wire::Role::kLearner) return &session;
  }
  return nullptr;
}

void SessionTable::Renew(Session& session) {
  session.heard_ns = clock_.NowNs();
  session.expires_ns = session.heard_ns + lease_ns_;
}

void SessionTable::GiveFullLeases() {
  const std::int64_t expires_ns = clock_.NowNs() + lease_ns_;
  for (auto& [number, session] : sessions_) session.expires_ns = expires_ns;
}

std::vector<std::uint64_t> SessionTable::Expired() const {
  const std::int64_t now_ns = clock_.NowNs();
  std::vector<std::uint64_t> expired;
  for (const auto& [number, session] : sessions_) {
    if (now_ns >= session.expires_ns) expired.push_back(number);
  }
  return expired;
}

void SessionTable::Close(std::uint64_t number) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  if (found->second.env_steps_known) ended_steps_[number] = found->second.env_steps;
  if (ended_steps_.size() > kMaxEnded) ended_steps_.erase(ended_steps_.begin());
  sessions_.erase(found);
}

bool SessionTable::EndedSteps(std::uint64_t number, std::uint64_t* env_steps) const {
  const auto found = ended_steps_.find(number);
  if (found == ended_steps_.end()) return false;
  *env_steps = found->second;
  return true;
}

std::size_t SessionTable::Count(wire::Role role) const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [role](const auto& entry) { return entry.second.role == role; }));
}

std::int64_t SessionTable::OldestSilenceNs() const {
  const std::int64_t now_ns = clock_.NowNs();
  std::int64_t oldest_ns = 0;
  for (const auto& [number, session] : sessions_) {
    oldest_ns = std::max(oldest_ns, now_ns - session.heard_ns);
  }
  return oldest_ns;
}

}  // namespace tetrion
