#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/inference/policy_end.h"
#include "lib/policy/policy.h"
#include "lib/shm/bell.h"
#include "lib/weights/weights_source.h"
#include "services/learner/boards.h"

namespace tetrion::learner {

// Written by the inference thread, read by anyone; relaxed.
struct InferenceCounters {
  std::atomic<std::uint64_t> streams{0};     // streams attached now
  std::atomic<std::uint64_t> rows{0};        // rows answered
  std::atomic<std::uint64_t> batches{0};     // calls of the policy
  std::atomic<std::uint64_t> not_finite{0};  // rows on which the policy failed
  std::atomic<std::int64_t> wait_ns{0};      // slept for rows
};

// Decides the rows of streamed workers: one call of the policy for the waiting rows of all streams,
// written in place, answered to their workers, handed to ingest. A stream with a row that no policy
// could decide is given up before the call, so that the others of the batch hear nothing of it.
//
// Thread role: DoWork on the inference thread. Waits on the learner region's inference bell.
class InferenceAgent final : public Agent {
 public:
  struct Config {
    std::uint64_t run_id = 0;
    std::int32_t action_count = 0;
    CheckRecordsFn check_records = nullptr;      // ObsSpec::check
    int max_lanes = 1;                           // most lanes of one call; at least a row's
    std::int64_t wait_ns = 20 * kNanosPerMilli;  // longest single wait
    // How long a region may not be ready, and how long this process may be short of memory or open
    // files, which no actor can help, before a stream is given up; and how often it is tried.
    std::int64_t attach_retry_ns = 2 * kNanosPerSecond;
    std::int64_t shortage_ns = 60 * kNanosPerSecond;
    std::int64_t attach_every_ns = 50 * kNanosPerMilli;
  };
  struct Parts {
    // Makes the policy, of up to max_lanes lanes: it and the buffers of a batch are there once a
    // stream has come, since most learners have none.
    std::function<std::unique_ptr<Policy>()> make_policy;
    std::unique_ptr<WeightsSource> weights;
    Bell bell;    // rung by streamed workers
    Bell ingest;  // rung when rows are complete
    // Called after every batch with its seconds; must be quick.
    std::function<void(double)> on_batch;
  };
  // `board` outlives the agent.
  InferenceAgent(const Config& config, const RowLayout& row, Parts parts, StreamBoard& board);
  ~InferenceAgent() override;

  std::string name() const override { return "inference"; }
  int DoWork() override;
  const InferenceCounters& counters() const { return counters_; }

 private:
  struct Stream;
  struct Waiting {
    std::shared_ptr<StreamShare> share;
    std::int64_t since_ns;
    std::int64_t next_try_ns;
  };

  void TakeStreams();
  void Allocate();
  bool TryAttach(Waiting& waiting);
  std::uint32_t FreePlace() const;
  void PollStreams();
  void Break(StreamShare& share, const std::string& why);
  void Gather();
  const char* Copy(const RowView& row, std::size_t at);
  ActResult Act();
  void WriteAnswers(ActResult acted);
  bool AnswerRow(Stream& stream, const RowView& row, std::size_t at, ActResult acted);
  void Sleep();

  const Config config_;
  const RowLayout row_;
  Parts parts_;
  std::unique_ptr<Policy> policy_;  // null before the first stream
  StreamBoard& board_;
  const Clock& clock_ = MonotonicClock::Get();
  std::vector<Waiting> waiting_;  // not attached yet
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t turn_ = 0;  // the stream that a batch begins with
  // The batch: rows of `batch_` back to back, M lanes each.
  std::vector<Stream*> batch_;
  std::vector<std::byte> records_;
  std::vector<std::uint64_t> masks_, token_ids_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> lane_ids_, steps_;
  std::vector<std::int32_t> actions_;
  std::vector<float> log_probs_;
  InferenceCounters counters_;
};

}  // namespace tetrion::learner
