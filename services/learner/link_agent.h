#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/wire/session_link.h"
#include "services/common/member_link.h"
#include "services/learner/boards.h"
#include "services/learner/versions.h"

namespace tetrion::learner {

// The learner's side of the control channel: which rings come and go, which versions it may
// publish, how far it is. The session begins before there is anything to train with: while that is
// built, heartbeats and ring lists go on, and a drain waits for it within its own time-out.
//
// Thread roles: DoWork and what it calls belong to the link thread; the other public calls say
// theirs.
class LearnerLinkAgent final : public Agent, private wire::SessionOwner {
 public:
  // What the rest of the learner supplies. Called on the link thread.
  struct Hooks {
    // First registration only. Begins to build what trains, on another thread, and returns at once.
    std::function<void(const wire::Registered&)> start_build;
    // Whether it stands and holds the learner's region; asked until it does. Throws what the build
    // threw.
    std::function<bool()> built;
    std::function<void(wire::Heartbeat&)> fill;  // version, rows, figures; once built
    // Whether a thread has failed for good: rings will not empty any more, so no drain waits.
    std::function<bool()> failed = [] { return false; };
    // Lanes that the learner plays itself: they are to end, also when they stand only later; and,
    // once built, whether they have.
    std::function<void()> drain_lanes = [] {};
    std::function<bool()> lanes_done = [] { return true; };
    // Once built, whether a whole batch waits that would be drawn once: it is still trained.
    std::function<bool()> batch_waits = [] { return false; };
    // Once built and the rings are gone: begins to stop what trains, with a last checkpoint, on
    // another thread, and returns at once; and whether that is over. Throws what it threw.
    std::function<void()> start_stop;
    std::function<bool()> stopped;
  };
  LearnerLinkAgent(const MemberConfig& config, Hooks hooks, RingBoard& board, Versions& versions,
                   const std::atomic<bool>& drain, const Clock& clock = MonotonicClock::Get());

  std::string name() const override { return "link"; }
  int DoWork() override;
  void OnClose() override;

  // Any thread; see MemberLink.
  bool Done() const { return member_.Done(); }
  std::string Problem() const { return member_.Problem(); }
  // The coordinator has said that the run ends, not only this learner.
  bool run_ends() const { return run_ends_.load(std::memory_order_relaxed); }
  // Mean return of the last accounted episodes, as the coordinator says; for checkpoints. NaN
  // before there are any, and while an earlier learner's weights may have played some of them.
  double mean_return() const { return mean_return_.load(std::memory_order_relaxed); }

 private:
  wire::Register MakeRegister() override;
  void OnRegistered(const wire::Registered& registered, bool renewed) override;
  void OnFenced() override;
  wire::Heartbeat MakeHeartbeat() override;
  void OnHeartbeatAck(const wire::HeartbeatAck& ack) override;
  void OnRunEnds() override;
  void OnMessage(const wire::Message& message) override;

  void LookAtBuild();
  void ReportEnded();
  void StartDrain();
  void Drain();
  bool Stopped();
  void SayLastWord();
  std::string Awaited() const;

  const Hooks hooks_;
  RingBoard& board_;
  Versions& versions_;
  const Clock& clock_;
  MemberLink member_;
  wire::SessionLink& link_;  // the member's
  std::atomic<double> mean_return_{std::numeric_limits<double>::quiet_NaN()};
  std::atomic<bool> run_ends_{false};
  bool follows_another_ = false;                   // learner of this run
  std::optional<std::uint64_t> earlier_episodes_;  // accounted when this learner came
  bool building_ = false;
  bool built_ = false;      // and so the learner's region is held, until the process ends
  bool stopping_ = false;   // a drain has begun to stop what trains
  bool unsaved_ = false;    // which is over, and has failed
  bool have_list_ = false;  // a ring list came in this session
  std::int64_t next_report_ns_ = 0;
  std::size_t reported_ = 0;  // ended rings told at least once
};

}  // namespace tetrion::learner
