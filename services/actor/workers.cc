#include "services/actor/workers.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/collect/ring_sink.h"
#include "lib/core/log.h"
#include "lib/core/philox.h"
#include "lib/inference/env_end.h"
#include "lib/inference/stream_layout.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/shm_dir.h"
#include "lib/weights/weights_reader.h"
#include "lib/wire/remote_path.h"
#include "services/actor/policy_factory.h"
#include "services/common/service_host.h"

namespace tetrion::actor {
namespace {

// In the order of WaitReason.
constexpr const char* kReasonNames[kWaitReasons] = {"token", "ring", "weights", "answer"};
constexpr ActorFigure kWaitFigures[kWaitReasons] = {"wait_token_s", "wait_ring_s", "wait_weights_s",
                                                    "wait_answer_s"};

}  // namespace

// What every worker is built from.
struct Workers::Setting {
  RunConfig run;
  EnvSpec env;
  StreamLayout stream;  // its `obs` is also the plain ring's
  std::uint64_t run_id;
  std::uint64_t process;
  std::string shm_dir;
  std::int32_t pid;
  std::uint32_t random;  // tells this process's regions from those of an earlier one with its pid
};

// The ends of one lane loop, which lives in the pool. Also the loop's listener.
struct Workers::Worker final : LaneListener {
  // `thread`: the pool's number of the thread that runs the loop, and others of its groups.
  Worker(int worker_number, int thread, bool streamed, Outbox& box, MetricsRegistry& metrics)
      : number(worker_number),
        outbox(box),
        decide(metrics.Histogram(streamed ? MetricRef("tetrion_actor_answer_seconds")
                                          : MetricRef("tetrion_actor_inference_seconds"),
                                 {}, thread)),
        env_step(metrics.Histogram("tetrion_actor_env_step_seconds", {}, thread)),
        lag(metrics.Histogram("tetrion_actor_policy_lag_versions", {}, thread)),
        steps(metrics.Counter("tetrion_actor_env_steps_total", {std::to_string(number)})),
        episodes(metrics.Counter("tetrion_actor_episodes_total", {std::to_string(number)})),
        rows(metrics.Counter("tetrion_actor_rows_committed_total", {std::to_string(number)})),
        weights_refused(
            metrics.Counter("tetrion_actor_weights_refused_total", {std::to_string(number)})) {
    for (int r = 0; r < kWaitReasons; ++r) {
      waits[r] = &metrics.Counter("tetrion_actor_wait_seconds_total",
                                  {std::to_string(number), kReasonNames[r]});
    }
  }

  void OnEpisodes(std::span<const EpisodeResult> results) override {
    outbox.PutEpisodes(number, results);
  }
  void OnAbandoned(std::span<const Token> tokens, const char* reason) override {
    outbox.PutAbandoned(tokens, reason);
  }
  void OnRow(std::int64_t env_ns, std::int64_t decide_ns) override {
    env_step.Observe(static_cast<double>(env_ns) * 1e-9);
    decide.Observe(static_cast<double>(decide_ns) * 1e-9);
  }
  void OnNewWeights(std::uint32_t behind_versions) override { lag.Observe(behind_versions); }

  double WeightsRefused() const {
    return weights == nullptr ? 0 : static_cast<double>(weights->refused());
  }

