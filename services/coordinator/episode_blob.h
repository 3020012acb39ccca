#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/wire/messages.h"

namespace tetrion::coordinator {

// The episodes of one report as tetrion.db has them in reports.episodes; reports.count says how
// many. Little-endian. A blob of 32 bytes an episode is an array of wire::EpisodeReport; more than
// wire::kMaxReports episodes always are one. Any other has columns, which take fewer bytes
// (CartPole's a third): every byte is written twice, to the log and from there to the file.
//
//   offset  bytes            what
//   0       8                width of each column in bytes: 0, 1, 2, 4 or 8, at most its field's
//   8       32               base: a wire::EpisodeReport of each field's least value
//   40      count x width    first column: each episode's first field less that of the base
//   ...                      the other columns, in the order of the fields
//
// All fields are taken as integers without sign, episode_return by its bits; sums are modulo the
// field's size. Read by python/tetrion/run.py and tests/support/check_account.py, too. Pure.

// Replaces what is in `blob`.
void EncodeEpisodes(std::span<const wire::EpisodeReport> episodes, std::vector<std::byte>& blob);
// Replaces what is in `episodes`. False, with none, where the blob does not hold `count` episodes.
[[nodiscard]] bool DecodeEpisodes(std::span<const std::byte> blob, std::uint64_t count,
                                  std::vector<wire::EpisodeReport>& episodes);

}  // namespace tetrion::coordinator
