#include "lib/episodes/batch_collector.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr int kStagingRowsPerLane = 2;
// Without workers Wait returns between rows only: a row is made of at most so many lanes, which may
// all end in it and be padded, unless a policy outside is to see them all. Some tens of
// milliseconds.
constexpr int kMaxOwnLanes = 256;
constexpr std::size_t kMaxOwnPaddingBytes = std::size_t{64} << 20;
constexpr std::int64_t kFirstJoinPauseNs = 20'000, kMaxJoinPauseNs = 2 * kNanosPerMilli;
// A requester sees a Close from elsewhere this late.
constexpr std::int64_t kCloseCheckNs = 20 * kNanosPerMilli;

}  // namespace

// A worker's loop cannot fail: EpisodePolicy catches everything that may be thrown in it.
BatchCollector::BatchCollector(const BatchCollectorConfig& config, const WorkerPartsFn& parts)
    : config_(config),
      spec_(MakeEnvSpec(config.env)),
      pool_([](std::exception_ptr error) { std::rethrow_exception(error); }),
      batches_(std::make_shared<BatchPool>()) {
  TETRION_CHECK(config.workers >= 0 && config.steps > 0, "workers or steps out of range");
  if (config_.workers == 0) own_loop_ = MakeLoop(parts(0));
  for (int w = 0; w < config_.workers; ++w) {
    WorkerParts made = parts(w);
    std::function<void()> on_drained = std::move(made.on_drained);
    pool_.Add("collect-" + std::to_string(w), MakeLoop(std::move(made)), std::move(on_drained));
  }
  pool_.Start();
}

BatchCollector::~BatchCollector() {
  TETRION_CHECK(!InsideCallback(), "a policy destroys the collector that calls it");
  Close();
}

std::unique_ptr<LaneLoop> BatchCollector::MakeLoop(WorkerParts made) {
  EnvConfig env = config_.env;
  if (config_.workers == 0 && made.outside == nullptr) {
    const std::size_t episode_bytes =
        made.writer->bytes() * static_cast<std::size_t>(config_.steps);
    const auto fit = static_cast<int>(
        std::clamp<std::size_t>(kMaxOwnPaddingBytes / episode_bytes, 1, kMaxOwnLanes));
    env.lanes = std::min(env.lanes, fit);
  }
  const RowSpec rows = {.record_bytes = spec_.obs.record_bytes,
                        .lanes = static_cast<std::uint32_t>(env.lanes),
                        .has_mask = spec_.action.has_mask};
  const int staging = config_.by_completion ? kStagingRowsPerLane * env.lanes : 0;
  sinks_.push_back(std::make_unique<EpisodeSink>(rows, config_.steps, staging, jobs_,
                                                 std::move(made.writer), mask_actions()));
  EpisodeSink& sink = *sinks_.back();
  return std::make_unique<LaneLoop>(
      LaneLoopConfig{}, MakeVecEnv(env),
      std::make_unique<LocalDecider>(
          std::make_unique<EpisodePolicy>(sink, jobs_, std::move(made.policy),
                                          std::move(made.outside)),
          /*weights=*/nullptr, env.lanes),
      sink, sink, sink);
}

StartResult BatchCollector::Start(BatchOrder order) {
  TETRION_CHECK(order.episodes > 0, "a request of nothing");
  if (closed()) return StartResult::kClosed;
  if (InsideCallback() || busy_.exchange(true, std::memory_order_acquire)) {
    return closed() ? StartResult::kClosed : StartResult::kBusy;
  }
  try {
    request_ = std::make_shared<BatchRequest>();
    request_->owner = NextBatch(order.episodes);
  } catch (...) {
    EndRequest();
    throw;
  }
  request_->batch = request_->owner.get();
  request_->episodes = order.episodes;
  request_->steps = config_.steps;
  request_->by_completion = config_.by_completion;
  request_->actions = std::move(order.actions);
  request_->inside_of = EpisodePolicy::Enclosing();
  const int workers = std::max(config_.workers, 1);
  request_->max_lanes_per_worker = (order.episodes + workers - 1) / workers;
  if (order.first_token >= 0) {
    request_->first_token = static_cast<std::uint64_t>(order.first_token);
  } else {
    request_->first_token = next_token_.fetch_add(static_cast<std::uint64_t>(order.episodes));
  }
  jobs_.Start(request_);
  return StartResult::kStarted;
}

std::shared_ptr<EpisodeBatch> BatchCollector::NextBatch(int episodes) {
  if (!config_.double_buffer) {
    return batches_->Take(episodes, config_.steps, obs_bytes(), mask_actions());
  }
  Lent& next = double_[next_double_];
  const bool fits = next.batch != nullptr && next.batch->capacity() >= episodes;
  next.oversized = fits && IsOversized(*next.batch, episodes) ? next.oversized + 1 : 0;
  if (!fits || next.oversized > kMaxPassedOver) {
    next = {std::make_shared<EpisodeBatch>(episodes, config_.steps, obs_bytes(), mask_actions())};
  }
  return next.batch;
}

