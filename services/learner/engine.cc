#include "services/learner/engine.h"

#include <algorithm>
#include <utility>

#include "lib/core/cpu_count.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/random.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_policy.h"
#include "lib/setup/run_setup.h"
#include "lib/setup/trainer_threads.h"
#include "lib/shm/region_header.h"
#include "lib/weights/weights_reader.h"
#include "services/common/heartbeat_stats.h"
#include "services/common/service_host.h"
#include "services/learner/replay_plan.h"
#include "services/learner/resident_parts.h"
#include "services/learner/trainer_factory.h"

namespace tetrion::learner {
namespace {

GateConfig GateConfigOf(const RunConfig& run, const ReplayShape& shape) {
  return {
      .shards = shape.shards, .capacity_rows = run.replay_rows, .commit_stride = run.commit_stride};
}

// Told to the actor of a ring.
constexpr const char* kPlaysItself =
    "the learner plays its lanes itself and takes no rows from actors; to let actors play, "
    "start it without --resident-lanes";

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
  return {.make_policy =
              [run] {
                return MakeRunPolicy(run,
                                     {.seed = run.seed,
                                      .max_lanes = InferenceLanes(run),
                                      .lane_ids = run.max_workers * run.lanes},
                                     EnvSpecOf(run));
              },
          .weights = std::make_unique<WeightsReader>(
              WeightsReader::Config{
                  .shm_dir = shm_dir, .run_id = run_id, .spec_hash = RunConfigHash(run)},
              [](Bell) {}),
          .bell = region.inference_bell(),
          .ingest = region.bell(),
          .on_batch = [&metrics](double seconds) { metrics.OnInference(seconds); }};
}

// Of the lanes that the learner plays itself; none where it plays none.
ResidentAgent::Parts ResidentPartsOf(const RunConfig& run, const ReplayShape& shape,
                                     const wire::Registered& registered, ReplayMemory& memory) {
  if (shape.groups == 0) return {};
  return MakeResidentParts(run, shape, memory.on_device()->device,
                           WeightsReader::Config{.shm_dir = registered.shm_dir,
                                                 .run_id = registered.run_id,
                                                 .spec_hash = RunConfigHash(run)});
}

}  // namespace

Engine::Engine(const Surroundings& around, const wire::Registered& registered,
               std::unique_ptr<wire::RowsServer> rows)
    : around_(around),
      run_name_(registered.run),
      run_(RunConfigFromText(registered.run_config)),
      checkpoint_folder_(RunFolder::At(registered.run_folder).checkpoints()),
      shape_(ReplayShapeOf(run_, around.options.replay.resident_lanes)),
      memory_(around.options.replay.device, RowSpecOf(run_, shape_), shape_.shards,
              run_.replay_rows, LatentsOf(run_), DrawsAgain(run_)),
      trainer_(MakeTrainer(run_, memory_.rows().layout().spec,
                           TrainerThreads(run_, around.options.threads, UsableCpus()),
                           UpdatePlaceOf(around.options.replay, run_, memory_))),
      resident_parts_(ResidentPartsOf(run_, shape_, registered, memory_)),
      region_(LearnerRegion::CreateOrAdopt(registered.shm_dir, registered.run_id,
                                           trainer_->PolicyBlobBytes(), RunConfigHash(run_))),
      checkpoints_(checkpoint_folder_, around.options.keep_checkpoints,
                   [this](double seconds) { metrics_.OnCheckpoint(seconds); }),
      resumed_(LoadFirstState(around.options, checkpoints_.TakeOver(), run_,
                              RunFolder::At(registered.run_folder), registered.version_first,
                              *trainer_)),
      replay_(GateConfigOf(run_, shape_), MakeSelector(run_, shape_), LimiterOf(run_)),
      source_(replay_, memory_.rows(), run_.window, run_.batch_windows),
      metrics_(around.metrics, shape_.shards, trainer_->Figures()),
      rings_({.run_id = registered.run_id,
              .shm_dir = registered.shm_dir,
              .shards = shape_.shards,
              .layout = memory_.rows().layout(),
              .refused = shape_.groups > 0 ? kPlaysItself : "",
              .remote = rows != nullptr ? &remote_ : nullptr,
              .remote_silence_ns = around.options.rows.silence_s * kNanosPerSecond},
             around.board, streams_),
      ingest_({.action_count = EnvSpecOf(run_).action.count,
               .check_records = EnvSpecOf(run_).obs.check},
              replay_, memory_.rows(), region_.bell(), rings_),
      inference_({.run_id = registered.run_id,
                  .action_count = EnvSpecOf(run_).action.count,
                  .check_records = EnvSpecOf(run_).obs.check,
                  .max_lanes = InferenceLanes(run_)},
                 RowLayout(RowSpecOf(run_)),
                 InferencePartsOf(run_, registered.shm_dir, registered.run_id, region_, metrics_),
                 streams_),
      training_({.batch_steps = run_.window * BatchLanesOf(run_, shape_),
                 .batch_windows = run_.batch_windows,
                 .entropy = EntropyOf(run_),
                 .checkpoint_every_ns =
                     static_cast<std::int64_t>(around.options.checkpoint_every_s * 1e9),
                 .region = region_.region().path()},
                {.on_update = [this](const UpdateStats& stats) { metrics_.OnUpdate(stats); },
                 .on_wait = [this](double seconds) { metrics_.OnWait(seconds); },
                 .on_publish = [this](double seconds) { metrics_.OnPublish(seconds); },
                 .describe = [this] { return Describe(); }},
                *trainer_, source_, region_.MakeWriter(), around.versions, checkpoints_,
                resumed_.updates),
      checkpoint_runner_(checkpoints_, around.on_error),
      ingest_runner_(ingest_, around.on_error),
      inference_runner_(inference_, around.on_error),
      trainer_runner_(training_, around.on_error) {
  checkpoints_.GoOnFrom(resumed_.updates);
  log::info("replay of {} shards x {} rows x {} lanes: {} bytes", shape_.shards, run_.replay_rows,
            shape_.lanes, memory_.rows().memory_bytes());
  if (shape_.groups > 0) MakeResident();
  if (rows != nullptr) MakeRows(registered, std::move(rows));
}

