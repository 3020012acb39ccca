#include "services/coordinator/coordinator.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/random.h"
#include "lib/metrics/log_recorder.h"
#include "lib/run/revision.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/shm_dir.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kWatchMs = 100;
constexpr rlim_t kOwnFiles = 64;  // store, HTTP connections, logs

// Holds the run folder: two coordinators on one store would both count.
int LockFolder(const RunFolder& folder) {
  const int fd = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  throw Error(ExitCode::kUsage, "run folder " + folder.path() +
                                    " is in use by another coordinator: stop that one first, or "
                                    "start another run with --run NAME");
}

// Past the limit a ROUTER starves members silently, so too low a limit is refused.
void RaiseFileLimit(rlim_t expected_peers) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = 2 * expected_peers + kOwnFiles;
  if (limit.rlim_cur >= needed) return;
  throw Error(ExitCode::kUsage, "the limit of open files is " + std::to_string(limit.rlim_cur) +
                                    ", this run needs " + std::to_string(needed) +
                                    ": raise it (ulimit -n)");
}

// What queues in front of the socket is bounded by nothing in ZeroMQ (lib/wire/socket.h says why).
// Beyond this, apart from our own tables, connections are closed.
constexpr std::uint64_t kMaxInputBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kRebindEveryNs = kNanosPerSecond;
constexpr std::size_t kMaxSocketPathBytes = 107;  // sockaddr_un

// Resident memory of this process; 0 where the kernel does not tell.
std::uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all_pages = 0, resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

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
          .stop_after = ParseStopAfter(options.stop_after)};
}

// On a resume with a port of our choice the members find us where we were, if that is still free.
std::unique_ptr<ControlAgent> MakeControl(const CoordinatorOptions& options, const OpenedRun& run,
                                          const StoredRun& stored, StoreAgent& store,
                                          ControlMetrics& metrics) {
  ControlConfig config = MakeControlConfig(options, run);
  config.bind = ControlAddress(options.bind, run.folder, options.shm_dir, stored.run_id);
  const Clock& clock = MonotonicClock::Get();
  const std::string previous = PreviousControlEndpoint(run.folder);
  const bool any_port =
      options.bind.size() > 2 && options.bind.substr(options.bind.size() - 2) == ":0";
  if (any_port && previous.rfind(options.bind.substr(0, options.bind.size() - 1), 0) == 0) {
    config.bind = previous;
    try {
      return std::make_unique<ControlAgent>(config, stored, store, metrics, clock);
    } catch (const Error& error) {
      log::warn("{}; taking another port", error.what());
      config.bind = options.bind;
    }
  }
  return std::make_unique<ControlAgent>(config, stored, store, metrics, clock);
}

OpenedRun NewRun(const CoordinatorOptions& options) {
  RunConfig config = MakeRunConfig(options.given);
  static_cast<void>(EnvSpecOf(config));  // refuses an unknown view while nothing is made
  std::optional<Checkpoint> initial;
  if (!options.init_from.empty()) {
    initial = LoadInitial(options.runs_dir, options.init_from, config);
  }
  const std::string name =
      options.run.empty() ? DefaultRunName(config.env, std::time(nullptr)) : options.run;
  RunFolder folder = RunFolder::Create(options.runs_dir, name);
  try {
    if (initial) {
      CheckpointStore(folder.initial(), 1).Save(initial->state, initial->info);
      folder.RecordChanges({{"init_from", "", initial->path}}, /*update=*/0);
      log::info("begins with the weights of {} ({} updates)", initial->path, initial->info.updates);
    }
    folder.WriteConfig(config);
  } catch (const Error&) {
    std::filesystem::remove_all(folder.path());  // the same command can be given again
    throw;
  }
  return {.folder = std::move(folder), .config = std::move(config), .is_new = true};
}

// The update from which a resumed run has its new settings: that of the newest checkpoint.
std::int64_t ResumedUpdate(const RunFolder& folder) {
  const auto checkpoints = CheckpointStore(folder.checkpoints(), 1).Manifest();
  return checkpoints.empty() ? 0 : checkpoints.back().info.updates;
}

OpenedRun ResumedRun(const CoordinatorOptions& options) {
  RunFolder folder = RunFolder::Open(options.runs_dir, options.resume);
  RunConfig config = folder.ReadConfig();
  const std::vector<SettingChange> changes = ChangeOnResume(options.given, config);
  if (!changes.empty()) {
    const std::int64_t update = ResumedUpdate(folder);
    folder.RecordChanges(changes, update);
    folder.WriteConfig(config);
    for (const SettingChange& change : changes) {
      log::info("{} {} -> {} at update {}", change.key, change.before, change.after, update);
    }
  }
  return {.folder = std::move(folder), .config = std::move(config)};
}

}  // namespace

OpenedRun OpenRun(const CoordinatorOptions& options) {
  return options.resume.empty() ? NewRun(options) : ResumedRun(options);
}

