#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "tools/up/restart_policy.h"

namespace tetrion {

struct ChildSpec {
  enum class Role { kCoordinator, kLearner, kActor };
  std::string name;  // "coordinator", "learner", "actor-0"
  Role role = Role::kActor;
  std::vector<std::string> command;          // program and arguments
  std::vector<std::string> restart_command;  // after a death; empty: the same
  // Seconds from StartAll after which it ends by itself, 0: none. Stands in `command`; to the
  // restart command what is left of it is added (--stop-after), so that a death adds no time.
  double stop_after_s = 0;
};

// Starts, asks and signals processes; the supervisor's only contact with the kernel.
class ProcessHost {
 public:
  virtual ~ProcessHost() = default;
  // Returns the child's pid. Throws Error(kTryAgain) when no process can be made.
  virtual pid_t Start(const std::string& name, const std::vector<std::string>& command) = 0;
  // How the child ended; nullopt while it lives. Never blocks. A reported child is gone.
  virtual std::optional<ChildExit> Poll(pid_t pid) = 0;
  // To the child's whole process group.
  virtual void Signal(pid_t pid, int signal) = 0;
  // The last line that a process of this name has written; empty without one.
  virtual std::string LastLine(const std::string& name) const = 0;
};

// Keeps the services of one run alive until the run ends.
//
//   running:  a death is judged (restart_policy.h); a start that fails is a death, too. Restarts
//             wait for their delay. The end of the coordinator or the learner with 0 begins
//             draining; that of the coordinator while the learner has ended by itself and never
//             was healthy is the learner's failure. An actor that ends with 0 has left. A fatal
//             exit begins draining with that failure, and so do used-up restarts of the
//             coordinator or the learner. An actor whose restarts are used up is left out: one
//             start each kLeftOutPauseMs. Only when every actor is left out and none was ever
//             healthy has the run failed.
//   draining: every child is asked once (SIGTERM), nothing is started any more; a child that is
//             alive after the drain time-out is killed, members before the coordinator. Any end
//             but with 0 shows in the exit code (of a fatal exit its own, else 75), save with 75
//             that of an actor, which came too late to play, and of a learner that replaced one
//             which may have worked, less than kHealthyMs before.
//   ended:    no child lives.
// One thread, which calls Tick some times a second; nothing blocks.
class Supervisor {
 public:
  enum class State { kRunning, kDraining, kEnded };
  // Long enough that a start which fails (libraries, log lines) costs the run nothing.
  static constexpr std::int64_t kLeftOutPauseMs = 60'000;

  Supervisor(std::vector<ChildSpec> specs, std::int64_t drain_timeout_ns, ProcessHost& host,
             const Clock& clock);

  // Starts every child, in order.
  void StartAll();
  State Tick();
  // Begins draining; again has no effect. `why` goes to the log.
  void Drain(const std::string& why);

  State state() const { return state_; }
  // For after kEnded, of a run in which no child of `role`, or of any, has done its work: if one of
  // them has died, that is the run's failure, 75, unless another failed before.
  void FailIfDied(std::optional<ChildSpec::Role> role);
  // For after kEnded, of a run whose time was over before anything was played: its failure, 75,
  // unless a child failed.
  void FailAsTooShort();
  // 0, the code of a fatal child or of a learner that never worked, or 75. For after kEnded.
  int exit_code() const { return exit_code_; }
  // The first child that failed, running or draining; empty when none did.
  const std::string& failed_child() const { return failed_child_; }
  int restarts() const { return restarts_; }
  int ActorsUp() const;
  // 0 while the child is down.
  pid_t PidOf(const std::string& name) const;

 private:
  struct Child {
    ChildSpec spec;
    RestartPolicy policy;
    pid_t pid = 0;
    std::int64_t start_at_ns = 0;  // next start; 0: none planned
    bool died = false;             // at least once, after a start that succeeded
    int last_code = 0;             // of its last death
    int deaths = 0;                // and starts that failed
    bool was_killed = false;       // one of its deaths was by a signal from outside
    bool has_left = false;         // an actor that ended with 0
    bool left_out = false;         // an actor whose restarts are used up
    bool killed_late = false;      // it did not end in time while the run drained

    // Whether an earlier life may have worked: it was healthy, or was killed from outside, which
    // tells nothing of the run.
    bool MayHaveWorked() const { return was_killed || policy.ever_healthy(); }
  };

  void Start(Child& child);
  std::vector<std::string> CommandOf(const Child& child) const;
  void OnExit(Child& child, const ChildExit& exit);
  void Retry(Child& child, const std::string& why);
  void KillLate();
  void LeaveOut(Child& child, const std::string& why);
  bool SomeActorMayWork() const;
  const Child* LearnerThatNeverWorked() const;
  void OnExitWhileDraining(const Child& child, const ChildExit& exit);
  void Fail(const Child& child, int code, const std::string& why);

  std::vector<Child> children_;
  const std::int64_t drain_timeout_ns_;
  ProcessHost& host_;
  const Clock& clock_;
  State state_ = State::kRunning;
  std::int64_t started_ns_ = 0;
  std::int64_t kill_at_ns_ = 0;
  int exit_code_ = 0;
  int restarts_ = 0;
  std::string failed_child_;
};

}  // namespace tetrion
