#include "tools/up/up.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/run/value_text.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTickMs = 50;
constexpr std::int64_t kPollPeriodNs = kNanosPerSecond / 2;

// Whether standard output is a terminal that moves its cursor.
bool DrawsTables() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

// 0: unknown.
std::size_t ScreenColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string Players(const UpOptions& options, const RunPlan& plan) {
  if (options.replay.resident_lanes > 0) {
    return std::to_string(options.replay.resident_lanes) + " lanes in the learner";
  }
  return std::to_string(options.actors) + " actors, " + std::to_string(plan.config.lanes) +
         " lanes a worker";
}

std::string Greeting(const UpOptions& options, const RunPlan& plan) {
  return "run " + plan.name + " (" + plan.config.env + ", " + plan.config.algo + ", seed " +
         std::to_string(plan.config.seed) + ") in " + plan.folder + ": " + Players(options, plan) +
         "; Ctrl-C ends it\n";
}

bool HasTimeLimit(const UpOptions& options) {
  return !options.stop_after.empty() && ParseStopAfter(options.stop_after).seconds > 0;
}

double SecondsSince(std::int64_t start_ns) {
  return static_cast<double>(MonotonicClock::Get().NowNs() - start_ns) / kNanosPerSecond;
}

}  // namespace

Up::Up(const UpOptions& options, RunPlan plan, SignalWatcher& signals)
    : options_(options),
      plan_(std::move(plan)),
      signals_(signals),
      services_(options_, plan_, kPollPeriodNs),
      folder_(services_.folder()),
      supervisor_(services_.supervisor()),
      out_(STDOUT_FILENO),
      console_(DrawsTables(), MonotonicClock::Get()) {
  signals_.SetEmergencyHook([this] { services_.EndAtOnce(); });
}

// What a run that goes on has lost already, as far as the manifest and a look at the newest file
// say it. The rest its learner finds, see WarnOfOlderCheckpoint.
void Up::WarnOfLostTraining() {
  if (!plan_.resuming) return;
  try {
    const auto listed = CheckpointStore(folder_.checkpoints(), 1).Manifest();
    if (listed.empty()) {
      log::warn("no checkpoint in {}: training starts from the beginning", folder_.checkpoints());
      return;
    }
    const std::string newest = folder_.checkpoints() + "/" + listed.back().file;
    std::error_code error;
    if (fs::file_size(newest, error) == listed.back().bytes && !error) return;
    log::warn("{} is missing or has another length: training goes on from an earlier one", newest);
    warned_of_older_ = true;
  } catch (const Error& error) {
    log::debug("{}; the learner will say so", error.what());
  }
}

// Once, as soon as the learner says so.
void Up::WarnOfOlderCheckpoint(const std::optional<RunStatus>& status) {
  if (warned_of_older_ || !status || status->Learner("older_checkpoint") <= 0) return;
  warned_of_older_ = true;
  log::warn(
      "the newest checkpoint could not be used: training goes on from an earlier one, and {} says "
      "why",
      folder_.logs() + "/learner.log");
}

int Up::Run() {
  EnsureShmDir(services_.shm_dir());  // refused while the run is not made, whose name is then free
  const std::int64_t start_ns = MonotonicClock::Get().NowNs();
  const RunStatus before = LastStatusOf(folder_.metrics_jsonl()).value_or(RunStatus());
  std::error_code missing;
  const std::uint64_t bytes = fs::file_size(folder_.metrics_jsonl(), missing);
  const std::uint64_t before_bytes = missing ? 0 : bytes;
  services_.ReapSharedMemory(RunIdIn(folder_));  // what a kill -9 of an earlier run left
  Print(Greeting(options_, plan_));
  WarnOfLostTraining();
  supervisor_.StartAll();
  while (supervisor_.Tick() != Supervisor::State::kEnded) {
    if (signals_.Draining()) {
      supervisor_.Drain("asked to; once more ends it at once");
      std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs));
    } else {
      signals_.WaitFor(kTickMs);
    }
    status_ = services_.Poll();
    WarnOfOlderCheckpoint(status_);
    if (status_) {
      RunStatus shown = *status_;
      // The status counts from the coordinator's start, which may be one after a death.
      shown.elapsed_s = SecondsSince(start_ns);
      Print(console_.Show(shown, supervisor_.ActorsUp(),
                          {.lines_between = LogLines(), .columns = ScreenColumns()}));
    }
  }
  const double wall_s = SecondsSince(start_ns);
  LookAtTheWhole(before);
  // What stood there before tells of the learners of earlier starts.
  WarnOfOlderCheckpoint(LastStatusOf(folder_.metrics_jsonl(), before_bytes));
  // Rings that no learner has emptied wait for the one of the resumed run.
  services_.ReapSharedMemory(supervisor_.exit_code() == 0 ? kNoRun : RunIdIn(folder_));
  services_.ReportFailure();
  PrintSummary(wall_s);
  return supervisor_.exit_code();
}

void Up::Print(const std::string& text) {
  (void)out_.Write(text);
}

// A run whose services only died is no success, however it ended.
void Up::LookAtTheWhole(const RunStatus& before) {
  // The coordinator's last line is newer than the last status that was fetched.
  if (const std::optional<RunStatus> last = LastStatusOf(folder_.metrics_jsonl())) {
    if (!status_ || last->env_steps >= status_->env_steps) status_ = Follow(status_, *last);
  }
  const RunStatus now = status_.value_or(RunStatus());
  if (now.env_steps == before.env_steps) {
    supervisor_.FailIfDied(std::nullopt);
    if (HasTimeLimit(options_) && !signals_.Draining()) supervisor_.FailAsTooShort();
  } else if (now.Learner("updates") == before.Learner("updates")) {
    supervisor_.FailIfDied(ChildSpec::Role::kLearner);
  }
}

void Up::PrintSummary(double wall_s) {
  std::error_code ignored;
  if (!fs::exists(folder_.config_toml(), ignored)) return;  // it never began
  Print(SummaryText({.status = status_.value_or(RunStatus()),
                     .run = plan_.name,
                     .runs_dir = RunsDirOf(options_, plan_),
                     .checkpoint = NewestCheckpoint(),
                     .wall_s = wall_s,
                     .exit_code = supervisor_.exit_code(),
                     .failed = supervisor_.failed_child(),
                     .log = folder_.logs() + "/" + supervisor_.failed_child() + ".log"}));
}

std::string Up::NewestCheckpoint() const {
  try {
    const auto listed = CheckpointStore(folder_.checkpoints(), 1).Manifest();
    return listed.empty() ? "" : folder_.checkpoints() + "/" + listed.back().file;
  } catch (const Error& error) {
    log::debug("no checkpoint to name: {}", error.what());
    return "";
  }
}

}  // namespace tetrion