  const int number;
  Outbox& outbox;
  HotHistogram &decide, &env_step, &lag;
  HotCounter &steps, &episodes, &rows, &weights_refused;
  HotCounter* waits[kWaitReasons];
  CreditQueue credits;
  std::string ring_path;
  std::unique_ptr<RingSink> sink;
  std::unique_ptr<WeightsSource> weights;  // unless streamed
  std::unique_ptr<EnvEnd> env_end;         // streamed
};

Workers::Workers(const ActorOptions& options, Outbox& outbox, MetricsRegistry& metrics,
                 std::function<void(std::exception_ptr)> on_error)
    : options_(options),
      outbox_(outbox),
      metrics_(metrics),
      version_(metrics.Gauge("tetrion_actor_policy_version")),
      on_error_(std::move(on_error)),
      keys_(OwnKeysOf(options.member.curve)),
      pool_(on_error_) {}

Workers::~Workers() {
  if (built_.load(std::memory_order_relaxed)) return;
  // No learner hears of these rings. What a locked folder keeps, the learner finds.
  for (const auto& worker : workers_) {
    if (worker->sink != nullptr) (void)worker->sink->producer().region()->TryUnlink();
  }
}

void Workers::Build(const wire::Registered& registered, std::uint64_t process,
                    std::vector<wire::RingInfo>& rings, std::vector<CreditQueue*>& queues) {
  const RunConfig run = RunConfigFromText(registered.run_config);
  const std::string dir =
      options_.member.shm_dir.empty() ? registered.shm_dir : options_.member.shm_dir;
  if (!Remote()) EnsureShmDir(dir);
  const std::int32_t pid = getpid();
  const Setting setting = {
      .run = run,
      .env = EnvSpecOf(run),
      .stream = StreamLayout(RowLayout(RowSpecOf(run)), static_cast<std::uint64_t>(run.ring_rows)),
      .run_id = registered.run_id,
      .process = process,
      .shm_dir = dir,
      .pid = pid,
      .random = PhiloxDraw(static_cast<std::uint64_t>(MonotonicClock::Get().NowNs()),
                           static_cast<std::uint64_t>(pid), 0, PhiloxPurpose::kSampler)
                    .word[0]};
  if (Remote()) MakeCourier(setting);
  for (int w = 0; w < options_.workers; ++w) {
    std::vector<std::unique_ptr<LaneLoop>> loops;
    for (int g = 0; g < Groups(); ++g) {
      workers_.push_back(std::make_unique<Worker>(static_cast<int>(workers_.size()), w, Streamed(),
                                                  outbox_, metrics_));
      Worker& worker = *workers_.back();
      loops.push_back(Streamed() ? MakeStreamed(worker, setting) : MakeLoop(worker, setting));
      rings.push_back(
          {.path = worker.ring_path, .worker = static_cast<std::uint32_t>(worker.number)});
      queues.push_back(&worker.credits);
    }
    pool_.Add("worker-" + std::to_string(w), std::move(loops));
  }
  built_.store(true, std::memory_order_release);
  for (int t = 0; t < pool_.threads(); ++t) ShowCycles(metrics_, pool_.runner(t));
  pool_.Start();
  if (courier_ != nullptr) {
    courier_->SetLearner(registered.rows_endpoint, registered.rows_key);
    courier_runner_ = std::make_unique<AgentRunner>(*courier_, on_error_);
    ShowCycles(metrics_, *courier_runner_);
    courier_runner_->Start();
  }
  log::info("{} workers x {} lanes of {}{}", options_.workers, run.lanes * Groups(), run.env,
            Streamed() ? ", decided by the learner"
            : Remote() ? ", rows over the network"
                       : "");
}

void Workers::MakeCourier(const Setting& setting) {
  const auto policy = MakeWorkerPolicy(options_.policy, setting.run, setting.env);
  courier_ = std::make_unique<Courier>(
      Courier::Config{.run_id = setting.run_id,
                      .process = setting.process,
                      .keys = keys_,
                      .delivery = {.weights_bytes = policy->WeightsBytes(),
                                   .compress = options_.compress == "zstd"}},
      inbox_, metrics_);
}

std::unique_ptr<LaneLoop> Workers::MakeLoop(Worker& worker, const Setting& setting) {
  if (Remote()) {
    MakeRemote(worker, setting);
  } else {
    MakeLocal(worker, setting);
  }
  return std::make_unique<LaneLoop>(
      LaneLoopConfig{}, MakeVecEnv(EnvConfigOf(setting.run)),
      std::make_unique<LocalDecider>(MakeWorkerPolicy(options_.policy, setting.run, setting.env),
                                     worker.weights.get(), setting.run.lanes),
      worker.credits, *worker.sink, worker);
}

// A ring that the learner reads, and its weights, by the folder that both share.
void Workers::MakeLocal(Worker& worker, const Setting& setting) const {
  const RingSpec& ring = setting.stream.obs;
  Region region =
      Region::Create(setting.shm_dir,
                     RingName(setting.run_id, setting.pid, setting.random,
                              static_cast<std::uint32_t>(worker.number)),
                     RegionKind::kRing, RingRegionBytes(ring), setting.run_id, ring.spec_hash);
  worker.ring_path = region.path();
  worker.sink = std::make_unique<RingSink>(
      setting.stream.row, RingProducer::Create(std::move(region), ring), setting.run.commit_stride);
  worker.weights = std::make_unique<WeightsReader>(
      WeightsReader::Config{.shm_dir = setting.shm_dir,
                            .run_id = setting.run_id,
                            .spec_hash = RunConfigHash(setting.run)},
      [sink = worker.sink.get()](Bell bell) { sink->SetBell(bell); });
}

// A ring that the courier reads, and the weights that it fetches.
void Workers::MakeRemote(Worker& worker, const Setting& setting) {
  const RingSpec& ring = setting.stream.obs;
  worker.ring_path =
      wire::RemoteRingPath(setting.process, static_cast<std::uint32_t>(worker.number));
  Region region = Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(ring), setting.run_id,
                                          ring.spec_hash, worker.ring_path);
  worker.sink =
      std::make_unique<RingSink>(setting.stream.row, RingProducer::Create(std::move(region), ring),
                                 setting.run.commit_stride, RowArrival::kWhenReleased);
  worker.weights = std::make_unique<RemoteWeights>(inbox_);
  courier_->Add(RowStream({.path = worker.ring_path, .spec_hash = ring.spec_hash},
                          RingConsumer::Beside(worker.sink->producer()), MonotonicClock::Get()));
}

