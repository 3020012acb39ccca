#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/setup/member.h"
#include "lib/wire/session_link.h"

namespace tetrion {

// What a member tells of itself when it registers, and how long its end may take.
struct MemberConfig {
  std::string name;  // "actor-0"
  std::string http_endpoint;
  std::string shm_dir;                                   // empty: the run's
  std::int64_t drain_timeout_ns = 10 * kNanosPerSecond;  // for the member's own last work
  std::vector<wire::GivenSetting> given = {};            // checked by the coordinator
  std::string rows_endpoint = "";  // learner: where it takes rows of remote actors; empty: nowhere
  std::string rows_key = "";       // learner: its public key there
  LinkRecorders* traffic = nullptr;  // what the link sends and receives, also without a coordinator
  wire::SessionLink::Config link;
};
// `http_address` is bound, empty without pages; the coordinator is told what Advertised
// (lib/core/address.h) makes of it, but no loopback address where it is on another machine.
MemberConfig MemberConfigOf(const MemberOptions& options, const std::string& http_address);

// A member's session and the way it ends: what the link agents of actor and learner share.
//
//   running --StartDrain--> draining --StartGoodbye--> goodbye --answer or time-out--> done
//      |                           ^                                                    ^
//      |-StartDrain, a registration unanswered and nothing built                        |
//      '-StartDrain before anything was built-------------------------------------------'
//
// Thread roles: the link thread calls everything; Done and Problem any thread.
class MemberLink {
 public:
  // How often a goodbye is said, and for how long, until it is answered.
  struct GoodbyeTimes {
    std::int64_t repeat_ns, give_up_ns;
  };
  // `owner` and `drain`, which a signal sets, must outlive the link.
  MemberLink(const MemberConfig& config, GoodbyeTimes times, wire::SessionOwner& owner,
             const std::atomic<bool>& drain, const Clock& clock);

  // --- any thread ---
  // The goodbye is acknowledged (or its time is over): the member may exit.
  bool Done() const { return phase_.load(std::memory_order_acquire) == Phase::kDone; }
  // Empty when connected and working, else the reason, for /readyz.
  std::string Problem() const TETRION_EXCLUDES(problem_mu_);

  // --- link thread ---
  wire::SessionLink& link() { return link_; }
  const wire::SessionLink& link() const { return link_; }
  // The member's own part of a registration: what the configuration says.
  wire::Register Registration(wire::Role role) const;
  // A member works with the settings that it was first told: Error(kTryAgain) for others.
  void CheckSettings(const wire::Registered& registered);
  // Every cycle: traffic, and why the member is not at work. `own`: its own reason while its
  // session stands.
  void PublishState(const std::string& own) TETRION_EXCLUDES(problem_mu_);

  bool Running() const { return Is(Phase::kRunning); }
  bool Draining() const { return Is(Phase::kDraining); }
  // The process was told to drain and has not begun to.
  bool DrainIsAsked() const { return Running() && drain_.load(std::memory_order_acquire); }
  // `built`: there is something to drain; without it the member is done, or says goodbye first,
  // should the answer to its registration come within a second.
  void StartDrain(bool built);
  bool DrainIsLate() const { return clock_.NowNs() >= drain_until_ns_; }
  // Everything is settled: no heartbeat goes out any more.
  void StartGoodbye();
  // Every cycle; does nothing unless the phase is goodbye. `session` 0: none to say it for.
  void SayGoodbye(std::uint64_t session, std::uint64_t env_steps);
  // For a member whose start or last work has failed, when its thread ends: says goodbye at once,
  // so that the session does not last as long as its lease. Blocks until it is answered, about half
  // a second at most. Does nothing without a session.
  void LeaveAtOnce();
  void OnGoodbyeAck();
  // A member that leaves has nothing to say under a new session.
  void OnFenced();

 private:
  enum class Phase { kRunning, kDraining, kGoodbye, kDone };
  bool Is(Phase phase) const { return phase_.load() == phase; }
  void Enter(Phase phase) { phase_.store(phase, std::memory_order_release); }

  const MemberConfig config_;
  const GoodbyeTimes times_;
  const std::atomic<bool>& drain_;
  const Clock& clock_;
  wire::SessionLink link_;
  std::atomic<Phase> phase_{Phase::kRunning};  // stored by the link thread; pairs with Done
  bool told_ = false;                          // run_config_ is set
  std::string run_config_;                     // of the first registration
  std::int64_t drain_until_ns_ = 0;
  std::int64_t goodbye_until_ns_ = 0;
  std::int64_t next_goodbye_ns_ = 0;

  mutable Mutex problem_mu_;
  std::string problem_ TETRION_GUARDED_BY(problem_mu_) = "starting";
};

}  // namespace tetrion