// The rows of actors on other hosts.
void Engine::MakeRows(const wire::Registered& registered,
                      std::unique_ptr<wire::RowsServer> socket) {
  log::info("remote actors send their rows to {}, told as {}{}", socket->endpoint(),
            AdvertisedRows(around_.options.rows, socket->endpoint()),
            socket->public_key().empty() ? "" : ", encrypted");
  socket->JoinRun(registered.run_id);
  const RowLayout layout(RowSpecOf(run_));
  rows_ = std::make_unique<RowsAgent>(
      RemoteStreams::Config{.run_id = registered.run_id,
                            .row_bytes = layout.row_bytes,
                            .spec_hash = layout.Hash(),
                            .ring_rows = static_cast<std::uint64_t>(run_.ring_rows),
                            .first_stream = RandomBits() >> 1,
                            .silence_ns = around_.options.rows.silence_s * kNanosPerSecond},
      RowsAgent::Parts{
          .socket = std::move(socket), .weights = region_.MakeReader(), .ingest = region_.bell()},
      remote_);
  rows_metrics_ = std::make_unique<RowsMetrics>(around_.metrics);
  rows_runner_ = std::make_unique<AgentRunner>(*rows_, around_.on_error);
}

// The lanes that the learner plays itself, and their session.
void Engine::MakeResident() {
  ReplayMemory::OnDevice& device = *memory_.on_device();
  MemberConfig member = MemberConfigOf(around_.options.member, /*http_address=*/"");
  const std::string suffix = "-lanes";
  member.name = member.name.substr(0, wire::kMaxNameBytes - suffix.size()) + suffix;
  member.link.waits_for_slots = true;
  // Their reports and goodbye come before the learner's own time is over.
  constexpr std::int64_t kLastWordsNs = 10 * kNanosPerSecond;
  member.drain_timeout_ns = std::max(kNanosPerSecond, member.drain_timeout_ns - kLastWordsNs);
  resident_ = std::make_unique<ResidentLanes>(
      ResidentLanes::Config{
          .member = std::move(member),
          .groups = shape_.groups,
          .agent = {.group_lanes = run_.lanes, .commit_stride = run_.commit_stride}},
      std::move(resident_parts_), replay_, *device.rows, device.writer, around_.metrics,
      around_.drain_lanes, around_.on_error);
  log::info("{} resident lanes of {}, {} workers of the account", shape_.lanes, run_.env,
            shape_.groups);
}

