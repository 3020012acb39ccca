#include "services/learner/learner.h"

#include <exception>
#include <string>
#include <utility>

#include "lib/checkpoint/writer_place.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/shm/shm_dir.h"
#include "services/learner/engine.h"
#include "services/learner/first_state.h"
#include "services/learner/host_copies.h"
#include "services/learner/run_home.h"

namespace tetrion::learner {
namespace {

// How often a thread of one piece of work looks whether it may end, once that is done.
constexpr std::int64_t kOnceIdleNs = 50 * kNanosPerMilli;

}  // namespace

Learner::Learner(LearnerOptions options, SignalWatcher& signals)
    : options_(std::move(options)),
      signals_(signals),
      host_(
          metrics_, options_.member.http_bind,
          [this] { return MemberReadiness(link_->Problem(), host_.LinkCycleAgeNs()); },
          [&signals] { signals.RequestDrain(); }),
      build_runner_(
          build_, [this](std::exception_ptr error) { host_.Fail(error); }, kOnceIdleNs),
      stop_runner_(stop_, [this](std::exception_ptr error) { host_.Fail(error); }, kOnceIdleNs) {
  metrics_.OnScrape([this] { RefreshMetrics(); });
  ServeHostCopies(metrics_);
  if (!options_.rows.bind.empty()) {
    rows_ = std::make_unique<wire::RowsServer>(wire::RowsServer::Config{
        .endpoint = options_.rows.bind, .security = ServerSecurityOf(options_.member.curve)});
  }
  link_ = std::make_unique<LearnerLinkAgent>(Membership(), LinkHooks(), board_, versions_,
                                             signals.drain_flag());
}

Learner::~Learner() = default;

MemberConfig Learner::Membership() {
  MemberConfig config = MemberConfigOf(options_.member, host_.http_address());
  config.traffic = &link_metrics_;
  if (rows_ != nullptr) {
    config.rows_endpoint = AdvertisedRows(options_.rows, rows_->endpoint());
    config.rows_key = rows_->public_key();
  }
  return config;
}

LearnerLinkAgent::Hooks Learner::LinkHooks() {
  return {.start_build = [this](const wire::Registered& registered) { StartBuild(registered); },
          .built = [this] { return Built(); },
          .fill = [this](wire::Heartbeat& heartbeat) { FillHeartbeat(heartbeat); },
          .failed = [this] { return host_.failed(); },
          .drain_lanes = [this] { DrainLanes(); },
          .lanes_done = [this] { return engine_->ResidentDone(); },
          .batch_waits = [this] { return engine_->BatchWaits(); },
          .start_stop = [this] { StartStop(); },
          .stopped = [this] { return Stopped(); }};
}

void Learner::Run() {
  host_.Run(*link_, {.done = [this] { return link_->Done(); },
                     .stop_rest =
                         [this] {
                           EndBuild();
                           EndStop();
                         }});
  if (!engine_) return;
  // An actor keeps its mapping of the region over a restart of the learner, so it goes with the
  // run.
  if (link_->run_ends() && board_.AllEnded()) engine_->UnlinkRegion();
  engine_->LogDrained();
}

void Learner::StartBuild(const wire::Registered& registered) {
  SetUpMemberLogging(options_.member, registered.run);
  registered_ = registered;
  if (!options_.member.shm_dir.empty()) registered_.shm_dir = options_.member.shm_dir;
  build_runner_.Start();
}

// On the build thread: may wait for the folder's lock, allocates the replay, reads the checkpoint.
void Learner::Build() {
  const std::int64_t start_ns = MonotonicClock::Get().NowNs();
  const RunFolder home = RunHomeOf(options_, registered_);
  registered_.run_folder = home.path();
  CheckFirstState(options_, RunConfigFromText(registered_.run_config), home);
  EnsureShmDir(registered_.shm_dir);
  const int removed = RemoveStale(registered_.shm_dir, registered_.run_id);
  if (removed > 0) log::info("removed {} shared regions of dead runs", removed);
  auto engine = std::make_unique<Engine>(
      Engine::Surroundings{.options = options_,
                           .metrics = metrics_,
                           .board = board_,
                           .versions = versions_,
                           .drain_lanes = drain_lanes_,
                           .mean_return = [this] { return link_->mean_return(); },
                           .on_error = [this](std::exception_ptr error) { host_.Fail(error); }},
      registered_, std::move(rows_));
  if (abandoned_.load(std::memory_order_acquire)) return;
  engine_ = std::move(engine);
  engine_->OnBuilt(static_cast<double>(MonotonicClock::Get().NowNs() - start_ns) * 1e-9);
  engine_->Start();
  ready_engine_.store(engine_.get());
  if (drain_lanes_.load()) engine_->LetIngestRun();
}

// The build thread, which may be done at this moment, looks at the flag after the engine stands:
// one of the two sees the other.
void Learner::DrainLanes() {
  drain_lanes_.store(true);
  if (Engine* engine = ready_engine_.load()) engine->LetIngestRun();
}

bool Learner::Built() {
  if (!build_.Finished()) return false;
  build_runner_.RequestStop();
  return true;
}

// A build cannot be interrupted: the process ends when it is over, or at the second signal.
void Learner::EndBuild() {
  abandoned_.store(true, std::memory_order_release);
  build_runner_.RequestStop();
  build_runner_.Join();
  try {
    (void)build_.Finished();
  } catch (...) {
    host_.Fail(std::current_exception());
  }
}

void Learner::FillHeartbeat(wire::Heartbeat& heartbeat) {
  engine_->FillHeartbeat(heartbeat);
}

void Learner::RefreshMetrics() {
  Engine* engine = ready_engine_.load(std::memory_order_acquire);
  if (engine != nullptr) engine->RefreshMetrics();
}

void Learner::StartStop() {
  stop_runner_.Start();
}

// A restart saves nothing of a run that ends, or of a learner that was told to end. Where another
// learner has the place, that one saves.
void Learner::StopEngine() {
  if (!engine_) return;
  try {
    engine_->Stop();
  } catch (const PlaceTaken&) {
    throw;
  } catch (const std::exception& error) {
    if (!link_->run_ends() && !signals_.Draining()) throw;
    throw Error(
        ExitCode::kUnsaved,
        error.what() + std::string("; what was learnt since the checkpoint before is lost"));
  }
}

bool Learner::Stopped() {
  if (!stop_.Finished()) return false;
  stop_runner_.RequestStop();
  return true;
}

// Also where no drain has begun to stop the engine, or the link has ended meanwhile.
void Learner::EndStop() {
  stop_runner_.RequestStop();
  stop_runner_.Join();
  try {
    if (!stop_.Finished()) StopEngine();
  } catch (...) {
    host_.Fail(std::current_exception());
  }
}

}  // namespace tetrion::learner
