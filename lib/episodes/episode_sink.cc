#include "lib/episodes/episode_sink.h"

#include <utility>

#include "lib/core/align.h"
#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::size_t kRowAlign = 64;

}  // namespace

EpisodeSink::EpisodeSink(const RowSpec& spec, int steps, int staging_rows, EpisodeJobs& jobs,
                         std::unique_ptr<ObsWriter> writer, int mask_actions)
    : layout_(spec),
      jobs_(jobs),
      writer_(std::move(writer)),
      memory_((layout_.row_bytes + kRowAlign) / sizeof(std::uint64_t)),
      lanes_(spec.lanes),
      values_(spec.lanes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::size_t skip = (kRowAlign - address % kRowAlign) % kRowAlign;
  row_ = RowView(layout_, reinterpret_cast<std::byte*>(memory_.data()) + skip);
  if (staging_rows == 0) return;
  staging_ = std::make_shared<EpisodeBatch>(staging_rows, steps, writer_->bytes(), mask_actions);
  const MutexLock lock(staging_mu_);
  for (int row = staging_rows; row > 0; --row) free_rows_.push_back(row - 1);
}

ClaimResult EpisodeSink::Claim(RowView& row, std::int64_t /*timeout_ns*/) {
  row = row_;
  observed_ = false;
  return ClaimResult::kRow;
}

TakeResult EpisodeSink::Take(Token& token, std::int64_t timeout_ns) {
  if (request_ != nullptr && (request_->cancelled.load(std::memory_order_relaxed) ||
                              in_play_ >= request_->max_lanes_per_worker)) {
    return TakeResult::kIdle;
  }
  const int staging_row = staging_ == nullptr ? 0 : TakeStagingRow(timeout_ns);
  if (staging_row < 0) return State() == TakeResult::kDrain ? State() : TakeResult::kIdle;
  std::shared_ptr<BatchRequest> request;
  const TakeResult result = jobs_.Take(request_.get(), request, taken_job_, timeout_ns);
  if (result != TakeResult::kToken) {
    if (staging_ != nullptr) Release(staging_row);
    return result == TakeResult::kTimeout ? TakeResult::kIdle : result;
  }
  request_ = std::move(request);
  taken_row_ = request_->by_completion ? staging_row : taken_job_;
  token = {.id = request_->first_token + static_cast<std::uint64_t>(taken_job_),
           .attempt = 0,
           .max_steps = request_->MaxSteps(taken_job_)};
  return TakeResult::kToken;
}

void EpisodeSink::OnToken(int lane, const Token& /*token*/) {
  lanes_[static_cast<std::size_t>(lane)] = {
      .batch = request_->by_completion ? staging_.get() : request_->batch,
      .row = taken_row_,
      .job = taken_job_};
  ++in_play_;
}

bool EpisodeSink::Observe(const PolicyInput& in) {
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    const Lane& lane = lanes_[l];
    if (lane.batch == nullptr) continue;
    // An observer of the user's may take its time over every lane.
    if (jobs_.stopped() || request_->cancelled.load(std::memory_order_relaxed)) return false;
    const bool last = (in.flags[l] & kIsLast) != 0;
    const ObsPlace place = {.job = static_cast<std::int64_t>(request_->first_token) + lane.job,
                            .step = lane.step};
    writer_->Write(in.records + l * layout_.spec.record_bytes, place,
                   last ? lane.batch->FinalObservation(lane.row) : Observation(lane));
  }
  observed_ = true;
  return true;
}

void EpisodeSink::Complete() {
  ++rows_;
  if (in_play_ == 0) return;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    if (lane.batch == nullptr) continue;
    if (observed_) {
      CompleteLane(lane, l);
    } else {
      GiveUp(lane);
    }
  }
  if (in_play_ == 0) request_.reset();
}

void EpisodeSink::CompleteLane(Lane& lane, std::size_t l) {
  const std::uint8_t flags = row_.flags[l];
  if ((flags & kIsFirst) == 0) {
    lane.batch->SetOutcome(lane.row, lane.step - 1, row_.reward[l], (flags & kTerminated) != 0);
  }
  if ((flags & kIsLast) != 0) {
    lane.last_flags = flags;
    return;
  }
  lane.batch->SetAction(lane.row, lane.step, row_.action[l], row_.log_prob[l], values_[l]);
  if (lane.batch->mask_actions() > 0) lane.batch->SetMask(lane.row, lane.step, row_.mask[l]);
  ++lane.step;
}

// Called right after the Complete of the row they ended in.
void EpisodeSink::OnEpisodes(std::span<const EpisodeResult> episodes) {
  for (const EpisodeResult& result : episodes) {
    Lane& lane = lanes_[result.lane];
    if (lane.batch == nullptr) continue;  // given up
    TETRION_CHECK(static_cast<int>(result.length_steps) == lane.step, "a row was missed");
    lane.batch->Finish(lane.row, {.job = result.token_id,
                                  .length = lane.step,
                                  .terminated = (lane.last_flags & kTerminated) != 0,
                                  .truncated = (lane.last_flags & kTruncated) != 0,
                                  .episode_return = result.episode_return,
                                  .lines = static_cast<std::int32_t>(result.lines)});
    writer_->Flush();
    const int row = lane.row;
    const bool staged = request_->by_completion;
    lane.batch = nullptr;
    --in_play_;
    const bool taken =
        staged ? request_->FinishStaged({this, staging_.get(), row}) : request_->FinishInPlace();
    if (staged && !taken) Release(row);
  }
  if (in_play_ == 0) request_.reset();
}

void EpisodeSink::GiveUp(Lane& lane) {
  const bool staged = request_->by_completion;
  lane.batch->Abandon(lane.row, lane.step + 1);
  lane.batch = nullptr;
  --in_play_;
  if (staged) Release(lane.row);
}

// A staging row, waiting up to `timeout_ns` for the requester to release one; -1 without.
int EpisodeSink::TakeStagingRow(std::int64_t timeout_ns) {
  const MutexLock lock(staging_mu_);
  if (free_rows_.empty() && timeout_ns > 0) released_.WaitFor(staging_mu_, timeout_ns);
  if (free_rows_.empty()) return -1;
  const int row = free_rows_.back();
  free_rows_.pop_back();
  return row;
}

void EpisodeSink::Release(int row) {
  const MutexLock lock(staging_mu_);
  free_rows_.push_back(row);
  released_.NotifyOne();
}

}  // namespace tetrion
