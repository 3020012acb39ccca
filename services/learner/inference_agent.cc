#include "services/learner/inference_agent.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/frame/row_check.h"

namespace tetrion::learner {

struct InferenceAgent::Stream {
  std::shared_ptr<StreamShare> share;
  PolicyEnd end;
  std::uint64_t key;    // with lane and row the counter of an action's random draw
  std::uint32_t place;  // among the streams attached now; its lanes' ids are place * M + lane
  bool told = false;    // ingest knows the first row
};

InferenceAgent::InferenceAgent(const Config& config, const RowLayout& row, Parts parts,
                               StreamBoard& board)
    : config_(config), row_(row), parts_(std::move(parts)), board_(board) {
  TETRION_CHECK(config_.max_lanes >= static_cast<int>(row_.spec.lanes),
                "a batch holds one row at least");
}

// What batches need, which may be much: a recurrent policy keeps a state for every lane.
void InferenceAgent::Allocate() {
  policy_ = parts_.make_policy();
  const auto lanes = static_cast<std::size_t>(config_.max_lanes);
  records_.resize(lanes * row_.spec.record_bytes);
  masks_.resize(lanes);
  lane_ids_.resize(lanes);
  token_ids_.resize(lanes);
  flags_.resize(lanes);
  steps_.resize(lanes);
  actions_.resize(lanes);
  log_probs_.resize(lanes);
}

InferenceAgent::~InferenceAgent() = default;

int InferenceAgent::DoWork() {
  TakeStreams();
  PollStreams();
  if (!streams_.empty() && !parts_.weights->Refresh(*policy_)) {
    // The trainer has published nothing yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  }
  Gather();
  if (batch_.empty()) {
    Sleep();
    return 0;
  }
  const std::int64_t start_ns = clock_.NowNs();
  WriteAnswers(Act());
  parts_.on_batch(static_cast<double>(clock_.NowNs() - start_ns) * 1e-9);
  AddRelaxed<std::uint64_t>(counters_.batches, 1);
  return static_cast<int>(batch_.size());
}

void InferenceAgent::TakeStreams() {
  // Those that ingest has ended go before new ones come: their places are free for these, so that
  // lane ids stay below the lanes of all shards. The new ones are taken first, for ingest ends a
  // stream before it adds the next one of its shard.
  std::vector<std::shared_ptr<StreamShare>> fresh = board_.Take();
  if (!fresh.empty() && policy_ == nullptr) Allocate();
  std::erase_if(streams_, [](const auto& stream) {
    return stream->share->ended.load(std::memory_order_acquire);
  });
  for (std::shared_ptr<StreamShare>& share : fresh) {
    const std::int64_t now_ns = clock_.NowNs();
    waiting_.push_back({.share = std::move(share), .since_ns = now_ns, .next_try_ns = now_ns});
  }
  std::erase_if(waiting_, [this](Waiting& waiting) {
    return clock_.NowNs() >= waiting.next_try_ns && TryAttach(waiting);
  });
}

// The lowest place that no attached stream has.
std::uint32_t InferenceAgent::FreePlace() const {
  std::uint32_t place = 0;
  const auto taken = [&place](const auto& stream) { return stream->place == place; };
  while (std::any_of(streams_.begin(), streams_.end(), taken)) ++place;
  return place;
}

// True when the stream waits no longer.
bool InferenceAgent::TryAttach(Waiting& waiting) {
  const std::shared_ptr<StreamShare>& share = waiting.share;
  if (share->ended.load(std::memory_order_acquire)) return true;  // pairs with ingest
  try {
    PolicyEnd end = PolicyEnd::Attach(share->path, row_, config_.run_id);
    const std::uint64_t key = std::hash<std::string>{}(share->path);
    streams_.push_back(std::make_unique<Stream>(Stream{share, std::move(end), key, FreePlace()}));
    return true;
  } catch (const Error& error) {
    const std::int64_t now_ns = clock_.NowNs();
    const bool is_ours = dynamic_cast<const Shortage*>(&error) != nullptr;
    const std::int64_t patience_ns = is_ours ? config_.shortage_ns : config_.attach_retry_ns;
    if (error.code() == ExitCode::kTryAgain && now_ns - waiting.since_ns < patience_ns) {
      waiting.next_try_ns = now_ns + config_.attach_every_ns;
      return false;
    }
    Break(*share, error.what());
    return true;
  }
}

// Goes on with attachments.
void InferenceAgent::PollStreams() {
  counters_.streams.store(streams_.size(), std::memory_order_relaxed);
  for (const auto& stream : streams_) {
    if (stream->told || stream->share->broken.load(std::memory_order_relaxed)) continue;
    const PolicyEnd::State state = stream->end.Poll();
    if (state == PolicyEnd::State::kBroken) Break(*stream->share, stream->end.problem());
    if (state != PolicyEnd::State::kStreaming) continue;
    stream->told = true;
    stream->share->first.store(stream->end.first_row(), std::memory_order_relaxed);
    stream->share->answered.store(stream->end.answered(), std::memory_order_release);
    parts_.ingest.Ring();
    log::info("answering {} from row {}", stream->share->path, stream->end.first_row());
  }
}

void InferenceAgent::Break(StreamShare& share, const std::string& why) {
  if (share.broken.load(std::memory_order_relaxed)) return;  // the first reason is ingest's to read
  log::error("gave up the stream {}: {}", share.path, why);
  share.problem = "it cannot be answered: " + why;
  share.broken.store(true, std::memory_order_release);  // pairs with ingest
  parts_.ingest.Ring();
}

// The oldest waiting row of each stream, as many as fit; every stream has its turn.
void InferenceAgent::Gather() {
  batch_.clear();
  const std::size_t lanes = row_.spec.lanes;
  const std::size_t most = static_cast<std::size_t>(config_.max_lanes) / lanes;
  for (std::size_t i = 0; i < streams_.size() && batch_.size() < most; ++i) {
    Stream& stream = *streams_[(turn_ + i) % streams_.size()];
    if (stream.share->broken.load(std::memory_order_relaxed)) continue;
    std::byte* memory = stream.end.Next();
    if (memory == nullptr) {
      if (stream.end.state() == PolicyEnd::State::kBroken) {
        Break(*stream.share, stream.end.problem());
      }
      continue;
    }
    const std::size_t at = batch_.size() * lanes;
    if (const char* wrong = Copy(RowView(row_, memory), at)) {
      Break(*stream.share, "row " + std::to_string(stream.end.next_row()) + ": " + wrong);
      continue;
    }
    for (std::size_t l = 0; l < lanes; ++l) {
      lane_ids_[at + l] = stream.place * row_.spec.lanes + static_cast<std::uint32_t>(l);
      token_ids_[at + l] = stream.key + l;
      steps_[at + l] = static_cast<std::uint32_t>(stream.end.next_row());
    }
    batch_.push_back(&stream);
  }
  if (!streams_.empty())
    turn_ = (turn_ + std::max<std::size_t>(batch_.size(), 1)) % streams_.size();
}

// Takes what the policy sees of a row into the batch. The environment's end could still write
// there: the row is copied once, then judged, then used. Returns what is wrong with it.
const char* InferenceAgent::Copy(const RowView& row, std::size_t at) {
  const std::size_t lanes = row_.spec.lanes;
  std::byte* const records = records_.data() + at * row_.spec.record_bytes;
  std::memcpy(records, row.record, lanes * row_.spec.record_bytes);
  std::memcpy(flags_.data() + at, row.flags, lanes);
  std::uint64_t* const masks = row.mask == nullptr ? nullptr : masks_.data() + at;
  if (masks != nullptr) std::memcpy(masks, row.mask, lanes * sizeof *masks);
  const SeenColumns seen = {.records = records, .flags = flags_.data() + at, .masks = masks};
  if (const char* wrong = CheckSeen(seen, lanes, config_.action_count, config_.check_records)) {
    return wrong;
  }
  // A finished game may have no legal action; its lane only keeps the batch whole.
  for (std::size_t l = 0; masks != nullptr && l < lanes; ++l) {
    if ((seen.flags[l] & kIsLast) != 0) masks[l] = 1;
  }
  return nullptr;
}

ActResult InferenceAgent::Act() {
  const PolicyInput in = {.n = static_cast<int>(batch_.size() * row_.spec.lanes),
                          .records = records_.data(),
                          .masks = row_.spec.has_mask ? masks_.data() : nullptr,
                          .flags = flags_.data(),
                          .lane_ids = lane_ids_.data(),
                          .token_ids = token_ids_.data(),
                          .steps = steps_.data()};
  return policy_->Act(in, {.action = actions_.data(), .log_prob = log_probs_.data()});
}

void InferenceAgent::WriteAnswers(ActResult acted) {
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    Stream& stream = *batch_[i];
    std::byte* memory = stream.end.Next();
    if (memory == nullptr ||
        !AnswerRow(stream, RowView(row_, memory), i * row_.spec.lanes, acted)) {
      if (stream.end.state() == PolicyEnd::State::kBroken) {
        Break(*stream.share, stream.end.problem());
      }
      continue;
    }
    stream.share->answered.store(stream.end.answered(), std::memory_order_release);
    AddRelaxed<std::uint64_t>(counters_.rows, 1);
  }
  parts_.ingest.Ring();
}

// Completes the row in place and answers it.
bool InferenceAgent::AnswerRow(Stream& stream, const RowView& row, std::size_t at,
                               ActResult acted) {
  const bool failed = acted != ActResult::kOk;
  for (std::size_t l = at; l < at + row_.spec.lanes; ++l) {
    // The flags as they were gathered: the environment's end could still write here.
    const bool last = (flags_[l] & kIsLast) != 0;
    if (failed && !last) row.flags[l - at] = flags_[l] | kIsLast | kTruncated;
    if (!failed && !last) continue;
    actions_[l] = 0;
    log_probs_[l] = 0.0F;
  }
  const RowDecision decision = {.action = actions_.data() + at,
                                .log_prob = log_probs_.data() + at,
                                .policy_version = policy_->version(),
                                .flags = failed ? kActionNotFinite : 0U};
  if (!stream.end.Answer(decision)) return false;
  if (failed) AddRelaxed<std::uint64_t>(counters_.not_finite, 1);
  return true;
}

void InferenceAgent::Sleep() {
  const std::int64_t start_ns = clock_.NowNs();
  const std::uint32_t armed = parts_.bell.Arm();
  for (const auto& stream : streams_) {
    if (stream->share->broken.load(std::memory_order_relaxed)) continue;
    if (stream->end.Next() == nullptr) continue;
    parts_.bell.Disarm(armed);
    return;
  }
  (void)parts_.bell.Wait(armed, config_.wait_ns);
  AddRelaxed(counters_.wait_ns, clock_.NowNs() - start_ns);
}

}  // namespace tetrion::learner