std::unique_ptr<LaneLoop> Workers::MakeStreamed(Worker& worker, const Setting& setting) const {
  EnvEnd::Ends ends = EnvEnd::Create(setting.shm_dir,
                                     StreamName(setting.run_id, setting.pid, setting.random,
                                                static_cast<std::uint32_t>(worker.number)),
                                     setting.run_id, setting.stream, setting.env.action.count);
  worker.ring_path = ends.obs.region()->path();
  worker.sink = std::make_unique<RingSink>(setting.stream.row, std::move(ends.obs),
                                           /*commit_stride=*/1);
  worker.env_end = std::move(ends.env_end);
  RingSink* const sink = worker.sink.get();
  worker.env_end->Place({.published = [sink] { return sink->PublishedRows(); },
                         .set_obs_bell = [sink](Bell bell) { sink->SetBell(bell); },
                         .learner = {.shm_dir = setting.shm_dir,
                                     .run_id = setting.run_id,
                                     .spec_hash = RunConfigHash(setting.run)}});
  return std::make_unique<LaneLoop>(LaneLoopConfig{}, MakeVecEnv(EnvConfigOf(setting.run)),
                                    std::make_unique<StreamedDecider>(*worker.env_end),
                                    worker.credits, *worker.sink, worker);
}

bool Workers::Drained() {
  if (!pool_.Drained()) return false;
  Close();
  return courier_ == nullptr || courier_->Done();
}

void Workers::Close() {
  pool_.Stop();
  for (const auto& worker : workers_) worker->sink->Close();
}

std::uint64_t Workers::RowsLeft() const {
  std::uint64_t rows = 0;
  for (const auto& worker : workers_) {
    const RingProducer& ring = worker->sink->producer();
    rows += ring.published() - ring.Released();
  }
  return rows;
}

void Workers::LearnerIsAt(const std::string& rows_endpoint, const std::string& rows_key) {
  if (courier_ != nullptr) courier_->SetLearner(rows_endpoint, rows_key);
}

void Workers::Stop() {
  pool_.Stop();
  if (courier_runner_ != nullptr) {
    courier_runner_->RequestStop();
    courier_runner_->Join();
  }
}

void Workers::LogClosed() const {
  for (const auto& worker : workers_) {
    log::info("closed {} at row {}", worker->ring_path, worker->sink->producer().published());
  }
}

std::uint64_t Workers::EnvSteps() const {
  std::uint64_t steps = 0;
  if (!built_.load(std::memory_order_acquire)) return 0;
  for (int w = 0; w < pool_.size(); ++w) steps += pool_.counters(w).env_steps.load();
  return steps;
}

std::string Workers::Problem() const {
  if (!built_.load(std::memory_order_acquire) || courier_ == nullptr) return "";
  return courier_->Problem();
}

FigureValues<kActorFigures> Workers::Figures() const {
  FigureValues<kActorFigures> values;
  values["workers"] = static_cast<double>(pool_.size());
  for (int w = 0; w < pool_.size(); ++w) {
    const LaneCounters& counters = pool_.counters(w);
    for (int r = 0; r < kWaitReasons; ++r) {
      values[kWaitFigures[r]] += static_cast<double>(counters.wait_ns[r].load()) * 1e-9;
    }
    values["rows"] += static_cast<double>(counters.rows.load());
    values["episodes"] += static_cast<double>(counters.episodes.load());
    values["weights_refused"] += workers_[static_cast<std::size_t>(w)]->WeightsRefused();
    values["not_finite_rows"] += static_cast<double>(counters.not_finite.load());
  }
  return values;
}

void Workers::RefreshMetrics() {
  if (!built_.load(std::memory_order_acquire)) return;
  MutexLock lock(refresh_mu_);
  std::uint32_t version = 0;
  for (const auto& worker : workers_) {
    const LaneCounters& counters = pool_.counters(worker->number);
    version = std::max(version, counters.policy_version.load());
    worker->steps.RaiseTo(static_cast<double>(counters.env_steps.load()));
    worker->episodes.RaiseTo(static_cast<double>(counters.episodes.load()));
    worker->weights_refused.RaiseTo(worker->WeightsRefused());
    worker->rows.RaiseTo(static_cast<double>(counters.rows.load()));
    for (int r = 0; r < kWaitReasons; ++r) {
      worker->waits[r]->RaiseTo(static_cast<double>(counters.wait_ns[r].load()) * 1e-9);
    }
  }
  version_.Set(version);
}

}  // namespace tetrion::actor
