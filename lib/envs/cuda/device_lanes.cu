#include "lib/envs/cuda/device_lanes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "lib/envs/cuda/account_kernels.cuh"
#include "lib/envs/cuda/device_game.h"
#include "lib/envs/cuda/lane_spans.h"

namespace tetrion {

using cuda::CopyPurpose;
using cuda::DeviceBuffer;
using cuda::DeviceSpan;
using cuda::PinnedBuffer;

namespace {

const DeviceLanesConfig& Checked(const DeviceLanesConfig& config) {
  const auto lanes = static_cast<std::uint32_t>(config.env.lanes);
  if (config.token_capacity < 1 || config.episode_capacity < lanes) {
    throw Error(ExitCode::kUsage,
                "device lanes need room for 1 token and for an episode a lane, not " +
                    std::to_string(config.token_capacity) + " and " +
                    std::to_string(config.episode_capacity));
  }
  TETRION_CHECK(
      config.block_threads % 32 == 0 && config.block_threads > 0 && config.block_threads <= 1024,
      "blocks are of whole warps");
  return config;
}

constexpr unsigned kDrainThreads = 256;

std::uint32_t PlayingLanes(const LaneTotals& totals) {
  return static_cast<std::uint32_t>(totals.begun - totals.given_back - totals.ended);
}

}  // namespace

// The columns of all lanes, and the host's ends of the copies.
struct DeviceLanes::Memory {
  Memory(const cuda::Device& on, const DeviceLanesConfig& config, DeviceRecord record);

  // [count] values of zeros, enqueued.
  template <typename T>
  DeviceSpan<T> Column(std::size_t count, cuda::Stream& stream) {
    DeviceBuffer& buffer =
        columns.emplace_back(device, count * sizeof(T), "columns of device lanes");
    SetBytes(buffer.data<T>(), 0, buffer.bytes(), stream);
    return DeviceSpan<T>(buffer.data<T>(), count);
  }

  const cuda::Device device;
  const std::size_t lanes;
  const unsigned blocks;
  std::vector<DeviceBuffer> columns;
  LaneSpans spans;
  std::unique_ptr<DeviceGame> game;
  Token* tokens = nullptr;  // device memory of spans.tokens
  const std::uint32_t drain_episodes;
  // A drain: the account, then [drain_episodes]. Device memory, and what the host sees of it.
  DeviceBuffer drained;
  PinnedBuffer drained_host;
  PinnedBuffer tokens_host;  // [token_capacity] as spans.tokens
  PinnedBuffer cut_host;     // [M] Token
  PinnedBuffer totals_host;
  cuda::Event drain_passed;
};

DeviceLanes::Memory::Memory(const cuda::Device& on, const DeviceLanesConfig& config,
                            DeviceRecord record)
    : device(on),
      lanes(static_cast<std::size_t>(config.env.lanes)),
      blocks(cuda::BlocksFor(lanes, config.block_threads)),
      game(MakeDeviceGame(on, config, record)),
      drain_episodes(config.drain_episodes > 0
                         ? std::min(config.drain_episodes, config.episode_capacity)
                         : config.episode_capacity),
      drained(on, sizeof(LaneTotals) + drain_episodes * sizeof(EndedEpisode), "ended episodes"),
      drained_host(drained.bytes(), "ended episodes"),
      tokens_host(config.token_capacity * sizeof(Token), "tokens"),
      cut_host(lanes * sizeof(Token), "tokens given back"),
      totals_host(sizeof(LaneTotals), "totals of device lanes"),
      drain_passed(on) {
  cuda::Stream stream(on, "device lanes' start");
  const DeviceSpan<Token> queue = Column<Token>(config.token_capacity, stream);
  tokens = queue.data();
  spans = {.totals = Column<LaneTotals>(1, stream),
           .tokens = DeviceSpan<const Token>(queue.data(), queue.size()),
           .needs = Column<std::uint32_t>(kNeedRows * blocks, stream),
           .ended = Column<EndedEpisode>(config.episode_capacity, stream),
           .cut = Column<Token>(lanes, stream),
           .phase = Column<LanePhase>(lanes, stream),
           .token_ids = Column<std::uint64_t>(lanes, stream),
           .attempts = Column<std::uint32_t>(lanes, stream),
           .max_steps = Column<std::uint32_t>(lanes, stream),
           .steps = Column<std::uint32_t>(lanes, stream),
           .lines = Column<std::uint32_t>(lanes, stream),
           .returns = Column<double>(lanes, stream),
           .episode_ids = Column<std::int32_t>(lanes, stream)};
  Launch(stream, BeginLanes, blocks, config.block_threads, 0, spans);
  stream.Synchronize();
}

DeviceLanes::DeviceLanes(const cuda::Device& device, const DeviceLanesConfig& config)
    : config_(config) {
  DeviceShow show = DeviceShowOf(config);
  Checked(config);
  spec_ = std::move(show.spec);
  memory_ = std::make_unique<Memory>(device, config, show.record);
}

DeviceLanes::~DeviceLanes() = default;

RowSpec DeviceLanes::row_spec() const {
  return {.record_bytes = spec_.obs.record_bytes,
          .lanes = static_cast<std::uint32_t>(config_.env.lanes),
          .has_mask = spec_.action.has_mask};
}

const std::uint64_t* DeviceLanes::row() const {
  return &memory_->spans.totals.data()->row;
}
const std::uint64_t* DeviceLanes::token_ids() const {
  return memory_->spans.token_ids.data();
}
const std::uint32_t* DeviceLanes::steps() const {
  return memory_->spans.steps.data();
}

void DeviceLanes::Enqueue(const RowSlots& slots, StepKind kind, cuda::Stream& stream) {
  TETRION_CHECK(slots.lanes == memory_->lanes && slots.record_bytes == spec_.obs.record_bytes &&
                    (slots.mask != nullptr) == spec_.action.has_mask && slots.capacity_rows > 1,
                "these are slots of other rows");
  memory_->game->Step(memory_->spans, slots, kind, memory_->blocks, config_.block_threads, stream);
}

void DeviceLanes::StepRow(const RowSlots& slots, cuda::Stream& stream) {
  Enqueue(slots, StepKind::kPlay, stream);
}

void DeviceLanes::Advance(cuda::Stream& stream) {
  Launch(stream, AdvanceRow, 1, 1, 0, memory_->spans.totals);
}

// A slot of the host's copy is written again only after its token has begun, so long after its copy
// has passed.
std::size_t DeviceLanes::AddTokens(std::span<const Token> tokens, cuda::Stream& stream) {
  const std::uint64_t capacity = config_.token_capacity;
  const auto count = static_cast<std::size_t>(
      std::min<std::uint64_t>(tokens.size(), capacity - (added_ - begun_)));
  if (count == 0) return 0;
  Token* host = memory_->tokens_host.data<Token>();
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t slot = added_ % capacity;
    const auto run =
        static_cast<std::size_t>(std::min<std::uint64_t>(count - done, capacity - slot));
    for (std::size_t i = 0; i < run; ++i) {
      TETRION_CHECK(tokens[done + i].max_steps > 0, "a token must allow at least one step");
      host[slot + i] = tokens[done + i];
    }
    CopyToDevice(memory_->tokens + slot, host + slot, run * sizeof(Token), CopyPurpose::kAccount,
                 stream);
    done += run;
    added_ += run;
  }
  Launch(stream, NoteAdded, 1, 1, 0, memory_->spans.totals, added_);
  return count;
}

