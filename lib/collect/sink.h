#pragma once

#include <cstdint>

#include "lib/frame/row_layout.h"
#include "lib/frame/token.h"

namespace tetrion {

enum class [[nodiscard]] ClaimResult {
  kRow,   // the row may be written
  kFull,  // no space within the time-out; ask again
};

// Where a lane loop's rows go: a shared-memory ring in an actor, episode buffers in a collector.
// Worker thread only. The loop claims row t, has it written in place, completes it; rows become
// visible to the other side in batches, or at once with Flush.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual const RowLayout& layout() const = 0;
  // Gives the next row's memory, uninitialised. Waits at most `timeout_ns` for space.
  virtual ClaimResult Claim(RowView& row, std::int64_t timeout_ns) = 0;
  // Lane `lane` plays `token` from the next row on.
  virtual void OnToken(int lane, const Token& token) {
    static_cast<void>(lane);
    static_cast<void>(token);
  }
  // The claimed row is complete; publishes when a commit stride is full.
  virtual void Complete() = 0;
  // Publishes every complete row now: before the worker blocks, and at the end.
  virtual void Flush() = 0;
  // Rows the other side can see. Episodes whose last row is below may be reported.
  virtual std::uint64_t PublishedRows() const = 0;
};

}  // namespace tetrion
