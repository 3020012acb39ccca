#include "tools/up/trial_run.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/mutex.h"
#include "lib/run/run_folder.h"
#include "tools/up/run_services.h"
#include "tools/up/training_rate.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTrialTickMs = 20;
constexpr std::int64_t kTrialPollPeriodNs = kNanosPerSecond / 10;
// How often the learner tells what it has trained: the window's ends are as exact.
constexpr const char* kHeartbeatS = "0.05";
constexpr const char* kSessionLeaseS = "10";  // more than three heartbeats, whatever a file says

// A folder of runs that is removed with what is in it. What a killed process leaves lies where
// temporary files are cleared away.
class TemporaryRuns {
 public:
  TemporaryRuns() {
    const char* const folder = std::getenv("TMPDIR");
    path_ = folder == nullptr || *folder == '\0' ? "/tmp" : folder;
    path_ += "/tetrion-trial-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throw Error(CodeOfFault(errno, ExitCode::kUsage),
                  "cannot make a folder for trial runs, " + path_ + ": " + std::strerror(errno) +
                      "; set TMPDIR to a folder that can be written, or give --threads a number");
    }
  }
  ~TemporaryRuns() { Remove(); }
  TemporaryRuns(const TemporaryRuns&) = delete;
  TemporaryRuns& operator=(const TemporaryRuns&) = delete;

  // Any thread; the folder is gone when it returns.
  void Remove() {
    MutexLock lock(mu_);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Mutex mu_;  // two that remove at a time make each other stop
};

// All of a run's settings, as if they had been given.
std::vector<Setting> SettingsOf(RunConfig config) {
  std::vector<Setting> settings;
  for (const SettingField& field : FieldsOf(config)) {
    if (!Concerns(field, config.algo)) continue;
    const std::string owner = field.algorithm.empty() ? "" : field.algorithm + ".";
    settings.push_back({owner + field.name, field.value()});
  }
  return settings;
}

// A config file may tell services where they are reached, when they end and where they log. A trial
// is reached by up alone.
std::vector<std::string> FlagsOfTrial(ChildSpec::Role role) {
  std::vector<std::string> flags = {
      "--http-bind", "127.0.0.1:0", "--http-advertise", "", "--log-file", ""};
  const auto add = [&](const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  if (role == ChildSpec::Role::kCoordinator) {
    add({"--bind", "", "--advertise", "", "--stop-after", "", "--init-from", ""});
    add({"--heartbeat", kHeartbeatS, "--session-lease", kSessionLeaseS});
  } else if (role == ChildSpec::Role::kLearner) {
    add({"--rows-bind", "", "--rows-advertise", ""});
  }
  return flags;
}

UpOptions OptionsOfTrial(UpOptions options, const RunPlan& plan, const CoreSplit& split,
                         const std::string& runs_dir) {
  options.run = "trial";
  options.runs_dir = runs_dir;
  options.resume = options.init_from = options.stop_after = "";
  if (plan.resuming) options.given = SettingsOf(plan.config);
  options.workers = split.workers;
  options.threads = split.threads;
  return options;
}

RunPlan PlanOfTrial(const UpOptions& options, int cores) {
  RunPlan plan = PlanRun(options, "", cores);
  for (ChildSpec& child : plan.children) {
    const std::vector<std::string> flags = FlagsOfTrial(child.role);
    for (auto* command : {&child.command, &child.restart_command}) {
      if (!command->empty()) command->insert(command->end(), flags.begin(), flags.end());
    }
  }
  return plan;
}

class Trial {
 public:
  // `waiting`: a run whose rings stay.
  Trial(const UpOptions& options, const RunPlan& plan, std::uint64_t waiting, TemporaryRuns& runs,
        SignalWatcher& signals)
      : waiting_(waiting),
        runs_(runs),
        signals_(signals),
        services_(options, plan, kTrialPollPeriodNs) {
    signals_.SetEmergencyHook([this] { LeaveNothing(); });
    services_.ReapSharedMemory(waiting_);  // else what a killed run left takes the trial's room
  }
  ~Trial() {
    LeaveNothing();
    signals_.SetEmergencyHook({});
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  TrialResult Play(bool may_fail) {
    Supervisor& supervisor = services_.supervisor();
    const Deadline limit = Deadline::AfterMs(kTrialLimitS * 1000);
    supervisor.StartAll();
    while (supervisor.Tick() == Supervisor::State::kRunning && !limit.Passed()) {
      if (signals_.WaitFor(kTrialTickMs)) return {.end = TrialResult::End::kInterrupted};
      if (may_fail && supervisor.restarts() > 0) return Failed();
      const std::optional<RunStatus>& status = services_.Poll();
      if (!status) continue;
      if (const std::optional<TrainingSpeed> speed = rate_.Look(*status)) {
        return {.end = TrialResult::End::kMeasured, .speed = *speed};
      }
    }
    if (supervisor.exit_code() != 0) return Failed();
    return {.end = TrialResult::End::kTooSlow};
  }

 private:
  // Main thread, and at a second signal the watcher's.
  void LeaveNothing() {
    services_.EndAtOnce(waiting_);
    runs_.Remove();
  }

  TrialResult Failed() {
    services_.ReportFailure();
    return {.end = TrialResult::End::kFailed,
            .exit_code = services_.supervisor().exit_code(),
            .failed = services_.supervisor().failed_child()};
  }

  const std::uint64_t waiting_;
  TemporaryRuns& runs_;
  SignalWatcher& signals_;
  RunServices services_;
  TrainingRate rate_;
};

}  // namespace

TrialResult PlayTrial(const UpOptions& options, const RunPlan& plan, const CoreSplit& split,
                      bool may_fail, int cores, SignalWatcher& signals) {
  TemporaryRuns runs;
  const UpOptions of_trial = OptionsOfTrial(options, plan, split, runs.path());
  const std::uint64_t waiting = RunIdIn(RunFolder::At(plan.folder));
  Trial trial(of_trial, PlanOfTrial(of_trial, cores), waiting, runs, signals);
  return trial.Play(may_fail);
}

}  // namespace tetrion
