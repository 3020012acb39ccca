#include "lib/collect/episode_batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::size_t kColumnBytes = 4 * sizeof(float) + 1;  // a step of the five columns

constexpr std::size_t kRowBytes = 8 + 4 * 4 + 2;  // an episode of the other columns

// The next `count` elements at `at`, which moves behind them.
template <typename T>
std::span<T> Carve(std::byte*& at, std::size_t count) {
  const std::span<T> column(reinterpret_cast<T*>(at), count);
  at += count * sizeof(T);
  return column;
}

}  // namespace

ZeroPages::ZeroPages(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(ExitCode::kTryAgain, "no memory for episodes: " + std::to_string(bytes_ >> 20) +
                                         " MiB; ask for fewer or shorter episodes");
  }
  // Fewer faults where the kernel can; without them it is only slower.
  static_cast<void>(madvise(pages, bytes_, MADV_HUGEPAGE));
  data_ = static_cast<std::byte*>(pages);
}

ZeroPages::~ZeroPages() {
  munmap(data_, bytes_);
}

EpisodeBatch::EpisodeBatch(int capacity, int steps, std::size_t obs_bytes)
    : capacity_(capacity),
      steps_(steps),
      obs_bytes_(obs_bytes),
      observations_(At(capacity, 0) * obs_bytes),
      final_observations_(static_cast<std::size_t>(capacity) * obs_bytes),
      columns_(At(capacity, 0) * kColumnBytes),
      rows_(static_cast<std::size_t>(capacity) * kRowBytes) {
  TETRION_CHECK(capacity > 0 && steps > 0 && obs_bytes > 0, "an empty batch");
  std::byte* at = rows_.data();
  std::size_t count = static_cast<std::size_t>(capacity);
  job_ids = Carve<std::int64_t>(at, count);
  lengths = Carve<std::int32_t>(at, count);
  returns = Carve<float>(at, count);
  lines = Carve<std::int32_t>(at, count);
  touched_ = Carve<int>(at, count);
  terminated = Carve<std::uint8_t>(at, count);
  truncated = Carve<std::uint8_t>(at, count);
  at = columns_.data();
  count = At(capacity, 0);
  rewards = Carve<float>(at, count);
  actions = Carve<std::int32_t>(at, count);
  log_probs = Carve<float>(at, count);
  values = Carve<float>(at, count);
  dones = Carve<std::uint8_t>(at, count);
  std::fill(dones.begin(), dones.end(), std::uint8_t{1});
}

void EpisodeBatch::Touch(int row, int steps_begun) {
  int& touched = touched_[static_cast<std::size_t>(row)];
  touched = std::max(touched, std::min(steps_begun, steps_));
}

void EpisodeBatch::Finish(int row, const EpisodeEnd& end) {
  TETRION_CHECK(end.length >= 0 && end.length <= steps_, "an episode longer than its row");
  const auto r = static_cast<std::size_t>(row);
  if (end.length < touched_[r]) {
    const std::size_t first = At(row, end.length);
    const auto count = static_cast<std::size_t>(touched_[r] - end.length);
    std::memset(Observation(row, end.length), 0, count * obs_bytes_);
    std::fill_n(rewards.begin() + static_cast<std::ptrdiff_t>(first), count, 0.0F);
    std::fill_n(actions.begin() + static_cast<std::ptrdiff_t>(first), count, 0);
    std::fill_n(log_probs.begin() + static_cast<std::ptrdiff_t>(first), count, 0.0F);
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first), count, 0.0F);
    std::memset(dones.data() + first, 1, count);
  }
  touched_[r] = end.length;
  lengths[r] = end.length;
  terminated[r] = end.terminated ? 1 : 0;
  truncated[r] = end.truncated ? 1 : 0;
  returns[r] = end.episode_return;
  lines[r] = end.lines;
  job_ids[r] = static_cast<std::int64_t>(end.job);
}

void EpisodeBatch::CopyRow(int row, const EpisodeBatch& from, int from_row) {
  TETRION_CHECK(from.steps_ == steps_ && from.obs_bytes_ == obs_bytes_, "batches differ in shape");
  const auto r = static_cast<std::size_t>(from_row);
  const auto length = static_cast<std::size_t>(from.lengths[r]);
  const std::size_t to_at = At(row, 0), from_at = At(from_row, 0);
  std::memcpy(Observation(row, 0), from.observations() + from_at * obs_bytes_, length * obs_bytes_);
  std::memcpy(FinalObservation(row), from.final_observations() + r * obs_bytes_, obs_bytes_);
  const auto copy = [&](auto to, auto column) {
    std::copy_n(column.begin() + static_cast<std::ptrdiff_t>(from_at), length,
                to.begin() + static_cast<std::ptrdiff_t>(to_at));
  };
  copy(rewards, from.rewards);
  copy(actions, from.actions);
  copy(log_probs, from.log_probs);
  copy(values, from.values);
  copy(dones, from.dones);
  Finish(row, {.job = static_cast<std::uint64_t>(from.job_ids[r]),
               .length = from.lengths[r],
               .terminated = from.terminated[r] != 0,
               .truncated = from.truncated[r] != 0,
               .episode_return = from.returns[r],
               .lines = from.lines[r]});
}

void EpisodeBatch::MarkDirty() {
  std::fill(touched_.begin(), touched_.end(), steps_);
}

}  // namespace tetrion
