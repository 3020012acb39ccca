#include "services/learner/learner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "lib/core/cpu_count.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/metrics/log_recorder.h"
#include "lib/policy/network_policy.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/run/run_folder.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/shm_dir.h"
#include "lib/weights/weights_reader.h"
#include "services/learner/checkpoint_agent.h"
#include "services/learner/inference_agent.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/learner_metrics.h"
#include "services/learner/replay_source.h"
#include "services/learner/trainer_agent.h"
#include "services/learner/trainer_factory.h"

namespace tetrion::learner {
namespace {

GateConfig GateConfigOf(const RunConfig& run) {
  return {.shards = run.max_workers,
          .capacity_rows = run.replay_rows,
          .commit_stride = run.commit_stride};
}

// The scorer's kernels divide a batch over every core it may use and take back the time that
// workers wait; the tensor library's small networks lose more to waking threads than they gain.
int ThreadsFor(const RunConfig& run, int asked) {
  constexpr int kMostUseful = 8;
  if (asked > 0) return asked;
  if (run.network != "scorer") return 1;
  return std::min(UsableCpus(), kMostUseful);
}

// Gives a trainer that has trained nothing yet the parameters of another run, where the user wants
// that (--init-from).
void Begin(const RunFolder& folder, Trainer& trainer) {
  const std::optional<Checkpoint> initial = CheckpointStore(folder.initial(), 1).LoadNewest();
  if (!initial) return;
  trainer.Load(BegunWith(trainer.Save(), initial->state));
  log::info("began with the weights of run {} at its update {}", initial->info.run,
            initial->info.updates);
}

// Loads the newest checkpoint when resuming; refuses to overwrite a run by starting it anew.
std::uint64_t LoadCheckpoint(const LearnerOptions& options, const CheckpointStore& store,
                             const RunConfig& run, const RunFolder& folder, Trainer& trainer) {
  if (!options.resume) {
    if (store.Manifest().empty()) {
      Begin(folder, trainer);
      return 0;
    }
    throw Error(ExitCode::kConfig, folder.checkpoints() +
                                       " holds checkpoints already; add --resume to go on from "
                                       "the newest, or start a new run");
  }
  const std::optional<Checkpoint> checkpoint = store.LoadNewest(RunConfigHash(run), options.force);
  if (!checkpoint) {
    log::warn("no checkpoint in {}: training starts from the beginning", folder.checkpoints());
    Begin(folder, trainer);
    return 0;
  }
  if (!checkpoint->warning.empty()) log::warn("{}", checkpoint->warning);
  trainer.Load(checkpoint->state);
  log::info("resumed from {} at update {}", checkpoint->path, checkpoint->info.updates);
  return static_cast<std::uint64_t>(checkpoint->info.updates);
}

// Most lanes that one call of the policy decides for streamed workers: beyond it, gathering more
// rows costs more than the larger call saves.
constexpr int kMaxInferenceLanes = 4096;

int InferenceLanes(const RunConfig& run) {
  return std::max(run.lanes, std::min(kMaxInferenceLanes, run.max_workers * run.lanes));
}

// What the inference thread decides with: the newest weights, as an actor of this host would.
InferenceAgent::Parts InferencePartsOf(const RunConfig& run, const std::string& shm_dir,
                                       std::uint64_t run_id, const LearnerRegion& region,
                                       LearnerMetrics& metrics) {
  return {.policy = MakeTorchPolicy(
              {.network = run.network, .seed = run.seed, .max_lanes = InferenceLanes(run)},
              EnvSpecOf(run)),
          .weights = std::make_unique<WeightsReader>(
              WeightsReader::Config{
                  .shm_dir = shm_dir, .run_id = run_id, .spec_hash = RunConfigHash(run)},
              [](Bell) {}),
          .bell = region.inference_bell(),
          .ingest = region.bell(),
          .on_batch = [&metrics](double seconds) { metrics.OnInference(seconds); }};
}

// How often the build thread looks whether it may end, once it has built.
constexpr std::int64_t kBuildIdleNs = 50 * kNanosPerMilli;

}  // namespace

// A counter's rate between heartbeats. Link thread only.
class RateMeter {
 public:
  double PerSecond(std::uint64_t counter) {
    const std::int64_t now_ns = MonotonicClock::Get().NowNs();
    const double seconds = static_cast<double>(now_ns - last_ns_) * 1e-9;
    const double rate = last_ns_ == 0 ? 0.0 : static_cast<double>(counter - last_) / seconds;
    last_ = counter;
    last_ns_ = now_ns;
    return rate;
  }

