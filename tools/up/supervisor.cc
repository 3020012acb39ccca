#include "tools/up/supervisor.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion {
namespace {

constexpr double kLeastLeftS = 0.001;  // of a time that is over: 0 would be no limit

std::string Describe(const ChildExit& exit) {
  return exit.signalled ? std::string("signal ") + strsignal(exit.code)
                        : "exit code " + std::to_string(exit.code);
}

// Not a fault of its own, as a segmentation fault is.
bool IsFromOutside(const ChildExit& exit) {
  return exit.signalled && (exit.code == SIGKILL || exit.code == SIGTERM || exit.code == SIGHUP);
}

}  // namespace

Supervisor::Supervisor(std::vector<ChildSpec> specs, std::int64_t drain_timeout_ns,
                       ProcessHost& host, const Clock& clock)
    : drain_timeout_ns_(drain_timeout_ns), host_(host), clock_(clock) {
  for (ChildSpec& spec : specs) children_.push_back({std::move(spec), RestartPolicy(clock)});
}

void Supervisor::StartAll() {
  started_ns_ = clock_.NowNs();
  for (Child& child : children_) {
    if (state_ == State::kRunning) Start(child);
  }
}

std::vector<std::string> Supervisor::CommandOf(const Child& child) const {
  if (!child.died || child.spec.restart_command.empty()) return child.spec.command;
  std::vector<std::string> command = child.spec.restart_command;
  if (child.spec.stop_after_s > 0) {
    const auto passed_s = static_cast<double>(clock_.NowNs() - started_ns_) * 1e-9;
    const double left_s = std::max(kLeastLeftS, child.spec.stop_after_s - passed_s);
    command.insert(command.end(), {"--stop-after", std::to_string(left_s) + "s"});
  }
  return command;
}

void Supervisor::Start(Child& child) {
  child.start_at_ns = 0;
  child.policy.OnStarted();
  try {
    child.pid = host_.Start(child.spec.name, CommandOf(child));
  } catch (const Error& error) {
    if (error.code() != ExitCode::kTryAgain) {
      Fail(child, static_cast<int>(error.code()), error.what());
    } else {
      Retry(child, error.what());
    }
  }
}

Supervisor::State Supervisor::Tick() {
  if (state_ == State::kEnded) return state_;
  for (Child& child : children_) {
    if (child.pid == 0) continue;
    const std::optional<ChildExit> exit = host_.Poll(child.pid);
    if (!exit) continue;
    child.pid = 0;
    child.died = true;
    if (state_ == State::kRunning) {
      OnExit(child, *exit);
    } else {
      OnExitWhileDraining(child, *exit);
    }
  }
  const std::int64_t now_ns = clock_.NowNs();
  for (Child& child : children_) {
    const bool due = child.start_at_ns != 0 && child.start_at_ns <= now_ns;
    if (state_ == State::kRunning && due) Start(child);
  }
  if (state_ == State::kDraining && now_ns >= kill_at_ns_) KillLate();
  const bool any_alive = std::ranges::any_of(children_, [](const Child& c) { return c.pid != 0; });
  if (state_ == State::kDraining && !any_alive) state_ = State::kEnded;
  return state_;
}

// The coordinator waits for its members: the last of them is to blame, and ends first.
void Supervisor::KillLate() {
  const bool members = std::ranges::any_of(children_, [](const Child& child) {
    return child.pid != 0 && child.spec.role != ChildSpec::Role::kCoordinator;
  });
  for (Child& child : children_) {
    const bool waits = members && child.spec.role == ChildSpec::Role::kCoordinator;
    if (child.pid == 0 || child.killed_late || waits) continue;
    log::warn("{} did not end in time; killing it", child.spec.name);
    child.killed_late = true;  // a process with much memory needs a moment to die
    host_.Signal(child.pid, SIGKILL);
  }
}

void Supervisor::OnExit(Child& child, const ChildExit& exit) {
  switch (Judge(exit)) {
    case ExitVerdict::kDone:
      if (child.spec.role == ChildSpec::Role::kActor) {
        child.has_left = true;
        log::info("{} has left", child.spec.name);
      } else if (const Child* dead = LearnerThatNeverWorked()) {
        Fail(*dead, dead->last_code, "it had died when the run ended, and never worked");
      } else {
        Drain(child.spec.name + " has finished");
      }
      return;
    case ExitVerdict::kFatal:
      Fail(child, exit.code, Describe(exit));
      return;
    case ExitVerdict::kRestart:
      break;
  }
  child.last_code = exit.signalled ? static_cast<int>(ExitCode::kTryAgain) : exit.code;
  child.was_killed = child.was_killed || IsFromOutside(exit);
  // A process that ends by itself says why; one that was killed could not.
  const bool says_why = !exit.signalled || exit.code == SIGABRT;
  const std::string line = says_why ? host_.LastLine(child.spec.name) : "";
  Retry(child, "died (" + Describe(exit) + (line.empty() ? "" : ": " + line) + ")");
}

// A learner that is down now. One that was killed says nothing of the run, nor do its successors
// that come too late. nullptr when there is none.
const Supervisor::Child* Supervisor::LearnerThatNeverWorked() const {
  for (const Child& child : children_) {
    const bool down = child.spec.role == ChildSpec::Role::kLearner && child.pid == 0;
    if (down && child.start_at_ns != 0 && !child.MayHaveWorked()) return &child;
  }
  return nullptr;
}