std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id) {
  if (!bind.empty()) return bind;
  const std::string in_folder = folder.path() + "/control.sock";
  if (in_folder.size() <= kMaxSocketPathBytes) return "ipc://" + in_folder;
  EnsureShmDir(shm_dir);
  return "ipc://" + shm_dir + "/" + std::to_string(run_id) + ".sock";
}

std::unique_ptr<Coordinator> MakeCoordinator(const CoordinatorOptions& options, OpenedRun run) {
  const std::string folder = run.folder.path();
  const bool is_new = run.is_new;
  try {
    return std::make_unique<Coordinator>(options, std::move(run));
  } catch (const Error&) {
    if (is_new) std::filesystem::remove_all(folder);
    throw;
  }
}

Coordinator::Coordinator(const CoordinatorOptions& options, OpenedRun run)
    : folder_(run.folder),
      lock_fd_(LockFolder(run.folder)),
      store_(run.folder.store()),
      store_agent_(store_, MonotonicClock::Get()),
      store_runner_(store_agent_, [this](std::exception_ptr error) { Fail(std::move(error)); }) {
  RaiseFileLimit(static_cast<rlim_t>(run.config.max_workers) + 1);
  const StoredRun stored = store_.Load(RandomBits());
  metrics_ = std::make_unique<ControlMetrics>(registry_, run.config.env);
  registry_.Gauge("tetrion_build_info", {Revision(), Preset()}).Set(1);
  ServeLostLogLines(registry_);
  control_ = MakeControl(options, run, stored, store_agent_, *metrics_);
  control_runner_ = std::make_unique<AgentRunner>(
      *control_, [this](std::exception_ptr error) { Fail(std::move(error)); });
  http_ =
      std::make_unique<HttpEndpoint>(options.http_bind, registry_, [this] { return CheckReady(); });
  http_->AddJson("/status", [this] { return control_->Status(); });
  files_ = std::make_unique<RunFiles>(folder_, http_address(), *control_, registry_,
                                      MonotonicClock::Get());
  rebinds_ = &registry_.Counter("tetrion_coordinator_rebinds_total");
  learner_region_ = options.shm_dir + "/" + LearnerName(stored.run_id);
  log::info("run {} (epoch {}) on {}, http {}", folder_.name(), stored.epoch, endpoint(),
            http_address());
}

Coordinator::~Coordinator() {
  close(lock_fd_);
}

Readiness ReadinessOf(const ReadyInput& input) {
  if (!input.store_pause.empty()) {
    return {false, "the store cannot be written: " + input.store_pause};
  }
  if (!input.files_problem.empty()) return {false, input.files_problem};
  if (input.cycle_age_ns > ControlAgent::kMaxCycleNs) {
    return {false, "the control thread has been busy for " +
                       std::to_string(input.cycle_age_ns / kNanosPerSecond) + " s"};
  }
  if (input.draining) return {false, "the run is ending"};
  return {true, ""};
}

Readiness Coordinator::CheckReady() const {
  return ReadinessOf({.store_pause = store_agent_.PauseReason(),
                      .files_problem = files_->Problem(),
                      .cycle_age_ns = control_runner_->CycleAgeNs(),
                      .draining = control_->draining()});
}

void Coordinator::Fail(std::exception_ptr error) {
  MutexLock lock(error_mu_);
  if (error_ == nullptr) error_ = std::move(error);
}

void Coordinator::RethrowFailure() {
  MutexLock lock(error_mu_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

// Connections that fill our memory are closed, all of them: nothing tells which one it is.
void Coordinator::WatchMemory() {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  const std::uint64_t most = kMaxInputBytes + control_->TableBytes();
  if (now_ns < next_rebind_ns_ || ResidentBytes() <= most) return;
  malloc_trim(0);  // what members that left have freed is no input
  const std::uint64_t bytes = ResidentBytes();
  if (bytes <= most) return;
  next_rebind_ns_ = now_ns + kRebindEveryNs;
  log::error("{} MiB of memory are in use: closing every connection; members come back",
             bytes >> 20);
  rebinds_->Increment();
  control_->RequestRebind();
}

void Coordinator::WaitUntilFinished(const SignalWatcher& signals) {
  while (!control_->finished()) {
    if (signals.Draining()) {
      control_->RequestDrain();
      std::this_thread::sleep_for(std::chrono::milliseconds(kWatchMs));
    } else {
      signals.WaitFor(kWatchMs);
    }
    RethrowFailure();
    const std::int64_t now_ns = MonotonicClock::Get().NowNs();
    if (RegionIsFree(learner_region_)) control_->LearnerRegionFree(now_ns);
    WatchMemory();
    files_->Tick();
  }
}

void Coordinator::Run(const SignalWatcher& signals) {
  store_runner_.Start();
  control_runner_->Start();
  files_->Tick();
  http_->Start();
  WaitUntilFinished(signals);
  // The control agent pushes its last figures, then the store agent writes what is queued.
  control_runner_->RequestStop();
  control_runner_->Join();
  store_runner_.RequestStop();
  store_runner_.Join();
  http_->Stop();
  RethrowFailure();
  files_->Finish();
  log::info("run {} ended: {}", folder_.name(), control_->Status());
}

}  // namespace tetrion::coordinator
