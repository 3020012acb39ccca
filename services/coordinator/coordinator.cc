#include "services/coordinator/coordinator.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/metrics/log_recorder.h"
#include "lib/run/revision.h"

namespace tetrion {
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

std::uint64_t RandomId() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
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
          .stop_after = ParseStopAfter(options.stop_after),
          .metrics_path = run.folder.metrics_jsonl()};
}

// On a resume with a port of our choice the members find us where we were, if that is still free.
std::unique_ptr<ControlAgent> MakeControl(const CoordinatorOptions& options, const OpenedRun& run,
                                          const StoredRun& stored, StoreAgent& store,
                                          ControlMetrics& metrics) {
  ControlConfig config = MakeControlConfig(options, run);
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

}  // namespace

OpenedRun OpenRun(const CoordinatorOptions& options) {
  if (options.resume.empty()) {
    RunConfig config = MakeRunConfig(options.given);
    const std::string name =
        options.run.empty() ? DefaultRunName(config.env, std::time(nullptr)) : options.run;
    RunFolder folder = RunFolder::Create(options.runs_dir, name);
    folder.WriteConfig(config);
    WriteAtomically(folder.revision(), std::string(Revision()) + "\n");
    return {.folder = std::move(folder), .config = std::move(config), .is_new = true};
  }
  RunFolder folder = RunFolder::Open(options.runs_dir, options.resume);
  RunConfig config = folder.ReadConfig();
  std::string text;
  for (const std::string& line : Contradictions(options.given, config)) text += "; " + line;
  if (!text.empty()) {
    throw Error(ExitCode::kConfig, "run " + folder.name() +
                                       " cannot be resumed otherwise than it "
                                       "was" +
                                       text + "; leave these options out, or start a new run");
  }
  return {.folder = std::move(folder), .config = std::move(config)};
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
      store_agent_(store_, MonotonicClock::Get()) {
  RaiseFileLimit(static_cast<rlim_t>(run.config.max_workers) + 1);
  const StoredRun stored = store_.Load(RandomId());
  metrics_ = std::make_unique<ControlMetrics>(registry_, run.config.env);
  registry_.Gauge("tetrion_build_info", {Revision(), Preset()}).Set(1);
  ServeLostLogLines(registry_);
  control_ = MakeControl(options, run, stored, store_agent_, *metrics_);
  http_ =
      std::make_unique<HttpEndpoint>(options.http_bind, registry_, [this] { return CheckReady(); });
  http_->AddJson("/status", [this] { return control_->Status(); });
  log::info("run {} (epoch {}) on {}, http {}", folder_.name(), stored.epoch, endpoint(),
            http_address());
}

Coordinator::~Coordinator() {
  close(lock_fd_);
}

Readiness Coordinator::CheckReady() const {
  if (store_agent_.Full()) return {false, "the disk of the run folder is full"};
  if (control_->draining()) return {false, "the run is ending"};
  return {true, ""};
}

void Coordinator::Fail(std::exception_ptr error) {
  MutexLock lock(error_mu_);
  if (error_ == nullptr) error_ = std::move(error);
}

void Coordinator::RethrowFailure() {
  MutexLock lock(error_mu_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void Coordinator::WaitUntilFinished(const SignalWatcher& signals) {
  const EndpointsWriter writer(folder_, endpoint(), http_address());
  std::uint64_t written = control_->members_revision();
  writer.Write(control_->Members());
  while (!control_->finished()) {
    if (signals.Draining()) {
      control_->RequestDrain();
      std::this_thread::sleep_for(std::chrono::milliseconds(kWatchMs));
    } else {
      signals.WaitFor(kWatchMs);
    }
    RethrowFailure();
    const std::uint64_t revision = control_->members_revision();
    if (revision == written) continue;
    written = revision;
    writer.Write(control_->Members());
  }
}

void Coordinator::Run(const SignalWatcher& signals) {
  const auto on_error = [this](std::exception_ptr error) { Fail(std::move(error)); };
  AgentRunner store_runner(store_agent_, on_error);
  AgentRunner control_runner(*control_, on_error);
  store_runner.Start();
  control_runner.Start();
  http_->Start();
  WaitUntilFinished(signals);
  // The control agent pushes its last figures, then the store agent writes what is queued.
  control_runner.RequestStop();
  control_runner.Join();
  store_runner.RequestStop();
  store_runner.Join();
  http_->Stop();
  RethrowFailure();
  WriteAtomically(folder_.path() + "/summary.json", control_->Status() + "\n");
  log::info("run {} ended: {}", folder_.name(), control_->Status());
}

}  // namespace tetrion
