#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/inference/stream_layout.h"
#include "lib/policy/inference_client.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/weights/learner_region.h"

namespace tetrion {

// The environment's end of a stream (an actor's worker): publishes rows, takes the answers of the
// policy's end.
//
// Thread roles: any one thread makes it; the worker's thread, which also fills the OBS ring, calls
// Look and Take.
//
// Everything that the policy's end wrote is untrusted: the rings judge cursors, this class judges
// sequence numbers and actions before it uses any part of an answer.
class EnvEnd final : public InferenceClient {
 public:
  // Makes region `dir`/`name`. The OBS ring's producer, in `obs`, keeps the region mapped and must
  // outlive `env_end`. Throws Error like Region::Create.
  struct Ends {
    RingProducer obs;
    std::unique_ptr<EnvEnd> env_end;
  };
  static Ends Create(const std::string& dir, const std::string& name, std::uint64_t run_id,
                     const StreamLayout& layout, std::int32_t action_count);

  // What this end needs of its surroundings; set before the first Look.
  struct Surroundings {
    std::function<std::uint64_t()> published;  // rows published in the OBS ring
    std::function<void(Bell)> set_obs_bell;    // gives the OBS ring the bell of the policy's end
    LearnerWatch::Config learner;
  };
  void Place(Surroundings surroundings);

  AnswererState Look(std::int64_t timeout_ns) override;
  AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::uint32_t& version,
                    std::int64_t timeout_ns) override;
  bool AnswererGone() const override { return learner_ && learner_->Gone(); }
  const std::string& problem() const override { return problem_; }

 private:
  EnvEnd(std::byte* payload, const StreamLayout& layout, std::int32_t action_count);

  void FindLearner();
  bool TakeCommands();
  void DropAnswers();
  [[nodiscard]] bool Respond(const StreamResponse& response);
  void Reset(std::uint64_t epoch);
  AnswerResult Read(std::uint64_t row, const std::byte* record, std::int32_t* actions,
                    std::uint32_t& version);
  AnswerResult Broken(std::string problem);
  bool Sleep(std::int64_t timeout_ns);

  // Immutable after Place.
  const StreamLayout layout_;
  const std::int32_t action_count_;
  Surroundings around_;
  // The worker's thread.
  std::optional<LearnerWatch> learner_;
  Bell bell_;
  RingProducer response_;
  RingConsumer command_;
  RingConsumer action_;
  bool attached_ = false;
  std::uint64_t epoch_ = 0;  // of the policy's end that attached last
  std::string problem_;
};

}  // namespace tetrion
