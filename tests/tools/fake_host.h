#pragma once

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "tools/up/supervisor.h"

namespace tetrion {

// Processes that do what the test says.
class FakeHost final : public ProcessHost {
 public:
  pid_t Start(const std::string& name, const std::vector<std::string>& command) override {
    if (name == refused) throw Error(refusal, "cannot start " + name);
    starts.push_back(name + ":" + command.back());
    alive[++last_pid] = name;
    return last_pid;
  }
  std::optional<ChildExit> Poll(pid_t pid) override {
    const auto end = ends.find(pid);
    if (end == ends.end()) return std::nullopt;
    const ChildExit exit = end->second;
    ends.erase(end);
    alive.erase(pid);
    return exit;
  }
  void Signal(pid_t pid, int signal) override {
    signals.push_back(alive.at(pid) + ":" + std::to_string(signal));
    if (signal == SIGKILL && !dies_late) ends[pid] = {true, SIGKILL};
  }
  // Ends the living process of that name.
  void End(const std::string& name, ChildExit exit) {
    for (const auto& [pid, one] : alive) {
      if (one == name) ends[pid] = exit;
    }
  }
  void EndAll(ChildExit exit) {
    for (const auto& [pid, one] : alive) ends[pid] = exit;
  }
  std::string LastLine(const std::string& name) const override { return "last of " + name; }
  int Starts(const std::string& start) const {
    return static_cast<int>(std::count(starts.begin(), starts.end(), start));
  }

  pid_t last_pid = 100;
  std::map<pid_t, std::string> alive;
  std::map<pid_t, ChildExit> ends;
  std::vector<std::string> starts, signals;
  bool dies_late = false;  // a child that is killed lives until the test ends it
  std::string refused;     // the name that cannot be started
  ExitCode refusal = ExitCode::kTryAgain;
};

}  // namespace tetrion
