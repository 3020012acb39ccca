#include "tools/up/trial_run.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/log.h"
#include "lib/core/mutex.h"
#include "lib/run/config_file.h"
#include "lib/run/run_folder.h"
#include "lib/shm/shm_dir.h"
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

// Whether the config file lets the learner take rows over the network, as its actors may need.
bool TakesRemoteRows(const UpOptions& options) {
  if (options.config_file.empty()) return false;
  const std::vector<Setting> learner = ReadConfigFile(options.config_file)["learner"];
  return std::any_of(learner.begin(), learner.end(), [](const Setting& setting) {
    return setting.key == "rows_bind" && !setting.value.empty();
  });
}

// A config file may tell services where they are reached, when they end and where they log. A trial
// is reached by up alone, and its learner by the trial's actors.
std::vector<std::string> FlagsOfTrial(ChildSpec::Role role, bool remote_rows) {
  std::vector<std::string> flags = {
      "--http-bind", "127.0.0.1:0", "--http-advertise", "", "--log-file", ""};
  const auto add = [&](const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  if (role == ChildSpec::Role::kCoordinator) {
    add({"--bind", "", "--advertise", "", "--stop-after", "", "--init-from", ""});
    add({"--heartbeat", kHeartbeatS, "--session-lease", kSessionLeaseS});
  } else if (role == ChildSpec::Role::kLearner) {
    add({"--rows-bind", remote_rows ? "tcp://127.0.0.1:0" : "", "--rows-advertise", ""});
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
  const bool remote_rows = TakesRemoteRows(options);
  for (ChildSpec& child : plan.children) {
    const std::vector<std::string> flags = FlagsOfTrial(child.role, remote_rows);
    for (auto* command : {&child.command, &child.restart_command}) {
      if (!command->empty()) command->insert(command->end(), flags.begin(), flags.end());
    }
  }
  return plan;
}

class Trial {
 public:
  // `to_resume`: a run whose rings stay.
  Trial(const UpOptions& options, const RunPlan& plan, std::uint64_t to_resume, TemporaryRuns& runs,
        SignalWatcher& signals)
      : runs_(runs),
        signals_(signals),
        services_(options, plan, kTrialPollPeriodNs),
        kept_(services_.shm_dir(), to_resume) {
    signals_.SetEmergencyHook([this] { LeaveNothing(); });
    services_.ReapSharedMemory(kNoRun);  // else what a killed run left takes the trial's room
  }
  ~Trial() {
    LeaveNothing();
    signals_.SetEmergencyHook({});
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  TrialResult Play(bool ends_at_first_death) {
    Supervisor& supervisor = services_.supervisor();
    const Deadline limit = Deadline::AfterMs(kTrialLimitS * 1000);
    supervisor.StartAll();
    while (supervisor.Tick() == Supervisor::State::kRunning && !limit.Passed()) {
      if (signals_.WaitFor(kTrialTickMs)) return {.end = TrialResult::End::kInterrupted};
      if (ends_at_first_death && supervisor.restarts() > 0) return Failed();
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
    services_.EndAtOnce();
    RemoveSocket();
    runs_.Remove();
  }

  // It lies beside the regions where the folder's path is too long for it.
  void RemoveSocket() const {
    constexpr std::string_view kScheme = "ipc://";
    try {
      const std::string control = ReadEndpoints(services_.folder().endpoints_json()).control;
      if (!control.starts_with(kScheme)) return;
      const std::string path = control.substr(kScheme.size());
      std::error_code ignored;
      fs::remove(path, ignored);
      fs::remove(path + ".lock", ignored);
    } catch (const Error& error) {
      log::debug("no socket to remove: {}", error.what());
    }
  }

  TrialResult Failed() {
    services_.ReportFailure();
    return {.end = TrialResult::End::kFailed,
            .exit_code = services_.supervisor().exit_code(),
            .failed = services_.supervisor().failed_child()};
  }

  TemporaryRuns& runs_;
  SignalWatcher& signals_;
  RunServices services_;
  const KeptRings kept_;
  TrainingRate rate_;
};

}  // namespace

TrialResult PlayTrial(const UpOptions& options, const RunPlan& plan, const CoreSplit& split,
                      bool ends_at_first_death, int cores, SignalWatcher& signals) {
  TemporaryRuns runs;
  const UpOptions of_trial = OptionsOfTrial(options, plan, split, runs.path());
  const std::uint64_t to_resume = RunIdIn(RunFolder::At(plan.folder));
  Trial trial(of_trial, PlanOfTrial(of_trial, cores), to_resume, runs, signals);
  return trial.Play(ends_at_first_death);
}

}  // namespace tetrion
