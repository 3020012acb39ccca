#include "services/coordinator/session_table.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/core/philox.h"

namespace tetrion::coordinator {

SessionTable::SessionTable(const Clock& clock, std::int64_t lease_ns, std::uint64_t next_sequence,
                           std::uint64_t secret)
    : clock_(clock),
      lease_ns_(lease_ns),
      secret_(secret),
      next_sequence_(std::max<std::uint64_t>(next_sequence, 1)) {}

std::uint64_t SessionTable::next_number() const {
  const PhiloxBlock draw = PhiloxDraw(secret_, next_sequence_, 0, PhiloxPurpose::kSampler);
  return next_sequence_ << 32 | draw.word[0];
}

Session& SessionTable::Insert(const Session& session) {
  TETRION_CHECK(!by_process_.contains(session.process), "a process has one session");
  TETRION_CHECK(session.role != wire::Role::kLearner || learner_ == 0, "a run has one learner");
  Session& inserted = sessions_[session.number];
  inserted = session;
  by_process_[session.process] = session.number;
  lease_of_[session.number] = by_lease_.insert(by_lease_.end(), session.number);
  if (session.role == wire::Role::kLearner) learner_ = session.number;
  Renew(inserted);
  return inserted;
}

Session& SessionTable::Open(const Session& description) {
  Session session = description;
  session.number = next_number();
  ++next_sequence_;
  return Insert(session);
}

void SessionTable::Restore(const Session& session) {
  TETRION_CHECK(SequenceOf(session.number) < next_sequence_, "a stored session was given out");
  Insert(session);
}

Session* SessionTable::Find(std::uint64_t number) {
  const auto found = sessions_.find(number);
  return found == sessions_.end() ? nullptr : &found->second;
}

Session* SessionTable::FindProcess(std::uint64_t process) {
  const auto found = by_process_.find(process);
  return found == by_process_.end() ? nullptr : Find(found->second);
}

void SessionTable::Renew(Session& session) {
  session.heard_ns = clock_.NowNs();
  session.expires_ns = session.heard_ns + lease_ns_;
  by_lease_.splice(by_lease_.end(), by_lease_, lease_of_.at(session.number));
}

void SessionTable::GiveFullLeases() {
  const std::int64_t expires_ns = clock_.NowNs() + lease_ns_;
  for (auto& [number, session] : sessions_) session.expires_ns = expires_ns;
}

std::vector<std::uint64_t> SessionTable::Expired() const {
  const std::int64_t now_ns = clock_.NowNs();
  std::vector<std::uint64_t> expired;
  for (const std::uint64_t number : by_lease_) {
    if (now_ns < sessions_.at(number).expires_ns) break;
    expired.push_back(number);
  }
  return expired;
}

void SessionTable::Close(std::uint64_t number) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  by_process_.erase(found->second.process);
  by_lease_.erase(lease_of_.at(number));
  lease_of_.erase(number);
  if (learner_ == number) learner_ = 0;
  sessions_.erase(found);
}

std::int64_t SessionTable::OldestSilenceNs() const {
  const std::int64_t now_ns = clock_.NowNs();
  std::int64_t oldest_ns = 0;
  for (const auto& [number, session] : sessions_) {
    oldest_ns = std::max(oldest_ns, now_ns - session.heard_ns);
  }
  return oldest_ns;
}

}  // namespace tetrion::coordinator
