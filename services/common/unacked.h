#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "lib/core/clock.h"
#include "lib/wire/messages.h"

namespace tetrion {

// Numbered messages kept until the coordinator acknowledges them, sent again when it is slow. `T`
// is wire::ReportBatch, wire::Abandon or wire::GrantRequest; their receiver is idempotent. Link
// thread only.
template <typename T>
class Unacked {
 public:
  Unacked(const Clock& clock, std::int64_t resend_ns) : clock_(clock), resend_ns_(resend_ns) {}

  // Numbers start at 1 and go up by one.
  std::uint64_t NextNumber() { return ++last_number_; }
  void Add(std::uint64_t number, T message) {
    entries_.push_back({number, kNeverSent, std::move(message)});
  }
  // Calls `send` (T& -> bool, false: no room now) for what was never sent or is overdue.
  void SendDue(const std::function<bool(T&)>& send) {
    const std::int64_t now_ns = clock_.NowNs();
    for (Entry& entry : entries_) {
      if (entry.sent_ns != kNeverSent && now_ns - entry.sent_ns < resend_ns_) continue;
      if (!send(entry.message)) return;
      entry.sent_ns = now_ns;
    }
  }
  // Takes the message out; `settle` gets it. False for a number that is not waited for.
  bool Acknowledge(std::uint64_t number, const std::function<void(const T&)>& settle) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->number != number) continue;
      const T message = std::move(it->message);
      entries_.erase(it);
      settle(message);
      return true;
    }
    return false;
  }
  // Everything goes out again at the next SendDue: after a reconnect.
  void ResendAll() {
    for (Entry& entry : entries_) entry.sent_ns = kNeverSent;
  }
  void Clear() { entries_.clear(); }
  // Forgets everything and numbers from 1 again: for a new session.
  void StartAnew() {
    Clear();
    last_number_ = 0;
  }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  static constexpr std::int64_t kNeverSent = -1;
  struct Entry {
    std::uint64_t number;
    std::int64_t sent_ns;
    T message;
  };

  const Clock& clock_;
  const std::int64_t resend_ns_;
  std::uint64_t last_number_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace tetrion
