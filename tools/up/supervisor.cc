#include "tools/up/supervisor.h"

#include <csignal>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion {
namespace {

std::string Describe(const ChildExit& exit) {
  return exit.signalled ? std::string("signal ") + strsignal(exit.code)
                        : "exit code " + std::to_string(exit.code);
}

}  // namespace

Supervisor::Supervisor(std::vector<ChildSpec> specs, std::int64_t drain_timeout_ns,
                       ProcessHost& host, const Clock& clock)
    : drain_timeout_ns_(drain_timeout_ns), host_(host), clock_(clock) {
  for (ChildSpec& spec : specs) children_.push_back({std::move(spec), RestartPolicy(clock)});
}

void Supervisor::StartAll() {
  for (Child& child : children_) Start(child);
}

void Supervisor::Start(Child& child) {
  const bool again = child.died && !child.spec.restart_command.empty();
  child.start_at_ns = 0;
  child.pid = host_.Start(child.spec.name, again ? child.spec.restart_command : child.spec.command);
  child.policy.OnStarted();
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
  bool any_alive = false;
  for (Child& child : children_) {
    const bool due = child.start_at_ns != 0 && child.start_at_ns <= now_ns;
    if (state_ == State::kRunning && due) Start(child);
    any_alive = any_alive || child.pid != 0;
    if (state_ == State::kDraining && child.pid != 0 && now_ns >= kill_at_ns_) {
      log::warn("{} did not end in time; killing it", child.spec.name);
      host_.Signal(child.pid, SIGKILL);
      killed_any_ = true;
    }
  }
  if (state_ == State::kDraining && !any_alive) state_ = State::kEnded;
  return state_;
}

void Supervisor::OnExit(Child& child, const ChildExit& exit) {
  switch (Judge(exit)) {
    case ExitVerdict::kDone:
      if (child.spec.role == ChildSpec::Role::kActor) {
        log::info("{} has left", child.spec.name);
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
  const std::optional<std::int64_t> delay_ns = child.policy.OnDeath();
  if (!delay_ns) {
    Fail(child, static_cast<int>(ExitCode::kTryAgain),
         Describe(exit) + ", after " + std::to_string(RestartPolicy::kTries) + " restarts");
    return;
  }
  ++restarts_;
  child.start_at_ns = clock_.NowNs() + *delay_ns;
  log::warn("{} died ({}); restart {} of {} in {} ms", child.spec.name, Describe(exit),
            child.policy.tries(), RestartPolicy::kTries, *delay_ns / kNanosPerMilli);
}

void Supervisor::OnExitWhileDraining(const Child& child, const ChildExit& exit) {
  // SIGTERM: it was asked before it could watch for signals, and has nothing to drain.
  if (Judge(exit) == ExitVerdict::kDone || (exit.signalled && exit.code == SIGTERM)) return;
  log::warn("{} ended with {} while draining", child.spec.name, Describe(exit));
  if (exit_code_ == 0) exit_code_ = static_cast<int>(ExitCode::kTryAgain);
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