 private:
  std::uint64_t last_ = 0;
  std::int64_t last_ns_ = 0;
};

struct Learner::Engine {
  Engine(Learner& owner, const wire::Registered& registered);

  void Start();
  // Rings have ended: stops the threads, keeps what was learnt. May be called twice.
  void Stop();
  CheckpointInfo Describe(const Learner& owner) const;

  const std::string run_name;
  const RunConfig run;
  const std::string checkpoint_folder;
  const std::unique_ptr<Trainer> trainer;
  CheckpointAgent checkpoints;
  const std::uint64_t resumed_updates;
  LearnerRegion region;
  ReplayGate replay;
  HostRows rows;
  ReplaySource source;
  LearnerMetrics metrics;
  StreamBoard streams;
  IngestAgent ingest;
  InferenceAgent inference;
  TrainerAgent training;
  AgentRunner checkpoint_runner, ingest_runner, inference_runner, trainer_runner;
  RateMeter update_rate;
  bool stopped = false;
};

Learner::Engine::Engine(Learner& owner, const wire::Registered& registered)
    : run_name(registered.run),
      run(RunConfigFromText(registered.run_config)),
      checkpoint_folder(RunFolder::At(registered.run_folder).checkpoints()),
      trainer(MakeTrainer(run, ThreadsFor(run, owner.options_.threads))),
      checkpoints(checkpoint_folder, owner.options_.keep_checkpoints),
      resumed_updates(LoadCheckpoint(
          owner.options_, CheckpointStore(checkpoint_folder, owner.options_.keep_checkpoints), run,
          RunFolder::At(registered.run_folder), *trainer)),
      region(LearnerRegion::CreateOrAdopt(registered.shm_dir, registered.run_id,
                                          trainer->PolicyBlobBytes(), RunConfigHash(run))),
      replay(GateConfigOf(run), std::make_unique<FifoSelector>(run.max_workers, run.window),
             FifoLimiter(run.batch_windows)),
      rows(RowSpecOf(run), run.max_workers, run.replay_rows),
      source(replay, rows, run.window, run.batch_windows),
      metrics(owner.metrics_, run.max_workers),
      ingest({.run_id = registered.run_id,
              .shm_dir = registered.shm_dir,
              .action_count = EnvSpecOf(run).action.count,
              .check_records = EnvSpecOf(run).obs.check},
             replay, rows, region.bell(), owner.board_, streams),
      inference({.run_id = registered.run_id,
                 .action_count = EnvSpecOf(run).action.count,
                 .check_records = EnvSpecOf(run).obs.check,
                 .max_lanes = InferenceLanes(run)},
                RowLayout(RowSpecOf(run)),
                InferencePartsOf(run, registered.shm_dir, registered.run_id, region, metrics),
                streams),
      training({.batch_steps = run.window * run.batch_windows * run.lanes,
                .batch_windows = run.batch_windows,
                .actions = EnvSpecOf(run).action.count,
                .checkpoint_every_ns =
                    static_cast<std::int64_t>(owner.options_.checkpoint_every_s * 1e9)},
               {.on_update = [this](const UpdateStats& stats) { metrics.OnUpdate(stats); },
                .describe = [this, &owner] { return Describe(owner); }},
               *trainer, source, region.MakeWriter(), owner.versions_, checkpoints,
               resumed_updates),
      checkpoint_runner(checkpoints, [&owner](std::exception_ptr e) { owner.Fail(e); }),
      ingest_runner(ingest, [&owner](std::exception_ptr e) { owner.Fail(e); }),
      inference_runner(inference, [&owner](std::exception_ptr e) { owner.Fail(e); }),
      trainer_runner(training, [&owner](std::exception_ptr e) { owner.Fail(e); }) {
  log::info("replay of {} shards x {} rows x {} lanes: {} bytes", run.max_workers, run.replay_rows,
            run.lanes, rows.memory_bytes());
}

CheckpointInfo Learner::Engine::Describe(const Learner& owner) const {
  return {.config_hash = RunConfigHash(run),
          .run = run_name,
          .env = run.env,
          .network = run.network,
          .env_steps = static_cast<std::int64_t>(ingest.counters().rows.load()) * run.lanes,
          .mean_return = owner.link_->mean_return()};
}

void Learner::Engine::Start() {
  checkpoint_runner.Start();
  trainer_runner.Start();
  ingest_runner.Start();
  inference_runner.Start();
}

void Learner::Engine::Stop() {
  if (std::exchange(stopped, true)) return;
  inference_runner.RequestStop();
  ingest_runner.RequestStop();
  trainer_runner.RequestStop();
  checkpoint_runner.RequestStop();
  inference_runner.Join();
  ingest_runner.Join();
  trainer_runner.Join();
  checkpoint_runner.Join();
  training.SaveFinal();
}

Learner::Learner(LearnerOptions options, SignalWatcher& signals)
    : options_(std::move(options)),
      signals_(signals),
      build_runner_(build_, [this](std::exception_ptr error) { Fail(error); }, kBuildIdleNs) {
  metrics_.OnScrape([this] { RefreshMetrics(); });
  ServeLostLogLines(metrics_);
  http_ = std::make_unique<HttpEndpoint>(options_.member.http_bind, metrics_, [this] {
    const std::string problem = link_->Problem();
    return Readiness{.ready = problem.empty(), .reason = problem};
  });
  link_ = std::make_unique<LearnerLinkAgent>(
      LinkConfig(),
      LearnerLinkAgent::Hooks{
          .start_build = [this](const wire::Registered& registered) { StartBuild(registered); },
          .built = [this] { return Built(); },
          .fill = [this](wire::Heartbeat& heartbeat) { FillHeartbeat(heartbeat); },
          .stop_training = [this] { StopTraining(); }},
      board_, versions_, signals_.drain_flag());
}

Learner::~Learner() = default;

LearnerLinkAgent::Config Learner::LinkConfig() const {
  return {.name = options_.member.name,
          .http_endpoint = http_->address(),
          .shm_dir = options_.member.shm_dir,
          .drain_timeout_ns = options_.member.drain_timeout_s * kNanosPerSecond,
          .given = GivenOf(options_.member),
          .link = LinkConfigOf(options_.member)};
}

void Learner::Run() {
  http_->Start();
  AgentRunner runner(*link_, [this](std::exception_ptr error) { Fail(error); });
  runner.Start();
  while (!link_->Done() && runner.Running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  runner.RequestStop();
  runner.Join();
  EndBuild();
  StopTraining();
  http_->Stop();
  {
    MutexLock lock(mu_);
    if (error_) std::rethrow_exception(error_);
  }
  if (!engine_) return;
  // An actor keeps its mapping of the region over a restart of the learner, so it goes with the
  // run.
  if (link_->run_ends() && board_.AllEnded()) engine_->region.region().Unlink();
  const IngestCounters& ingest = engine_->ingest.counters();
  log::info("drained: {} rows ingested, {} lost, {} updates", ingest.rows.load(),
            ingest.rows_lost.load(), engine_->training.Progress().updates);
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
  EnsureShmDir(registered_.shm_dir);
  const int removed = RemoveStale(registered_.shm_dir, registered_.run_id);
  if (removed > 0) log::info("removed {} shared regions of dead runs", removed);
  auto engine = std::make_unique<Engine>(*this, registered_);
  if (abandoned_.load(std::memory_order_acquire)) return;
  engine_ = std::move(engine);
  engine_->metrics.OnBuilt(static_cast<double>(MonotonicClock::Get().NowNs() - start_ns) * 1e-9);
  engine_->Start();
  ready_engine_.store(engine_.get(), std::memory_order_release);
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
    Fail(std::current_exception());
  }
}

void Learner::FillHeartbeat(wire::Heartbeat& heartbeat) {
  const wire::LinkStats link = link_->link_stats();
  link_metrics_.Set({.messages_in = link.messages_in,
                     .messages_out = link.messages_out,
                     .bytes_in = link.bytes_in,
                     .bytes_out = link.bytes_out,
                     .malformed = link.malformed,
                     .reconnects = link.reconnects});
  const TrainerProgress progress = engine_->training.Progress();
  const IngestCounters& ingest = engine_->ingest.counters();
  const RunConfig& run = engine_->run;
  double replay_rows = 0;
  for (int s = 0; s < run.max_workers; ++s) {
    replay_rows += static_cast<double>(engine_->replay.Stats(s).valid_rows) * run.lanes;
  }
  heartbeat.policy_version = progress.version;
  heartbeat.rows_ingested = ingest.rows.load();
  const UpdateStats& last = progress.last;
  heartbeat.stats = {
      {"updates", static_cast<double>(progress.updates)},
      {"updates_per_s", engine_->update_rate.PerSecond(progress.updates)},
      {"batches", static_cast<double>(progress.batches)},
      {"steps_trained", static_cast<double>(progress.steps_trained)},
      {"skipped_updates", static_cast<double>(progress.skipped)},
      {"loss", last.total_loss},
      {"policy_loss", last.policy_loss},
      {"value_loss", last.value_loss},
      {"entropy", last.entropy},
      {"grad_norm", last.grad_norm},
      {"mean_rho", last.mean_rho},
      {"clipped_fraction", last.clipped_fraction},
      {"explained_variance", last.explained_variance},
      {"lag_p50", last.lag_p50},
      {"lag_p99", last.lag_p99},
      {"learning_rate", last.learning_rate},
      {"policy_version", static_cast<double>(progress.version)},
      {"replay_rows", replay_rows},
      {"replay_capacity_rows",
       static_cast<double>(run.replay_rows) * run.lanes * static_cast<double>(ingest.rings.load())},
      {"rings", static_cast<double>(ingest.rings.load())},
      {"rows_ingested", static_cast<double>(ingest.rows.load())},
      {"rows_lost", static_cast<double>(ingest.rows_lost.load())},
      {"streams", static_cast<double>(engine_->inference.counters().streams.load())},
      {"rows_answered", static_cast<double>(engine_->inference.counters().rows.load())},
      {"limiter_wait_s", static_cast<double>(ingest.limited_ns.load()) * 1e-9},
      {"checkpoints", static_cast<double>(engine_->checkpoints.written())},
      {"checkpoint_age_s", engine_->checkpoints.AgeSeconds()},
  };
}

void Learner::RefreshMetrics() {
  Engine* engine = ready_engine_.load(std::memory_order_acquire);
  if (engine == nullptr) return;
  MutexLock lock(refresh_mu_);
  engine->metrics.Refresh(engine->replay, engine->rows.memory_bytes(),
                          static_cast<std::uint64_t>(engine->run.replay_rows),
                          engine->training.Progress(), engine->ingest, engine->inference,
                          engine->checkpoints,
                          static_cast<double>(engine->run.window * engine->run.batch_windows));
}

void Learner::StopTraining() {
  if (engine_) engine_->Stop();
}

void Learner::Fail(std::exception_ptr error) {
  {
    MutexLock lock(mu_);
    if (!error_) error_ = error;
  }
  signals_.RequestDrain();
}

}  // namespace tetrion::learner
