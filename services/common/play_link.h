#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/wire/session_link.h"
#include "services/common/held_tokens.h"
#include "services/common/member_link.h"
#include "services/common/outbox.h"
#include "services/common/unacked.h"

namespace tetrion {

// The control channel's end of a process that plays episodes, as an actor or beside its trainer:
// registers, turns grants into the workers' credits, reports episodes until they are acknowledged,
// drains.
//
// Thread roles: DoWork and everything it calls belong to the link thread; the other public calls
// say theirs. Workers are reached through their CreditQueues, they answer through the Outbox.
class PlayLink final : public Agent, private wire::SessionOwner {
 public:
  struct Config {
    MemberConfig member;  // its drain time-out is for the workers' last rows
    int workers = 1;
    std::string agent_name = "link";  // its thread's
  };

  // What the rest of the process supplies once the run is known. Called on the link thread.
  struct Hooks {
    // First registration only: builds rings and workers; returns the rings (paths, slots), none
    // where rows take another way, and the queues, one a worker, which must outlive the agent. May
    // throw Error.
    std::function<void(const wire::Registered&, std::vector<wire::RingInfo>&,
                       std::vector<CreditQueue*>&)>
        build;
    std::function<std::vector<wire::Stat>()> stats;  // for the heartbeat
    std::function<std::uint64_t()> env_steps;
    std::function<bool()> workers_drained;  // after their queues were drained
    std::function<void()> close_rings;      // after that
    // Rows of closed rings that the learner has not taken. May be missing.
    std::function<std::uint64_t()> rows_left = {};
    // Where the learner takes rows, with every answer that says so; empty: nowhere. May be missing.
    std::function<void(const std::string& rows_endpoint, const std::string& rows_key)>
        learner_is_at = {};
  };

  PlayLink(Config config, Hooks hooks, Outbox& outbox, const std::atomic<bool>& drain,
           const Clock& clock = MonotonicClock::Get());

  std::string name() const override { return config_.agent_name; }
  int DoWork() override;
  void OnClose() override {
    if (!built_) member_.LeaveAtOnce();
  }

  // Any thread; see MemberLink.
  bool Done() const { return member_.Done(); }
  std::string Problem() const { return member_.Problem(); }
  // Any thread: see wire::Identity.
  std::uint64_t process() const { return link_.identity().process; }
  // Link thread: traffic so far.
  wire::LinkStats link_stats() const { return link_.stats(); }
  // Any thread: episodes whose report was acknowledged, and those the coordinator refused or that
  // belonged to an earlier session.
  std::uint64_t acknowledged() const { return acknowledged_.load(std::memory_order_relaxed); }
  std::uint64_t fenced() const { return fenced_.load(std::memory_order_relaxed); }

 private:
  wire::Register MakeRegister() override;
  void OnRegistered(const wire::Registered& registered, bool renewed) override;
  void OnFenced() override;
  wire::Heartbeat MakeHeartbeat() override;
  void OnHeartbeatAck(const wire::HeartbeatAck& ack) override;
  void OnRunEnds() override;
  void OnMessage(const wire::Message& message) override;

  void Collect();
  bool ReportIsDue();
  void BatchReports();
  void SendReports();
  void Feed();
  void RequestTokens();
  void StartDrain();
  void Drain();
  void WarnOfLateDrain() const;
  void GiveBack(const std::string& reason, const std::vector<Token>& tokens);

  const Config config_;
  const Hooks hooks_;
  Outbox& outbox_;
  const Clock& clock_;
  MemberLink member_;
  wire::SessionLink& link_;  // the member's
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<std::uint64_t> fenced_{0};

  bool built_ = false;
  std::vector<wire::RingInfo> rings_;
  std::vector<CreditQueue*> queues_;
  std::size_t low_water_ = 0;  // credits below which a worker's queue is refilled to twice as many
  HeldTokens held_;
  Unacked<wire::ReportBatch> reports_;
  Unacked<wire::Abandon> abandons_;
  Unacked<wire::GrantRequest> requests_;  // at most one
  bool rings_acked_ = false;
  std::int64_t next_rings_ns_ = 0;
  std::int64_t acks_until_ns_ = 0;    // for what was reported last, once the workers are done
  std::int64_t gather_since_ns_ = 0;  // first of episodes_; 0: none
  std::vector<wire::EpisodeReport> episodes_;            // collected, not yet in a batch
  std::map<std::string, std::vector<Token>> abandoned_;  // collected, by reason
  std::vector<Token> scratch_;
};

}  // namespace tetrion
