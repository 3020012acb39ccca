#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/policy/answer_source.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/stream/native_layout.h"

namespace tetrion {

// Counters of one end; written by its thread, read by anyone, relaxed.
struct StreamHostStats {
  std::atomic<std::uint64_t> answers{0};
  std::atomic<std::uint64_t> resets{0};      // kernels that have attached
  std::atomic<std::uint64_t> seq_errors{0};  // answers to another row than the one asked
  std::atomic<std::uint64_t> sleeps{0};      // waits that entered the kernel of the system
};

// The host end of a stream in the native layout: publishes rows, takes answers.
//
// Thread roles: made by one thread; Look and Take belong to the worker's thread, which is also the
// one that fills the OBS ring.
//
// Whatever the kernel wrote is untrusted: cursors are judged by the rings, sequence numbers and
// actions here, before anything of an answer is used.
class NativeHost final : public AnswerSource {
 public:
  // Makes region `dir`/`name` and returns its OBS ring's producer in `obs`, which must outlive the
  // host, must not move any more once `Bind` has been called, and keeps the region mapped. Throws
  // Error like Region::Create.
  static std::unique_ptr<NativeHost> Create(const std::string& dir, const std::string& name,
                                            std::uint64_t run_id, const StreamLayout& layout,
                                            std::int32_t action_count,
                                            std::optional<RingProducer>& obs);

  // `obs`: where the OBS producer lives now. `kernel_gone`: whether the kernel's process has ended.
  void Bind(const RingProducer* obs, std::function<bool()> kernel_gone);
  // The kernel's bell, once it is known; rung by responses (rows ring their own ring's).
  void SetKernelBell(Bell bell) { response_.SetBell(bell); }

  AnswererState Look(std::int64_t timeout_ns) override;
  AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::uint32_t& version,
                    std::int64_t timeout_ns) override;
  bool AnswererGone() const override { return kernel_gone_ && kernel_gone_(); }
  const std::string& problem() const override { return problem_; }

  const StreamHostStats& stats() const { return stats_; }

 private:
  NativeHost(std::byte* payload, const StreamLayout& layout, std::int32_t action_count);

  bool TakeCommands();
  void Reset(std::uint64_t epoch);
  AnswerResult Read(std::uint64_t row, const std::byte* record, std::int32_t* actions,
                    std::uint32_t& version);
  AnswerResult Broken(std::string problem);
  bool Sleep(std::int64_t timeout_ns);

  // Immutable after Bind.
  const StreamLayout layout_;
  const std::int32_t action_count_;
  const RingProducer* obs_ = nullptr;
  std::function<bool()> kernel_gone_;
  // The worker's thread.
  Bell bell_;
  RingProducer response_;
  RingConsumer command_;
  RingConsumer action_;
  bool attached_ = false;
  std::string problem_;
  StreamHostStats stats_;
};

}  // namespace tetrion
