#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/cuda/backend.h"

// Streams of the simulated device as data; the simulator moves them, under its mutex.

namespace tetrion::cuda::sim {

struct StreamQueue;

// Behind the operations of a stream that were enqueued when it was taken.
struct StreamPoint {
  std::shared_ptr<const StreamQueue> stream;  // null: passed
  std::uint64_t operations = 0;
};

// `index` of `count` parts of an operation.
struct Part {
  std::uint64_t index, count;

  // Which part of `whole` things it is: [begin, end).
  std::uint64_t Begin(std::uint64_t whole) const { return whole * index / count; }
  std::uint64_t End(std::uint64_t whole) const { return whole * (index + 1) / count; }
};

// Memory that is not pageable.
struct Extent {
  const void* data;
  std::size_t bytes;
  MemoryKind kind;
};

// One of the three.
struct Operation {
  std::function<void(const Part&)> run;  // a copy or a fill
  std::vector<Extent> touches;           // of `run`
  std::optional<KernelCall> kernel;
  std::optional<StreamPoint> waits_for;
  std::uint64_t most_parts = 1;  // that other streams may come between
};

struct StreamQueue {
  std::uint64_t number = 0;
  std::string name;
  std::deque<Operation> waiting;  // the first one may be half done
  std::uint64_t enqueued = 0, done = 0;
  Part part = {0, 0};                        // of the first one; count 0: not begun
  std::vector<std::uint32_t> block_order;    // of the first one, a kernel
  std::optional<std::thread::id> capturing;  // the thread that does
  bool open = true;
  std::vector<Operation> captured;
};

}  // namespace tetrion::cuda::sim
