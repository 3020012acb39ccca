#include "services/coordinator/coordinator.h"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/core/file_limit.h"
#include "lib/core/log.h"
#include "lib/core/random.h"
#include "lib/core/text_forms.h"
#include "lib/run/program.h"
#include "lib/shm/shm_dir.h"
#include "services/common/told_folders.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kWatchMs = 100;
// At the run's end: how long its learner's process may take to end, and between two looks.
constexpr std::int64_t kLearnerEndsMs = 2000, kLearnerWatchMs = 10;
constexpr std::uint64_t kFilesPerPeer = 2;
constexpr std::uint64_t kOwnFiles = 64;  // store, HTTP connections, logs

std::uint32_t ToMs(double seconds) {
  return static_cast<std::uint32_t>(seconds * 1000);
}

ControlConfig MakeControlConfig(const CoordinatorOptions& options, const OpenedRun& run) {
  return {.bind = options.bind,
          .run = run.folder.name(),
          .run_folder = std::filesystem::absolute(run.folder.path()).string(),
          .shm_dir = options.shm_dir,
          .run_config = run.config,
          .heartbeat_ms = ToMs(options.heartbeat_s),
          .session_lease_ms = ToMs(options.session_lease_s),
          .drain_timeout_ms = ToMs(options.drain_timeout_s),
          .stop_after = ParseStopAfter(options.stop_after),
          .stop_counts_whole_run = options.or_resume,
          .security = ServerSecurityOf(options.curve)};
}

// The --bind of any port with the port that `previous` told; empty where that was another address.
std::string BindOfBefore(const CoordinatorOptions& options, const std::string& previous) {
  if (!options.bind.ends_with(":0") || IsHostPort(options.advertise)) return "";
  const std::string any = options.bind.substr(0, options.bind.size() - 1);
  const std::string told = ToldEndpoint(options.advertise, any + "1");
  const std::string host = told.substr(0, told.size() - 1);
  return previous.starts_with(host) ? any + previous.substr(host.size()) : "";
}

// On a resume with a port of our choice the members find us where we were, if that is still free.
std::unique_ptr<ControlAgent> MakeControl(const CoordinatorOptions& options, const OpenedRun& run,
                                          const StoredRun& stored, StoreAgent& store,
                                          ControlMetrics& metrics) {
  ControlConfig config = MakeControlConfig(options, run);
  config.bind = ControlAddress(options.bind, run.folder, options.shm_dir, stored.run_id);
  const Clock& clock = MonotonicClock::Get();
  const std::string again = BindOfBefore(options, PreviousEndpoints(run.folder).control);
  if (!again.empty()) {
    config.bind = again;
    try {
      return std::make_unique<ControlAgent>(config, stored, store, metrics, clock);
    } catch (const Error& error) {
      log::warn("{}; taking another port", error.what());
      config.bind = options.bind;
    }
  }
  return std::make_unique<ControlAgent>(config, stored, store, metrics, clock);
}

// Removes the region of the run's dead learner from the folder that the run had before: learners
// look only in the new one. Warns where a process uses it.
void LeaveShmDir(const Endpoints& before, const std::string& shm_dir, std::uint64_t run_id) {
  const bool moved = !before.shm_dir.empty() && before.shm_dir != shm_dir;
  if (!moved || before.run_id != run_id || TryRemoveDeadLearner(before.shm_dir, run_id)) return;
  log::warn(
      "{}/{} stays: a process has locked it, its folder or another region of the run. The run's "
      "regions are in {} from now on: end that process (fuser names it), then remove the file",
      before.shm_dir, LearnerName(run_id), shm_dir);
}

}  // namespace

std::unique_ptr<Coordinator> MakeCoordinator(const CoordinatorOptions& options, OpenedRun run) {
  try {
    auto coordinator = std::make_unique<Coordinator>(options, run);
    NoteResumed(run);
    coordinator->Hold(std::move(run.lock));
    return coordinator;
  } catch (const Error&) {
    if (run.is_new) std::filesystem::remove_all(run.folder.path());  // still locked
    throw;
  }
}

