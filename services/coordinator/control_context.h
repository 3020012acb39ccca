#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/shm/shm_dir.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/run_book.h"

namespace tetrion::coordinator {

// Replies that wait until the store has committed what they promise. Bounded: a reply for which
// there is no room is dropped, and its member asks again. Control agent only.
class ReplyQueue {
 public:
  static constexpr std::size_t kMaxReplies = 8192;

  struct Reply {
    std::uint64_t ticket = 0;
    wire::PeerId peer;
    std::uint64_t session = 0;  // dropped when this one is fenced meanwhile; 0: never
    wire::Message message;
  };

  // False when the queue is full.
  bool Add(Reply reply) {
    if (replies_.size() >= kMaxReplies) return false;
    // Tickets are pushed in order; a reply that waits for an older one goes behind the newest.
    if (!replies_.empty()) reply.ticket = std::max(reply.ticket, replies_.back().ticket);
    replies_.push_back(std::move(reply));
    return true;
  }
  // Hands out, in order, every reply whose ticket is committed. Returns how many.
  template <typename Send>
  int TakeCommitted(std::uint64_t committed, Send&& send) {
    int taken = 0;
    for (; !replies_.empty() && replies_.front().ticket <= committed; ++taken) {
      const Reply reply = std::move(replies_.front());
      replies_.pop_front();
      send(reply);
    }
    return taken;
  }
  bool empty() const { return replies_.empty(); }
  std::size_t size() const { return replies_.size(); }

 private:
  std::deque<Reply> replies_;
};

// What the parts of the control agent share: the socket, the tables of the run, the way to the
// store, and the answers that wait for it. Control agent only, but for draining().
class ControlContext {
 public:
  // Binds at once: Error(kUsage) when the address is in use.
  ControlContext(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
                 ControlMetrics& metrics, const Clock& clock);

  // --- immutable after construction ---
  const ControlConfig config;
  const std::uint64_t epoch, run_id;
  StoreAgent& store;
  ControlMetrics& metrics;
  const Clock& clock;

  // --- control agent only ---
  wire::ControlServer server;
  wire::Identity sender;  // of the message being handled
  RunBook book;
  std::uint64_t slots_ticket = 0;  // of the newest change of a slot
  std::uint64_t ended_ticket = 0;  // of the newest end of a session
  bool members_changed = true;     // since the list of members was published

  // Sends at once: only what promises nothing, or what is committed.
  void Send(const wire::PeerId& peer, const wire::Message& message);
  // Sends once the store has committed `ticket`, unless `session` is fenced by then (0: in any
  // case). A full queue drops the reply; its member asks again.
  void ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                  wire::Message message);
  void Refuse(const wire::PeerId& peer, wire::RefuseReason reason, const std::string& text);
  wire::HeartbeatAck AckFor(const Session& session);
  // Every reply whose ticket is committed. Returns how many.
  int SendCommitted();
  const ReplyQueue& replies() const { return replies_; }
  // One line a second at most: a hostile peer must not fill the log.
  void LogOdd(const std::string& what);
  // That a session begins or ends: so many lines in ten seconds at most as the config says, for the
  // same reason.
  void LogSession(const std::string& what);
  // How many of those were left out, if any; each cycle says so when the ten seconds are over.
  void LogLeftOut();
  void LogLeftOutWhenDue();
  void StartDrain() { draining_.store(true, std::memory_order_release); }

  // --- any thread ---
  // The run ends: grants stop, new members are refused.
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  void SawLearnerRegion(const std::optional<RegionHold>& hold, std::int64_t at_ns) {
    const bool held = hold && hold->held;
    region_owner_.store(hold ? hold->owner : 0, std::memory_order_relaxed);
    region_held_.store(held, std::memory_order_release);
    if (hold && !held) region_free_ns_.store(at_ns, std::memory_order_release);
  }
  // Whether the last look at the learner's region has found it held by `owner`, and when the newest
  // one that has found it free was, 0: none has.
  bool region_held_by(std::uint64_t owner) const {
    return region_held_.load(std::memory_order_acquire) &&
           region_owner_.load(std::memory_order_relaxed) == owner;
  }
  std::int64_t region_free_ns() const { return region_free_ns_.load(std::memory_order_acquire); }

 private:
  ReplyQueue replies_;
  std::int64_t last_odd_log_ns_ = 0;
  std::int64_t session_lines_since_ns_ = 0;
  int session_lines_ = 0;                       // since then, those that were left out, too
  std::atomic<bool> draining_{false};           // set by StartDrain; pairs with draining
  std::atomic<bool> region_held_{false};        // all set by SawLearnerRegion; pair with their
  std::atomic<std::uint64_t> region_owner_{0};  // getters
  std::atomic<std::int64_t> region_free_ns_{0};
};

// What each part of the control agent has of the context by name. The context outlives it.
class ControlPart {
 protected:
  explicit ControlPart(ControlContext& context)
      : context_(context),
        book_(context.book),
        store_(context.store),
        metrics_(context.metrics),
        clock_(context.clock),
        config_(context.config) {}

  ControlContext& context_;
  RunBook& book_;
  StoreAgent& store_;
  ControlMetrics& metrics_;
  const Clock& clock_;
  const ControlConfig& config_;
};

}  // namespace tetrion::coordinator