void Supervisor::Retry(Child& child, const std::string& why) {
  ++child.deaths;
  const std::optional<std::int64_t> delay_ns = child.policy.OnDeath();
  if (!delay_ns) {
    const std::string text = why + ", after " + std::to_string(RestartPolicy::kTries) + " restarts";
    if (child.spec.role == ChildSpec::Role::kActor) {
      LeaveOut(child, text);
    } else {
      Fail(child, static_cast<int>(ExitCode::kTryAgain), text);
    }
    return;
  }
  ++restarts_;
  child.left_out = false;
  child.start_at_ns = clock_.NowNs() + *delay_ns;
  log::warn("{}: {}; restart {} of {} in {} ms", child.spec.name, why, child.policy.tries(),
            RestartPolicy::kTries, *delay_ns / kNanosPerMilli);
}

void Supervisor::LeaveOut(Child& child, const std::string& why) {
  child.left_out = true;
  if (!SomeActorMayWork()) {
    Fail(child, static_cast<int>(ExitCode::kTryAgain), why + "; no actor has ever worked");
    return;
  }
  child.start_at_ns = clock_.NowNs() + kLeftOutPauseMs * kNanosPerMilli;
  log::error(
      "{}: {}; the run goes on without it and tries again in {} s; see logs/{}.log in the "
      "run folder",
      child.spec.name, why, kLeftOutPauseMs / 1000, child.spec.name);
}

// Alive, waiting for a normal restart, or proved by an earlier life.
bool Supervisor::SomeActorMayWork() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& child) {
    if (child.spec.role != ChildSpec::Role::kActor) return false;
    const bool waits = child.start_at_ns != 0 && !child.left_out;
    return child.pid != 0 || waits || child.has_left || child.policy.ever_healthy();
  });
}

void Supervisor::OnExitWhileDraining(const Child& child, const ChildExit& exit) {
  // SIGTERM: it was asked before it could watch for signals, and has nothing to drain.
  if (Judge(exit) == ExitVerdict::kDone || (exit.signalled && exit.code == SIGTERM)) return;
  // It came as the run ended and was turned away, or lost its peers, which had ended before it.
  const bool turned_away = !exit.signalled && exit.code == static_cast<int>(ExitCode::kTryAgain);
  // A young learner that replaced another has little to lose: less than kHealthyMs of training.
  const bool is_replacement = child.spec.role == ChildSpec::Role::kLearner &&
                              child.policy.tries() > 0 && child.policy.IsYoung() &&
                              child.MayHaveWorked();
  if (turned_away && (child.spec.role == ChildSpec::Role::kActor || is_replacement)) {
    log::info("{} ended with {} while the run drained", child.spec.name, Describe(exit));
    return;
  }
  log::warn("{} ended with {} while draining", child.spec.name, Describe(exit));
  const bool is_fatal = Judge(exit) == ExitVerdict::kFatal;
  const bool only_lost = exit_code_ == static_cast<int>(ExitCode::kTryAgain);
  if (exit_code_ != 0 && !(is_fatal && only_lost)) return;
  exit_code_ = is_fatal ? exit.code : static_cast<int>(ExitCode::kTryAgain);
  failed_child_ = child.spec.name;
}

void Supervisor::FailAsTooShort() {
  if (exit_code_ != 0) return;
  exit_code_ = static_cast<int>(ExitCode::kTryAgain);
  log::error("--stop-after was over before anything was played; give it more time");
}

void Supervisor::FailIfDied(std::optional<ChildSpec::Role> role) {
  if (exit_code_ != 0) return;
  const auto dead = std::ranges::find_if(children_, [&](const Child& child) {
    return child.deaths > 0 && (!role || child.spec.role == *role);
  });
  if (dead == children_.end()) return;
  exit_code_ = static_cast<int>(ExitCode::kTryAgain);
  failed_child_ = dead->spec.name;
  log::error("{} died, and nothing was done", failed_child_);
}

void Supervisor::Fail(const Child& child, int code, const std::string& why) {
  exit_code_ = code;
  failed_child_ = child.spec.name;
  log::error("{} failed: {}", child.spec.name, why);
  Drain(child.spec.name + " failed");
}

void Supervisor::Drain(const std::string& why) {
  if (state_ != State::kRunning) return;
  log::info("draining: {}", why);
  state_ = State::kDraining;
  kill_at_ns_ = clock_.NowNs() + drain_timeout_ns_;
  for (Child& child : children_) {
    const bool is_learner = child.spec.role == ChildSpec::Role::kLearner;
    if (is_learner && child.start_at_ns != 0 && child.MayHaveWorked()) {
      log::warn("{} is down: what it learnt since its last checkpoint is lost", child.spec.name);
    }
    child.start_at_ns = 0;
    if (child.pid != 0) host_.Signal(child.pid, SIGTERM);
  }
}

int Supervisor::ActorsUp() const {
  int up = 0;
  for (const Child& child : children_) {
    if (child.spec.role == ChildSpec::Role::kActor && child.pid != 0) ++up;
  }
  return up;
}

pid_t Supervisor::PidOf(const std::string& name) const {
  for (const Child& child : children_) {
    if (child.spec.name == name) return child.pid;
  }
  return 0;
}

}  // namespace tetrion