Coordinator::Coordinator(const CoordinatorOptions& options, const OpenedRun& run)
    : folder_(run.folder),
      store_(run.folder.store()),
      store_agent_(store_, MonotonicClock::Get()),
      store_runner_(store_agent_,
                    [this](std::exception_ptr error) { host_->Fail(std::move(error)); }) {
  CheckRunFolder(run.folder.path());
  static_cast<void>(ToldShmDir(options.shm_dir));
  const auto peers = static_cast<std::uint64_t>(run.config.max_workers) + 1;
  RaiseFileLimit(kFilesPerPeer * peers + kOwnFiles, "this run");
  const StoredRun stored = store_.Load(RandomBits(), run.has_trained);
  metrics_ = std::make_unique<ControlMetrics>(registry_, run.config.env);
  control_ = MakeControl(options, run, stored, store_agent_, *metrics_);
  // An error ends the wait in Run: there is nothing to wake.
  host_ = std::make_unique<ServiceHost>(
      registry_, options.http_bind, [this] { return CheckReady(); }, [] {});
  host_->AddJson("/status", [this] { return control_->Status(); });
  const ToldPlaces told = {
      .control = ToldEndpoint(options.advertise, endpoint()),
      .http = Advertised("--http-advertise", options.http_advertise, http_address()),
      .shm_dir = options.shm_dir};
  files_ = std::make_unique<RunFiles>(folder_, stored.run_id, told, *control_, registry_,
                                      MonotonicClock::Get());
  memory_ = std::make_unique<MemoryWatch>(*control_, registry_);
  shm_dir_ = options.shm_dir;
  run_id_ = stored.run_id;
  LeaveShmDir(PreviousEndpoints(folder_), shm_dir_, run_id_);
  log::info("run {} (epoch {}) on {}, http {}", folder_.name(), stored.epoch, endpoint(),
            http_address());
}

Readiness Coordinator::CheckReady() const {
  return ReadinessOf({.store_pause = store_agent_.PauseReason(),
                      .files_problem = files_->Problem(),
                      .cycle_age_ns = host_->LinkCycleAgeNs(),
                      .draining = control_->draining()});
}

void Coordinator::Watch(const SignalWatcher& signals) {
  if (signals.Draining()) {
    control_->RequestDrain();
    std::this_thread::sleep_for(std::chrono::milliseconds(kWatchMs));
  } else {
    signals.WaitFor(kWatchMs);
  }
  if (host_->failed()) return;
  control_->SawLearnerRegion(LookAtRegion(shm_dir_ + "/" + LearnerName(run_id_)),
                             MonotonicClock::Get().NowNs());
  memory_->Tick();
  files_->Tick();
}

// The learner removes its region when it hears that the run ends. One that ended before that leaves
// it, for actors that go on with the next learner: then it goes with the run.
void Coordinator::RemoveLearnerRegion() {
  const Deadline deadline = Deadline::AfterMs(kLearnerEndsMs);
  while (!TryRemoveDeadLearner(shm_dir_, run_id_)) {
    if (deadline.Passed()) {
      log::warn("{} stays: its learner or an actor still runs", LearnerName(run_id_));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kLearnerWatchMs));
  }
}

void Coordinator::Run(const SignalWatcher& signals) {
  ShowCycles(registry_, store_runner_);
  store_runner_.Start();
  files_->Tick();
  host_->Run(*control_,
             {.done = [this] { return control_->finished() || host_->failed(); },
              .wait = [this, &signals] { Watch(signals); },
              // The control agent has pushed its last figures; the store agent writes what is
              // queued.
              .stop_rest =
                  [this] {
                    store_runner_.RequestStop();
                    store_runner_.Join();
                  }});
  RemoveLearnerRegion();
  files_->Finish();
  log::info("run {} ended: {}", folder_.name(), control_->Status());
  const std::string unwritten = store_agent_.Unwritten();
  if (unwritten.empty()) return;
  throw Error(ExitCode::kUnsaved,
              "the last changes of run " + folder_.name() + " are not in its store: " + unwritten +
                  "; make it writable and resume the run: what is not there is played again");
}

}  // namespace tetrion::coordinator