void DeviceLanes::EnqueueDrain(cuda::Stream& stream) {
  TETRION_CHECK(!draining_, "one drain at a time");
  const DeviceBuffer& drained = memory_->drained;
  auto* episodes = reinterpret_cast<EndedEpisode*>(drained.data<std::byte>() + sizeof(LaneTotals));
  Launch(stream, CollectDrain, 1, kDrainThreads, 0, memory_->spans,
         DeviceSpan<LaneTotals>(drained.data<LaneTotals>(), 1),
         DeviceSpan<EndedEpisode>(episodes, memory_->drain_episodes));
  CopyToHost(memory_->drained_host.data<std::byte>(), drained.data<std::byte>(), drained.bytes(),
             CopyPurpose::kAccount, stream);
  stream.Record(memory_->drain_passed);
  draining_ = true;
}

bool DeviceLanes::TakeDrained(DeviceDrain& out) {
  if (!draining_ || !memory_->drain_passed.Passed()) return false;
  draining_ = false;
  const std::byte* bytes = memory_->drained_host.data<std::byte>();
  LaneTotals totals;
  std::memcpy(&totals, bytes, sizeof(totals));
  const std::uint64_t left = totals.ended - totals.drained;
  out.episodes.resize(std::min<std::uint64_t>(left, memory_->drain_episodes));
  out.episodes_left = left - out.episodes.size();
  std::copy_n(reinterpret_cast<const EndedEpisode*>(bytes + sizeof(totals)), out.episodes.size(),
              out.episodes.begin());
  // Atomics gave places in the list, in any order of lanes.
  std::sort(out.episodes.begin(), out.episodes.end(),
            [](const EndedEpisode& one, const EndedEpisode& other) {
              return one.last_row != other.last_row ? one.last_row < other.last_row
                                                    : one.result.lane < other.result.lane;
            });
  begun_ = std::max(begun_, totals.begun);
  out.tokens_left = totals.added - totals.begun;
  out.rows = totals.row;
  out.env_steps = totals.env_steps;
  out.playing_lanes = PlayingLanes(totals);
  if (totals.bad_actions > 0) {
    throw Error(ExitCode::kInternal,
                std::to_string(totals.bad_actions) + " actions of device lanes were out of range");
  }
  return true;
}

CutTokens DeviceLanes::CutLanes(const RowSlots& slots, cuda::Stream& stream) {
  const LaneSpans& spans = memory_->spans;
  LaneTotals* totals = memory_->totals_host.data<LaneTotals>();
  CopyToHost(totals, spans.totals.data(), sizeof(LaneTotals), CopyPurpose::kAccount, stream);
  stream.Synchronize();
  TETRION_CHECK(totals->begins_of_row == 0 && totals->steps_of_row == 0,
                "lanes are cut between Advance and StepRow");
  CutTokens out;
  if (PlayingLanes(*totals) > 0) {
    Enqueue(slots, StepKind::kCut, stream);
    Advance(stream);
    const Token* cut = memory_->cut_host.data<Token>();
    CopyToHost(memory_->cut_host.data<Token>(), spans.cut.data(), memory_->cut_host.bytes(),
               CopyPurpose::kAccount, stream);
    stream.Synchronize();
    std::copy_if(cut, cut + memory_->lanes, std::back_inserter(out.tokens),
                 [](const Token& token) { return token.max_steps > 0; });
    out.has_row = true;
  }
  out.begun = out.tokens.size();
  for (std::uint64_t number = totals->begun; number < added_; ++number) {
    out.tokens.push_back(memory_->tokens_host.data<Token>()[number % config_.token_capacity]);
  }
  Launch(stream, NoteGivenBack, 1, 1, 0, spans.totals, std::uint64_t{out.tokens.size()});
  begun_ = added_;
  return out;
}

}  // namespace tetrion
