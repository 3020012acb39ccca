#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/core/mutex.h"
#include "lib/episodes/episode_batch.h"
#include "lib/episodes/episode_jobs.h"
#include "lib/episodes/episode_obs.h"
#include "lib/policy/policy.h"

namespace tetrion {

// One worker's ends in a collector: takes jobs, turns the lane loop's rows into transition-aligned
// episodes where they are wanted, says when one is finished.
//
// Thread role: the worker's thread calls everything but Release.
//
// A row t of a lane becomes: observation t before the row is decided (Observe, called by
// EpisodePolicy), outcome t-1 and action t when it is complete. A row that was not observed, or
// which the policy refused, gives up every lane of the worker. All lanes play one request.
class EpisodeSink final : public RowSink,
                          public TokenSource,
                          public LaneListener,
                          public StagedRows {
 public:
  // A lane in play.
  struct Lane {
    EpisodeBatch* batch = nullptr;  // null: idle
    int row = 0;                    // of batch
    int job = 0;                    // of the request
    int step = 0;                   // actions taken
    std::uint8_t last_flags = 0;    // of the row that ended the episode
  };

  // `steps`: K of every request. `staging_rows`: finished episodes a worker may hold back in
  // requests by completion; 0 where there are none. `mask_actions`: of the requests' batches.
  EpisodeSink(const RowSpec& spec, int steps, int staging_rows, EpisodeJobs& jobs,
              std::unique_ptr<ObsWriter> writer, int mask_actions = 0);

  // RowSink.
  const RowLayout& layout() const override { return layout_; }
  ClaimResult Claim(RowView& row, std::int64_t timeout_ns) override;
  void OnToken(int lane, const Token& token) override;
  void Complete() override;
  void Flush() override {}
  std::uint64_t PublishedRows() const override { return rows_; }
  // TokenSource.
  TakeResult Take(Token& token, std::int64_t timeout_ns) override;
  TakeResult State() const override {
    return jobs_.stopped() ? TakeResult::kDrain : TakeResult::kToken;
  }
  void AcceptFence() override {}
  // LaneListener.
  void OnEpisodes(std::span<const EpisodeResult> episodes) override;
  void OnAbandoned(std::span<const Token>, const char*) override {}
  void OnRow(std::int64_t, std::int64_t) override {}
  // StagedRows.
  void Release(int row) override TETRION_EXCLUDES(staging_mu_);

  // For the policy, in its Act. Writes the observations of the lanes in play into their rows; after
  // it the row counts as observed. False when the request or the collector ended meanwhile: the row
  // counts as not decided.
  [[nodiscard]] bool Observe(const PolicyInput& in);
  // For the policy: it did not decide the row.
  void Refuse() { observed_ = false; }
  // The request the lanes in play belong to; null without any.
  BatchRequest* request() const { return request_.get(); }
  std::span<const Lane> lanes() const { return lanes_; }
  // [M] values of the row being decided, for the policy to fill.
  std::span<float> values() { return values_; }
  std::size_t obs_bytes() const { return writer_->bytes(); }
  // Where lane l's observation of the row being decided lies.
  std::byte* Observation(const Lane& lane) const {
    return lane.batch->Observation(lane.row, lane.step);
  }
  // Owns the memory of every Observation of the lanes in play.
  std::shared_ptr<const void> Storage() const {
    if (request_->by_completion) return staging_;
    return request_->owner;
  }
  // Lets go of the staging rows. Any thread, once neither worker nor requester uses them any more.
  void FreeStaging() { staging_.reset(); }

 private:
  void CompleteLane(Lane& lane, std::size_t l);
  void GiveUp(Lane& lane);
  int TakeStagingRow(std::int64_t timeout_ns) TETRION_EXCLUDES(staging_mu_);

  const RowLayout layout_;
  EpisodeJobs& jobs_;
  const std::unique_ptr<ObsWriter> writer_;
  std::shared_ptr<EpisodeBatch> staging_;  // null without staging rows
  std::vector<std::uint64_t> memory_;      // one row
  RowView row_;
  std::vector<Lane> lanes_;    // [M]
  std::vector<float> values_;  // [M]
  std::shared_ptr<BatchRequest> request_;
  int in_play_ = 0;        // lanes with a batch
  int taken_job_ = 0;      // by Take, for OnToken
  int taken_row_ = 0;      // by Take, for OnToken
  bool observed_ = false;  // the claimed row
  std::uint64_t rows_ = 0;
  Mutex staging_mu_;
  CondVar released_;
  std::vector<int> free_rows_ TETRION_GUARDED_BY(staging_mu_);
};

}  // namespace tetrion
