#include "lib/episodes/episode_batch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::size_t kColumnBytes = 4 * sizeof(float) + 1;  // a step of the five columns

constexpr std::size_t kRowBytes = 8 + 5 * 4 + 2;  // an episode of the other columns

constexpr int kMaxMaskActions = 64;

// Rows of so many steps, or of so many bytes of observations, give pages back. In shorter ones
// huge pages and writing all of the padding are cheaper.
constexpr int kGiveBackSteps = 1000;
constexpr std::size_t kGiveBackRowBytes = std::size_t{512} << 10;
// Fewer bytes are zeroed by hand: a system call costs as much.
constexpr std::size_t kGiveBackBytes = std::size_t{16} << 10;
// A row keeps the pages of an episode so much longer than the one in it: the next one uses them.
constexpr std::size_t kKeepTimes = 4, kKeepBytes = std::size_t{1} << 20;

// The next `count` elements at `at`, which moves behind them.
template <typename T>
std::span<T> Carve(std::byte*& at, std::size_t count) {
  const std::span<T> column(reinterpret_cast<T*>(at), count);
  at += count * sizeof(T);
  return column;
}

}  // namespace

ZeroPages::ZeroPages(std::size_t bytes, Size size) : bytes_(std::max<std::size_t>(bytes, 1)) {
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(ExitCode::kTryAgain, "no memory for episodes: " + std::to_string(bytes_ >> 20) +
                                         " MiB; ask for fewer or shorter episodes");
  }
  // Where the kernel cannot, it is only slower or larger.
  static_cast<void>(madvise(pages, bytes_, size == Size::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
  data_ = static_cast<std::byte*>(pages);
}

ZeroPages::~ZeroPages() {
  munmap(data_, bytes_);
}

std::size_t ZeroPages::Clear(std::byte* at, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::size_t before = std::min((page - address % page) % page, bytes);
  const std::size_t whole = (bytes - before) / page * page;
  // Locked memory (mlockall) cannot be given back.
  if (whole < kGiveBackBytes || madvise(at + before, whole, MADV_DONTNEED) != 0) {
    std::memset(at, 0, bytes);
    return bytes;
  }
  std::memset(at, 0, before);
  std::memset(at + before + whole, 0, bytes - before - whole);
  return bytes - whole;
}

EpisodeBatch::EpisodeBatch(int capacity, int steps, std::size_t obs_bytes, int mask_actions)
    : capacity_(capacity),
      steps_(steps),
      obs_bytes_(obs_bytes),
      mask_bytes_(static_cast<std::size_t>(mask_actions)),
      gives_back_(steps >= kGiveBackSteps ||
                  static_cast<std::size_t>(steps) * obs_bytes >= kGiveBackRowBytes),
      observations_(At(capacity, 0) * obs_bytes,
                    gives_back_ ? ZeroPages::Size::kSmall : ZeroPages::Size::kHuge),
      final_observations_(static_cast<std::size_t>(capacity) * obs_bytes),
      columns_(At(capacity, 0) * kColumnBytes,
               gives_back_ ? ZeroPages::Size::kSmall : ZeroPages::Size::kHuge),
      masks_(At(capacity, 0) * mask_bytes_,
             gives_back_ ? ZeroPages::Size::kSmall : ZeroPages::Size::kHuge),
      rows_(static_cast<std::size_t>(capacity) * kRowBytes) {
  TETRION_CHECK(capacity > 0 && steps > 0 && obs_bytes > 0, "an empty batch");
  TETRION_CHECK(mask_actions >= 0 && mask_actions <= kMaxMaskActions, "masks have 64 bits");
  std::byte* at = rows_.data();
  std::size_t count = static_cast<std::size_t>(capacity);
  job_ids = Carve<std::int64_t>(at, count);
  lengths = Carve<std::int32_t>(at, count);
  returns = Carve<float>(at, count);
  lines = Carve<std::int32_t>(at, count);
  touched_ = Carve<int>(at, count);
  resident_ = Carve<int>(at, count);
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
  action_masks = {reinterpret_cast<std::uint8_t*>(masks_.data()), count * mask_bytes_};
}

void EpisodeBatch::SetMask(int row, int step, std::uint64_t mask) {
  std::uint8_t* const out = action_masks.data() + At(row, step) * mask_bytes_;
  for (std::size_t a = 0; a < mask_bytes_; ++a) out[a] = mask >> a & 1;
}

void EpisodeBatch::Touch(int row, int steps_begun) {
  const auto r = static_cast<std::size_t>(row);
  const int begun = std::min(steps_begun, steps_);
  touched_[r] = std::max(touched_[r], begun);
  resident_[r] = std::max(resident_[r], begun);
}

void EpisodeBatch::Pad(int row, int length) {
  const auto r = static_cast<std::size_t>(row);
  const int resident = std::max(resident_[r], length);
  const int dirty = std::max(touched_[r], length);
  const int keep = StepsToKeep(resident, length);
  std::size_t written = 0;
  if (length < std::min(dirty, keep)) written += WritePadding(row, length, std::min(dirty, keep));
  if (keep < std::max(dirty, resident)) written += GiveBack(row, keep, std::max(dirty, resident));
  std::memset(dones.data() + At(row, length), 1, static_cast<std::size_t>(dirty - length));
  written += static_cast<std::size_t>(dirty - length);
  resident_[r] = keep;
  touched_[r] = length;
  if (written > 0) padded_bytes_.fetch_add(written, std::memory_order_relaxed);
}

// Up to here a row with `resident` steps' pages is padded by hand, from here on its pages go back.
int EpisodeBatch::StepsToKeep(int resident, int length) const {
  if (!gives_back_) return steps_;
  const std::size_t kept_bytes = static_cast<std::size_t>(resident) * obs_bytes_;
  const std::size_t most = kKeepTimes * static_cast<std::size_t>(length) * obs_bytes_ + kKeepBytes;
  return kept_bytes <= most ? resident : length;
}

// Both make steps [first, end) zeros but for `dones`, and return the bytes they wrote.
std::size_t EpisodeBatch::WritePadding(int row, int first, int end) {
  const auto count = static_cast<std::size_t>(end - first);
  const std::size_t at = At(row, first);
  std::memset(Observation(row, first), 0, count * obs_bytes_);
  for (const std::span<float> column : {rewards, log_probs, values}) {
    std::memset(column.data() + at, 0, count * sizeof(float));
  }
  std::memset(actions.data() + at, 0, count * sizeof(std::int32_t));
  std::memset(masks_.data() + at * mask_bytes_, 0, count * mask_bytes_);
  return count * (obs_bytes_ + kColumnBytes - 1 + mask_bytes_);
}

std::size_t EpisodeBatch::GiveBack(int row, int first, int end) {
  const auto count = static_cast<std::size_t>(end - first);
  const std::size_t at = At(row, first);
  std::size_t written = observations_.Clear(Observation(row, first), count * obs_bytes_);
  const auto clear = [&](auto column) {
    written +=
        columns_.Clear(reinterpret_cast<std::byte*>(column.data() + at), count * sizeof(column[0]));
  };
  clear(rewards);
  clear(actions);
  clear(log_probs);
  clear(values);
  return written + masks_.Clear(masks_.data() + at * mask_bytes_, count * mask_bytes_);
}

void EpisodeBatch::Finish(int row, const EpisodeEnd& end) {
  TETRION_CHECK(end.length >= 0 && end.length <= steps_, "an episode longer than its row");
  const auto r = static_cast<std::size_t>(row);
  Pad(row, end.length);
  lengths[r] = end.length;
  terminated[r] = end.terminated ? 1 : 0;
  truncated[r] = end.truncated ? 1 : 0;
  returns[r] = end.episode_return;
  lines[r] = end.lines;
  job_ids[r] = static_cast<std::int64_t>(end.job);
}

void EpisodeBatch::CopyRow(int row, const EpisodeBatch& from, int from_row) {
  TETRION_CHECK(
      from.steps_ == steps_ && from.obs_bytes_ == obs_bytes_ && from.mask_bytes_ == mask_bytes_,
      "batches differ in shape");
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
  std::memcpy(masks_.data() + to_at * mask_bytes_, from.masks_.data() + from_at * mask_bytes_,
              length * mask_bytes_);
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
