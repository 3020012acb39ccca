#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/clock.h"
#include "lib/frame/row_layout.h"
#include "lib/inference/stream_layout.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"

namespace tetrion {

// What the policy decides for a row, in memory that the environment's end cannot write.
struct RowDecision {
  const std::int32_t* action = nullptr;  // [M]
  const float* log_prob = nullptr;       // [M]
  std::uint32_t policy_version = 0;
  std::uint32_t flags = 0;  // ActionFlags
};

// The policy's end of one stream: attaches, sees rows, answers them. It never releases a row: the
// learner's ingest does, up to `answered()`, when the replay has a copy.
//
// Thread role: one thread (the learner's inference agent). Nothing here blocks.
//
// Everything that the environment's end wrote is untrusted; what is impossible breaks the stream
// for good.
class PolicyEnd {
 public:
  enum class State {
    kAsking,     // ENV_RESET is out, no response yet
    kStreaming,  // rows from first_row() on are answered
    kBroken,     // see problem()
  };

  // Maps the stream at `path`. Throws Error like RingConsumer::Attach; kConfig also when the
  // stream's part of the region does not fit.
  static PolicyEnd Attach(const std::string& path, const RowLayout& row, std::uint64_t run_id,
                          const Clock& clock = MonotonicClock::Get());

  // Goes on with the attachment: sends ENV_RESET, again every second; takes the response.
  State Poll();
  State state() const { return state_; }

  // The oldest unanswered row, [row_bytes] u8, writable in its empty columns; null when there is
  // none for now or the ACTION ring is full. Only while kStreaming.
  std::byte* Next();
  std::uint64_t next_row() const { return obs_.tail(); }
  // Completes the row that Next returned and answers it. False when the stream has broken
  // meanwhile.
  bool Answer(const RowDecision& decision);

  // The first row of this attachment; rows before it are void.
  std::uint64_t first_row() const { return first_row_; }
  // Rows below are complete (or void).
  std::uint64_t answered() const { return obs_.tail(); }
  const RowLayout& row() const { return layout_.row; }
  const std::string& problem() const { return problem_; }

 private:
  PolicyEnd(RingConsumer obs, const StreamLayout& layout, std::byte* payload, const Clock& clock,
            RingProducer command, RingProducer action);

  void Ask();
  void TakeResponses();
  void Begin(std::uint64_t row);
  void Break(std::string problem);

  const StreamLayout layout_;
  const Clock* clock_;
  StreamBlock* block_;
  RingConsumer obs_;  // looks ahead of ingest, which releases
  RingProducer command_, action_;
  RingConsumer response_;
  State state_ = State::kAsking;
  std::uint64_t epoch_ = 0;
  std::uint64_t first_row_ = 0;
  std::int64_t next_ask_ns_ = 0;
  std::string problem_;
};

}  // namespace tetrion
