#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/frame/specs.h"

namespace tetrion {

// Which observation of a request it is, for messages.
struct ObsPlace {
  std::int64_t job = 0;   // the token
  std::int32_t step = 0;  // actions taken before it
};

// Makes one observation of one record, straight into an episode's row. One instance per worker,
// called on its thread.
class ObsWriter {
 public:
  virtual ~ObsWriter() = default;
  // Size of one observation, constant.
  virtual std::size_t bytes() const = 0;
  // `record` is u8[record_bytes], `out` is u8[bytes()]. May throw: the request fails with it.
  virtual void Write(const std::byte* record, const ObsPlace& place, std::byte* out) = 0;
  // Store fence for streaming writes: orders them before a later release of a lock. The worker
  // calls it once an episode, before it publishes.
  virtual void Flush() {}
};

// The view of `obs` as floats. `streaming` writes around the caches, for observations that no
// thread reads before the whole batch is there: half the memory traffic.
std::unique_ptr<ObsWriter> MakeViewWriter(const ObsSpec& obs, bool streaming);
// The record itself.
std::unique_ptr<ObsWriter> MakeRecordWriter(const ObsSpec& obs);

}  // namespace tetrion
