#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/core/clock.h"
#include "lib/weights/remote_weights.h"
#include "lib/wire/rows_messages.h"
#include "services/actor/row_stream.h"

namespace tetrion::actor {

// Fetches the learner's newest weights chunk by chunk into an inbox: asks for a few chunks ahead,
// over a slow line for one at a time, since the learner's answers to rows wait behind them; and
// again for what does not come. A version that was begun is finished, unless the learner has
// dropped it. Apart from any socket; one thread, the courier's.
class WeightsPull {
 public:
  struct Stats {
    std::uint64_t versions = 0;  // taken
    std::uint64_t refused = 0;   // of another size, or whose hash was wrong
  };

  // `blob_bytes`: what the workers' policy needs; 0: no weights are fetched. `inbox` must outlive
  // the pull.
  WeightsPull(std::uint64_t blob_bytes, WeightsInbox& inbox, const Clock& clock);

  // Sends the questions that are due. Returns how many.
  int Send(RowsPort& port);
  // The learner has published `version`.
  void OnNewest(std::uint32_t version);
  void On(const wire::WeightsChunk& chunk, std::span<const std::byte> payload);
  void On(const wire::WeightsGone& gone);
  // The learner has no stream of this actor (any more): asked again a little later.
  void On(const wire::WeightsRefused& refused);
  // On a new connection nothing that was asked for will come.
  void AskAgain();

  const Stats& stats() const { return stats_; }

 private:
  bool Pulling() const { return version_ != 0; }
  void Begin(std::uint32_t version);
  void Refuse();
  void Finish();
  std::uint64_t ChunkBytes(std::uint32_t chunk) const;
  std::uint32_t WindowChunks() const;

  const std::uint64_t blob_bytes_;
  const std::uint32_t chunks_;
  WeightsInbox& inbox_;
  const Clock& clock_;
  std::uint32_t version_ = 0;  // being fetched; 0: none
  std::uint64_t hash_ = 0;     // of the version, with its first chunk
  std::vector<std::byte> bytes_;
  std::uint32_t have_ = 0;   // chunks received, in order
  std::uint32_t asked_ = 0;  // chunks asked for and not given up; below have_: none
  std::int64_t progress_ns_ = 0;
  std::int64_t patience_ns_;
  std::uint32_t window_chunks_;    // asked for and not received at once, as fast as the line is
  bool followed_ = false;          // the next chunk was asked for already when the last one came
  std::int64_t gap_ns_ = 0;        // of the last one that followed another
  std::int64_t begin_due_ns_ = 0;  // not before, after a refusal
  Stats stats_;
};

}  // namespace tetrion::actor