bool BatchCollector::Wait(std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  if (own_loop_ != nullptr) {
    PlayHere(timeout_ns);
    return Done();
  }
  while (!Done()) {
    const MutexLock lock(request_->mu);
    const bool news = !request_->staged.empty() || request_->finished == request_->episodes ||
                      request_->cancelled.load(std::memory_order_relaxed) || closed();
    if (news) continue;
    const std::int64_t left_ns = deadline.LeftNs();
    if (left_ns == 0) return false;
    request_->changed.WaitFor(request_->mu, std::min(left_ns, kCloseCheckNs));
  }
  return true;
}

void BatchCollector::PlayHere(std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  while (!Done() && !deadline.Passed()) {
    if (own_loop_->RunOnce() == RunResult::kDrained) return;
  }
}

// Copies what has finished; whether nothing more will come.
bool BatchCollector::Done() {
  CopyStaged();
  const MutexLock lock(request_->mu);
  return request_->finished == request_->episodes ||
         request_->cancelled.load(std::memory_order_relaxed) || closed();
}

void BatchCollector::CopyStaged() {
  std::vector<BatchRequest::Staged> staged;
  int row = 0;
  {
    const MutexLock lock(request_->mu);
    staged.swap(request_->staged);
    row = request_->finished;
    request_->finished += static_cast<int>(staged.size());
  }
  for (const BatchRequest::Staged& from : staged) {
    request_->batch->CopyRow(row++, *from.batch, from.row);
    from.keeper->Release(from.row);
  }
}

std::shared_ptr<EpisodeBatch> BatchCollector::Finish() {
  std::exception_ptr error;
  bool complete = false;
  {
    const MutexLock lock(request_->mu);
    // Swapped, not copied: the requester is the one who frees it, not a straggler of the request.
    std::swap(error, request_->error);
    complete = request_->finished == request_->episodes && error == nullptr;
  }
  if (!complete) {
    Cancel();
    if (error != nullptr) std::rethrow_exception(error);
    throw Error(ExitCode::kTryAgain, "the collector was closed during the request");
  }
  // No worker has a lane in the batch any more, even where one still holds the request.
  std::shared_ptr<EpisodeBatch> batch = std::move(request_->owner);
  std::uint64_t steps = 0;
  for (int row = 0; row < request_->episodes; ++row) {
    steps += static_cast<std::uint64_t>(batch->lengths[static_cast<std::size_t>(row)]);
  }
  requests_.fetch_add(1, std::memory_order_relaxed);
  episodes_.fetch_add(static_cast<std::uint64_t>(request_->episodes), std::memory_order_relaxed);
  steps_.fetch_add(steps, std::memory_order_relaxed);
  result_columns_ = request_->result_columns.load();
  next_double_ = 1 - next_double_;
  EndRequest();
  return batch;
}

void BatchCollector::Cancel() {
  request_->Cancel();
  jobs_.Drop(*request_);
  // A straggler may still write into it.
  for (Lent& lent : double_) {
    if (lent.batch.get() == request_->batch) lent = {};
  }
  EndRequest();
}

void BatchCollector::EndRequest() {
  request_.reset();
  LetGo();
  if (closed()) FreeIdleMemory();
}

// Exchanges: after it this thread sees what a closer that found the collector busy did before.
void BatchCollector::LetGo() {
  static_cast<void>(busy_.exchange(false, std::memory_order_acq_rel));
}

// Both the requester and the closer call it; the one that ends last frees the memory. A closer that
// finds the collector busy leaves everything to the other, who looks again whether it has joined.
void BatchCollector::FreeIdleMemory() {
  bool joined = false;
  do {
    if (busy_.exchange(true, std::memory_order_acq_rel)) return;
    for (Lent& lent : double_) lent = {};
    batches_->Close();
    joined = joined_.load(std::memory_order_acquire);
    if (joined) {
      for (const auto& sink : sinks_) sink->FreeStaging();
    }
    LetGo();
  } while (!joined && joined_.load(std::memory_order_acquire));
}

void BatchCollector::Close() {
  while (!CloseFor(kNanosPerSecond)) continue;
}

bool BatchCollector::CloseFor(std::int64_t timeout_ns) {
  jobs_.Stop();
  if (InsideCallback()) return true;
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  std::int64_t pause_ns = kFirstJoinPauseNs;
  while (!pool_.Drained()) {
    const std::int64_t left_ns = deadline.LeftNs();
    if (left_ns == 0) return false;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, pause_ns)));
    pause_ns = std::min(2 * pause_ns, kMaxJoinPauseNs);
  }
  {
    const MutexLock lock(join_mu_);
    pool_.Stop();
  }
  joined_.store(true, std::memory_order_release);
  FreeIdleMemory();
  return true;
}

CollectorStats BatchCollector::stats() const {
  CollectorStats stats = {.requests = requests_.load(std::memory_order_relaxed),
                          .episodes = episodes_.load(std::memory_order_relaxed),
                          .steps = steps_.load(std::memory_order_relaxed),
                          .next_token = next_token_.load(std::memory_order_relaxed)};
  const auto add = [&](const LaneCounters& from) {
    stats.env_steps += from.env_steps.load(std::memory_order_relaxed);
    stats.rows += from.rows.load(std::memory_order_relaxed);
    stats.job_wait_ns +=
        from.wait_ns[static_cast<int>(WaitReason::kToken)].load(std::memory_order_relaxed);
  };
  if (own_loop_ != nullptr) add(own_loop_->counters());
  for (int w = 0; w < pool_.size(); ++w) add(pool_.counters(w));
  return stats;
}

}  // namespace tetrion
