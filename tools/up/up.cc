#include "tools/up/up.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/http/http_get.h"
#include "lib/run/value_text.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTickMs = 50;
constexpr std::int64_t kPollPeriodNs = kNanosPerSecond / 2;
constexpr int kPollTimeoutMs = 500;
constexpr std::uint64_t kNoRun = 0;

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

}  // namespace

Up::Up(const UpOptions& options, RunPlan plan, SignalWatcher& signals)
    : options_(options),
      plan_(std::move(plan)),
      folder_(RunFolder::At(plan_.folder)),
      signals_(signals),
      processes_(folder_.logs()),
      supervisor_(plan_.children, options.drain_timeout_s * kNanosPerSecond, processes_,
                  MonotonicClock::Get()),
      out_(STDOUT_FILENO),
      console_(isatty(STDOUT_FILENO) != 0, MonotonicClock::Get()) {
  signals_.SetEmergencyHook([this] {
    processes_.KillAll();
    ReapSharedMemory(kNoRun);
  });
}

// What a run that goes on has lost already, as far as the manifest and a look at the newest file
// say it; its learner tells its log all of it.
void Up::WarnOfLostTraining() const {
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
  } catch (const Error& error) {
    log::debug("{}; the learner will say so", error.what());
  }
}

int Up::Run() {
  const std::int64_t start_ns = MonotonicClock::Get().NowNs();
  const RunStatus before = LastStatusOf(folder_.metrics_jsonl()).value_or(RunStatus());
  ReapSharedMemory(EarlierRunId());  // what a kill -9 of an earlier run left
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
    PollStatus();
    if (status_) Print(console_.Show(*status_, supervisor_.ActorsUp(), LogLines()));
  }
  const std::int64_t wall_ns = MonotonicClock::Get().NowNs() - start_ns;
  LookAtTheWhole(before);
  // Rings that no learner has emptied wait for the one of the resumed run.
  ReapSharedMemory(supervisor_.exit_code() == 0 ? kNoRun : EarlierRunId());
  ReportFailure();
  PrintSummary(static_cast<double>(wall_ns) / kNanosPerSecond);
  return supervisor_.exit_code();
}

// A coordinator that is not there (yet, or any more) is no error: the supervisor sees to it.
void Up::PollStatus() {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  const pid_t coordinator = supervisor_.PidOf("coordinator");
  if (now_ns < next_poll_ns_ || coordinator == 0) return;
  next_poll_ns_ = now_ns + kPollPeriodNs;
  try {
    const Endpoints endpoints = ReadEndpoints(folder_.endpoints_json());
    const auto http = endpoints.http.find("coordinator");
    if (endpoints.pid != coordinator || http == endpoints.http.end()) return;
    const std::optional<RunStatus> status =
        ParseStatus(HttpGet(http->second, "/status", kPollTimeoutMs));
    if (status) status_ = Follow(status_, *status);
  } catch (const Error& error) {
    log::debug("no status: {}", error.what());
  }
}

void Up::Print(const std::string& text) {
  (void)out_.Write(text);
}

void Up::ReportFailure() const {
  if (supervisor_.failed_child().empty()) return;
  std::string text = supervisor_.failed_child() + " failed; its last lines:\n";
  for (const std::string& line : processes_.LastLines(supervisor_.failed_child())) {
    text += "  " + line + "\n";
  }
  (void)NoWaitWriter(STDERR_FILENO).Write(text);
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

// Of the run that is resumed; kNoRun where there is none.
std::uint64_t Up::EarlierRunId() const {
  try {
    return ReadEndpoints(folder_.endpoints_json()).run_id;
  } catch (const Error&) {
    return kNoRun;
  }
}

// What killed services leave, of this run and of others. Regions that a process holds (an actor
// started by hand) stay, and the rings of `resumed`, which its learner empties.
void Up::ReapSharedMemory(std::uint64_t resumed) const {
  const std::string dir = options_.shm_dir.empty() ? DefaultShmDir() : options_.shm_dir;
  if (ListRegions(dir).empty()) return;
  try {
    RemoveStale(dir, resumed);
  } catch (const Error& error) {
    log::warn("shared memory may be left in {}: {}", dir, error.what());
  }
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