CheckpointInfo Engine::Describe() const {
  return {.config_hash = RunConfigHash(run_),
          .run = run_name_,
          .env = run_.env,
          .network = run_.network,
          .env_steps = resumed_.env_steps + static_cast<std::int64_t>(Rows()) * shape_.lanes,
          .mean_return = around_.mean_return()};
}

void Engine::Start() {
  for (const AgentRunner* runner :
       {&checkpoint_runner_, &trainer_runner_, &ingest_runner_, &inference_runner_}) {
    ShowCycles(around_.metrics, *runner);
  }
  checkpoint_runner_.Start();
  trainer_runner_.Start();
  ingest_runner_.Start();
  inference_runner_.Start();
  if (resident_) resident_->Start(around_.metrics);
  if (!rows_runner_) return;
  ShowCycles(around_.metrics, *rows_runner_);
  rows_runner_->Start();
}

PlayedRows Engine::Played() const {
  if (!resident_) return {};
  const ResidentCounters& counters = resident_->counters();
  return {.rows = counters.rows.load(),
          .limiter_wait_s = static_cast<double>(counters.wait_replay_ns.load()) * 1e-9};
}

std::uint64_t Engine::Rows() const {
  return ingest_.counters().rows.load() + Played().rows;
}

void Engine::LetIngestRun() {
  if (DrawsAgain(run_)) replay_.LetWriterRun();
}

bool Engine::BatchWaits() const {
  return !DrawsAgain(run_) && replay_.MaySample(run_.batch_windows);
}

// Of one window as it is drawn, in rows of all lanes.
double Engine::WindowRows() const {
  const double batch_rows =
      static_cast<double>(run_.window * BatchLanesOf(run_, shape_)) / shape_.lanes;
  return batch_rows / run_.batch_windows;
}

void Engine::Stop() {
  if (std::exchange(stopped_, true)) return;
  if (resident_) resident_->Stop();
  if (rows_runner_) rows_runner_->RequestStop();
  inference_runner_.RequestStop();
  ingest_runner_.RequestStop();
  trainer_runner_.RequestStop();
  source_.End();
  checkpoint_runner_.RequestStop();
  if (rows_runner_) rows_runner_->Join();
  inference_runner_.Join();
  ingest_runner_.Join();
  trainer_runner_.Join();
  checkpoint_runner_.Join();
  training_.SaveFinal();
}

void Engine::FillHeartbeat(wire::Heartbeat& heartbeat) {
  const TrainerProgress progress = training_.Progress();
  FigureValues<kLearnerFigures> values =
      FiguresOf(progress, ingest_, inference_, checkpoints_, Played());
  if (rows_) values["remote_streams"] = static_cast<double>(rows_->counters().streams.load());
  values["older_checkpoint"] = resumed_.older ? 1 : 0;
  values["updates_per_s"] = update_rate_.PerSecond(progress.updates);
  int filled = 0;  // shards; a ring that has ended leaves its rows
  for (int s = 0; s < shape_.shards; ++s) {
    const std::uint64_t rows = replay_.Stats(s).valid_rows;
    values["replay_rows"] += static_cast<double>(rows) * shape_.lanes;
    filled += rows > 0 ? 1 : 0;
  }
  values["replay_capacity_rows"] = static_cast<double>(run_.replay_rows) * shape_.lanes *
                                   std::max<double>(resident_ ? 1 : values["rings"], filled);
  heartbeat.policy_version = progress.version;
  heartbeat.region_owner = RegionOwnerId(region_.region().header());
  heartbeat.rows_ingested = Rows();
  AddStats(kLearnerFigures, values.all(), heartbeat.stats);
  AddStats(trainer_->Figures(), progress.last.figures, heartbeat.stats);
}

void Engine::RefreshMetrics() {
  MutexLock lock(refresh_mu_);
  if (resident_) resident_->RefreshMetrics();
  if (rows_) rows_metrics_->Refresh(*rows_);
  metrics_.Refresh(replay_, memory_.rows().memory_bytes(),
                   static_cast<std::uint64_t>(run_.replay_rows), training_.Progress(), ingest_,
                   inference_, checkpoints_, WindowRows(), Played());
}

void Engine::LogDrained() const {
  if (resident_) resident_->LogDrained();
  const IngestCounters& ingest = ingest_.counters();
  log::info("drained: {} rows ingested, {} lost, {} updates", Rows(), ingest.rows_lost.load(),
            training_.Progress().updates);
}

}  // namespace tetrion::learner
