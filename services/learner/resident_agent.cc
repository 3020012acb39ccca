#include "services/learner/resident_agent.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion::learner {

class ResidentAgent::Weights final : public WeightsUser {
 public:
  Weights(DevicePolicy& policy, cuda::Stream& stream) : policy_(policy), stream_(stream) {}

  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override {
    return policy_.LoadWeights(blob, version, stream_);
  }
  std::size_t WeightsBytes() const override { return policy_.WeightsBytes(); }
  std::uint32_t version() const override { return policy_.version(); }

 private:
  DevicePolicy& policy_;
  cuda::Stream& stream_;
};

ResidentAgent::ResidentAgent(const Config& config, Parts parts, ReplayGate& gate, DeviceRows& rows,
                             cuda::Stream& stream, std::deque<CreditQueue>& credits, Outbox& outbox,
                             const Clock& clock)
    : config_(config),
      parts_(std::move(parts)),
      gate_(gate),
      rows_(rows),
      stream_(stream),
      credits_(credits),
      outbox_(outbox),
      clock_(clock),
      weights_user_(std::make_unique<Weights>(*parts_.policy, stream)),
      pace_(rows.layout().spec.lanes, config.drain_every_ns),
      by_group_(credits.size()) {
  TETRION_CHECK(gate.shards() == 1, "resident lanes have the only shard");
  TETRION_CHECK(
      rows.layout().spec.lanes == static_cast<std::uint32_t>(config.group_lanes) * credits.size(),
      "lanes are groups of those of a worker");
}

// A step may be under way where the agent is stopped without a drain: what its copies name is gone
// after this.
ResidentAgent::~ResidentAgent() {
  try {
    stream_.Synchronize();
  } catch (const Error& error) {  // a device that fails copies nothing more
    log::warn("resident lanes end: {}", error.what());
  }
}

int ResidentAgent::DoWork() {
  TakeDrained();
  LookAtPolicy();
  if (const TakeResult state = State(); state != TakeResult::kToken) return CutLanes(state);
  if (!HasWeights()) return 0;
  TakeTokens();
  if (in_play_ == 0 && !WaitForTokens()) return 0;
  const Chunk chunk = AcquireRows(config_.commit_stride);
  if (!chunk) return 0;
  Play(chunk);
  return chunk.rows;
}

// What any of the queues says.
TakeResult ResidentAgent::State() const {
  if (drained_.load(std::memory_order_relaxed)) return TakeResult::kDrain;
  for (const CreditQueue& credits : credits_) {
    if (credits.State() != TakeResult::kToken) return credits.State();
  }
  return TakeResult::kToken;
}

// Whether the link is between two ends of sessions, not in the middle of one.
bool ResidentAgent::FencesAgree() const {
  return std::ranges::all_of(credits_, [&](const CreditQueue& credits) {
    return credits.fences() == credits_.front().fences();
  });
}

bool ResidentAgent::HasWeights() {
  if (parts_.weights->Refresh(*weights_user_)) return true;
  // The trainer has published nothing yet.
  const std::int64_t start_ns = clock_.NowNs();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  AddRelaxed(counters_.wait_weights_ns, clock_.NowNs() - start_ns);
  return false;
}

// As many as the device has room for, from each group in turn.
void ResidentAgent::TakeTokens() {
  const std::size_t most = rows_.layout().spec.lanes;
  std::size_t empty = 0;  // queues in a row
  while (tokens_.size() < most && empty < credits_.size()) {
    Token token;
    const bool taken = credits_[next_group_].Take(token, 0) == TakeResult::kToken;
    next_group_ = (next_group_ + 1) % credits_.size();
    empty = taken ? 0 : empty + 1;
    if (taken) tokens_.push_back(token);
  }
  if (tokens_.empty()) return;
  const std::size_t added = parts_.lanes->AddTokens(tokens_, stream_);
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(added));
  in_play_ += added;
  pace_.OnAdded(added);
}

// Rows without any episode would only fill the replay.
bool ResidentAgent::WaitForTokens() {
  const std::int64_t start_ns = clock_.NowNs();
  Token token;
  const bool taken = credits_[next_group_].Take(token, config_.wait_ns) == TakeResult::kToken;
  AddRelaxed(counters_.wait_token_ns, clock_.NowNs() - start_ns);
  if (taken) tokens_.push_back(token);
  TakeTokens();
  return in_play_ > 0;
}

Chunk ResidentAgent::AcquireRows(int most) {
  Chunk chunk = gate_.Acquire(0, most, 0);
  if (chunk) return chunk;
  const std::int64_t start_ns = clock_.NowNs();
  chunk = gate_.Acquire(0, most, config_.wait_ns);
  AddRelaxed(counters_.wait_replay_ns, clock_.NowNs() - start_ns);
  return chunk;
}

