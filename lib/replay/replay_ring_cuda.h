#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "lib/core/mutex.h"
#include "lib/cuda/device.h"
#include "lib/cuda/kernel_spans.h"
#include "lib/replay/cuda/push_step.h"
#include "lib/replay/device_rows.h"
#include "lib/replay/gate.h"
#include "lib/replay/pixel_gather.h"

namespace tetrion {

// A replay of one shard on a device under the names of the CUDA replay's first plan, which others
// program against: docs/formats/cuda_replay.md says what stands behind each. An environment writes
// its frames into obs_slot, the rest of the row into push_step; every commit_stride rows become
// visible at once; sequences are sampled from what is visible. t counts rows from 0, never wrapped.
//
// Thread roles: one writer thread, one reader thread; each enqueues on its own stream. Two calls
// wait for the device: check_invariants, and the first sample of a larger size with kLut.
class ReplayRingCuda {
 public:
  struct Config {
    RowSpec row;
    int capacity = 0;  // Tcap rows; commit_stride divides it
    int commit_stride = 8;
    int safety_margin = 0;  // rows below the committed ones that are not sampled; 0 is safe
    int seq_len = 64;       // T, of every sequence
    std::uint64_t seed = 1;
    UnpackImpl unpack_impl = UnpackImpl::kLut;
  };
  // Rows of a sequence that could be sampled, and how many it takes. Not ready with enough of them:
  // four samples are still being gathered.
  struct [[nodiscard]] Sampled {
    bool ready = false;
    std::uint64_t have_rows = 0, need_rows = 0;
  };

  // Allocates everything, as DeviceRows. The streams outlive the ring.
  ReplayRingCuda(const cuda::Device& device, const Config& config, cuda::Stream& writer,
                 cuda::Stream& reader);

  // NOLINTBEGIN(readability-identifier-naming): the plan's names
  // --- writer thread ---
  // Memory of row t's records, [N, record_bytes] in one piece, for kernels on the writer stream.
  // CHECKs that t is in the chunk that is being written. The first row of a chunk waits until no
  // sampling thread holds rows that die with it, 1 s at most, then throws Error(kTryAgain).
  cuda::DeviceSpan<std::byte> obs_slot(std::uint64_t t) TETRION_EXCLUDES(mu_);
  // All other fields of row t, by one launch. As obs_slot.
  void push_step(std::uint64_t t, const StepFields& fields) TETRION_EXCLUDES(mu_);
  // Everything of the rows below write_t is enqueued. Makes whole strides of them visible; returns
  // committed_t. Called at least once a stride.
  std::uint64_t record_commit(std::uint64_t write_t) TETRION_EXCLUDES(mu_);
  // Makes a partial stride visible, too: at the end.
  void flush() { gate_.Flush(0); }

  // --- reader thread ---
  // Later work of the reader stream comes behind the writing of rows below target_t. Throws
  // Error(kInternal) for a row that is not committed yet: a wait for it would wait for nothing.
  void wait_for_commit(std::uint64_t target_t) TETRION_EXCLUDES(mu_);
  // Draws B sequences of T = seq_len rows of one lane each, with replacement, and gathers them into
  // device memory [T, B, ...]; `pixels` [T, B, 72, 80] f32 by unpack_impl where it is not null. Not
  // enough rows yet is no error.
  Sampled sample_sequences(int sequences, const DeviceColumns& out, float* pixels = nullptr);
  // nullptr, or what is wrong with committed rows [from, to): for tests and debugging. Copies them
  // to the host; waits. Throws Error(kTryAgain) when the writer overwrote one of them meanwhile.
  const char* check_invariants(std::uint64_t from, std::uint64_t to) TETRION_EXCLUDES(mu_);

  // --- any thread ---
  std::uint64_t committed_t() const { return gate_.Stats(0).committed_rows; }
  // Rows below may be sampled.
  std::uint64_t safe_max_t() const;
  // Runs `region`; throws Error(kInternal) that names every copy between host and device and every
  // wait of the host that the process made meanwhile, or says that no kernel ran.
  static void assert_no_host_memcpy(const std::function<void()>& region);
  // NOLINTEND(readability-identifier-naming)

  const DeviceRows& rows() const { return rows_; }

 private:
  void Require(std::uint64_t t);

  const Config config_;
  DeviceRows rows_;
  ReplayGate gate_;
  std::optional<PixelGather> pixels_;  // where records are pictures
  Chunk chunk_;                        // writer thread; not acquired: none
  Mutex mu_;
  const Event* committed_ TETRION_GUARDED_BY(mu_) = nullptr;  // behind all committed rows
};

}  // namespace tetrion
