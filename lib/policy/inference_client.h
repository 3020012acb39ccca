#pragma once

#include <cstdint>
#include <string>

namespace tetrion {

// Whether another process is there to decide rows.
enum class [[nodiscard]] AnswererState {
  kReady,
  kAbsent,  // not there yet; ask again
  kReset,   // a new answerer has begun: every row published so far is discarded
  kBroken,  // what it says is impossible, see problem(); the stream is over
};

enum class [[nodiscard]] AnswerResult {
  kAnswer,
  kNotFinite,  // the policy failed on this row: its live lanes are cut, the tokens go back
  kTimeout,    // not yet; ask again
  kReset,      // a new answerer has begun: this row and those before it are discarded
  kBroken,     // the answer is impossible, see problem(); the stream is over
};

// Decides published rows elsewhere: the row goes out without actions, the actions come back later
// (streamed inference). Belongs to one worker thread.
class InferenceClient {
 public:
  virtual ~InferenceClient() = default;
  // Looks for a new answerer; waits at most `timeout_ns` while there is none at all.
  virtual AnswererState Look(std::int64_t timeout_ns) = 0;
  // Waits at most `timeout_ns` for the answer to row `row` and writes actions [M] i32, in range (0
  // where the row is_last), and the version that chose them. Nothing is written otherwise.
  virtual AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::uint32_t& version,
                            std::int64_t timeout_ns) = 0;
  // The answerer's process has ended; another may come. One system call.
  virtual bool AnswererGone() const = 0;
  // Why Look or Take said kBroken.
  virtual const std::string& problem() const = 0;
};

}  // namespace tetrion