void ResidentAgent::Play(const Chunk& chunk) {
  const RowSlots slots = rows_.Slots(0);
  if (rows_.has_latents()) rows_.ForgetLatents(chunk);
  const auto enqueue = [&] {
    parts_.lanes->StepRow(slots, stream_);
    parts_.policy->Decide(slots, parts_.lanes->row(), parts_.lanes->token_ids(),
                          parts_.lanes->steps(), stream_);
    parts_.lanes->Advance(stream_);
  };
  if (chunk.rows == config_.commit_stride) {
    if (!full_chunk_) {
      cuda::Capture capture(stream_);
      for (int row = 0; row < chunk.rows; ++row) enqueue();
      full_chunk_.emplace(capture.End());
    }
    stream_.Launch(*full_chunk_);
  } else {
    for (int row = 0; row < chunk.rows; ++row) enqueue();
  }
  gate_.Commit(chunk, rows_.Written());
  AddRelaxed<std::uint64_t>(counters_.rows, static_cast<std::uint64_t>(chunk.rows));
  if (pace_.Due(counters_.rows.load(std::memory_order_relaxed), clock_.NowNs())) EnqueueDrain();
  parts_.policy->EnqueueCheck(stream_);
}

void ResidentAgent::EnqueueDrain() {
  if (drain_enqueued_) return;
  parts_.lanes->EnqueueDrain(stream_);
  pace_.OnEnqueued(counters_.rows.load(std::memory_order_relaxed), clock_.NowNs());
  drain_enqueued_ = true;
}

// Reports what has ended, in the replay's order of rows.
void ResidentAgent::TakeDrained() {
  DeviceDrain drain;
  if (!drain_enqueued_ || !parts_.lanes->TakeDrained(drain)) return;
  drain_enqueued_ = false;
  const auto lanes = static_cast<std::uint32_t>(config_.group_lanes);
  for (const EndedEpisode& ended : drain.episodes) {
    EpisodeResult episode = ended.result;
    const std::uint32_t group = std::exchange(episode.lane, episode.lane % lanes) / lanes;
    by_group_[group].push_back(episode);
  }
  for (std::size_t group = 0; group < by_group_.size(); ++group) {
    if (by_group_[group].empty()) continue;
    outbox_.PutEpisodes(static_cast<int>(group), by_group_[group]);
    by_group_[group].clear();
  }
  in_play_ -= drain.episodes.size();
  ended_left_ = drain.episodes_left;
  pace_.OnDrained(drain.episodes.size(), drain.tokens_left, drain.episodes_left > 0);
  AddRelaxed<std::uint64_t>(counters_.episodes, drain.episodes.size());
  counters_.env_steps.store(drain.env_steps, std::memory_order_relaxed);
}

// At a drain, or when the session has ended: every lane's episode is cut in one more row.
int ResidentAgent::CutLanes(TakeResult why) {
  if (drained_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  }
  // The link fences one queue after the other: what a queue gives before all are is of the old
  // session, what it gives after it was accepted is not. Queues that were not fenced equally often
  // are in between; equally often and not all fenced, the next session ended while this thread
  // accepted the end of the one before.
  if (why == TakeResult::kFenced && !FencesAgree()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  }
  std::vector<Token> cut = std::exchange(tokens_, {});
  if (in_play_ > 0) {
    const Chunk chunk = AcquireRows(1);
    if (!chunk) {
      tokens_ = std::move(cut);
      return 0;
    }
    TakeLastDrain();
    if (rows_.has_latents()) rows_.ForgetLatents(chunk);
    const CutTokens unfinished = parts_.lanes->CutLanes(rows_.Slots(0), stream_);
    cut.insert(cut.end(), unfinished.tokens.begin(), unfinished.tokens.end());
    if (unfinished.has_row) {
      gate_.Commit(chunk, rows_.Written());
      gate_.Flush(0);
      AddRelaxed<std::uint64_t>(counters_.rows, 1);
    }
    do {  // episodes that ended before that row, or in it by themselves
      EnqueueDrain();
      TakeLastDrain();
    } while (ended_left_ > 0);
    in_play_ = 0;
  }
  if (why == TakeResult::kDrain) {
    if (!cut.empty()) outbox_.PutAbandoned(cut, "drain");
    drained_.store(true, std::memory_order_release);
    return 1;
  }
  for (CreditQueue& credits : credits_) credits.AcceptFence();
  return 1;
}

// Waits for the stream.
void ResidentAgent::TakeLastDrain() {
  stream_.Synchronize();
  TakeDrained();
}

// A policy that fails again and again is broken, as in a lane loop.
void ResidentAgent::LookAtPolicy() {
  const std::optional<std::uint64_t> failed = parts_.policy->TakeCheck();
  if (!failed) return;
  const std::uint64_t before = counters_.not_finite.exchange(*failed, std::memory_order_relaxed);
  not_finite_run_ = *failed > before ? not_finite_run_ + 1 : 0;
  if (not_finite_run_ < config_.max_not_finite) return;
  throw Error(
      ExitCode::kTryAgain,
      "the policy gave NaN or infinite logits in " + std::to_string(not_finite_run_) +
          " chunks in a row (version " + std::to_string(parts_.policy->version()) +
          "); lower the learning rate with ./tetrion up --resume RUN --learning-rate X, or begin "
          "anew with its best weights: ./tetrion up --init-from RUN/best --learning-rate X");
}

}  // namespace tetrion::learner
