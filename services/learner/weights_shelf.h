#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/core/clock.h"
#include "lib/weights/weights_slot.h"
#include "lib/wire/rows_messages.h"

namespace tetrion::learner {

// The weights that actors of other hosts download: the newest published ones, and each version that
// a process is downloading, until it asks for another or stops asking. Copied out of the weights
// slots, so that publishing waits for nothing here. Rows thread only.
class WeightsShelf {
 public:
  // How often a newer version is looked for: each costs a copy of the weights.
  static constexpr std::int64_t kRefreshNs = 100 * kNanosPerMilli;
  // A process that has not asked for as long downloads no longer.
  static constexpr std::int64_t kForgetNs = 10 * kNanosPerSecond;

  explicit WeightsShelf(WeightsSlotReader reader, const Clock& clock = MonotonicClock::Get());

  // Takes the newest version, when it is time to; forgets who stopped asking. Bounded work.
  void Refresh();
  // 0 before the first.
  std::uint32_t newest() const { return newest_ ? newest_->version : 0; }

  // What answers a request: a chunk, which `payload` holds until the next Refresh, or that the
  // version is gone. Nothing for a chunk beyond the end. From now on the version, or the one that
  // is named in its stead, is kept for `process`: over a slow network a newer one is always out
  // before the next request comes.
  struct Answer {
    wire::RowsMessage message;
    std::span<const std::byte> payload;
  };
  std::optional<Answer> Get(std::uint64_t process, const wire::WeightsGet& get);

  // Versions held now, the newest included.
  std::size_t held() const;

 private:
  struct Blob {
    std::uint32_t version = 0;
    std::uint64_t hash = 0;
    std::vector<std::byte> bytes;
  };
  struct Download {
    std::shared_ptr<const Blob> blob;
    std::int64_t asked_ns = 0;
  };

  WeightsSlotReader reader_;
  const Clock& clock_;
  std::int64_t next_refresh_ns_ = 0;
  std::shared_ptr<const Blob> newest_;
  std::vector<std::byte> spare_;                 // read into
  std::map<std::uint64_t, Download> downloads_;  // by process
};

}  // namespace tetrion::learner
