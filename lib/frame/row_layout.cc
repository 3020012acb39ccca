#include "lib/frame/row_layout.h"

#include "lib/core/align.h"
#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxRowBytes = std::size_t{1} << 30;

}  // namespace

RowLayout::RowLayout(const RowSpec& row_spec) : spec(row_spec) {
  TETRION_CHECK(spec.lanes > 0 && spec.record_bytes > 0, "a row has lanes and a record");
  const std::size_t lanes = spec.lanes;
  std::size_t end = 0;
  const auto place = [&end](std::size_t bytes) {
    const std::size_t at = AlignUp(end, kColumnAlignBytes);
    end = at + bytes;
    return at;
  };
  header = place(sizeof(RowHeader));
  record = place(lanes * spec.record_bytes);
  action = place(lanes * sizeof(std::int32_t));
  log_prob = place(lanes * sizeof(float));
  mask = place(spec.has_mask ? lanes * sizeof(std::uint64_t) : 0);
  reward = place(lanes * sizeof(float));
  flags = place(lanes * sizeof(std::uint8_t));
  cont = place(lanes * sizeof(float));
  episode_id = place(lanes * sizeof(std::int32_t));
  row_bytes = AlignUp(end, kColumnAlignBytes);
  TETRION_CHECK(row_bytes <= kMaxRowBytes, "a row must stay below 1 GiB: fewer lanes");
}

std::uint64_t RowLayout::Hash() const {
  // FNV-1a over what decides the offsets.
  const std::uint64_t words[] = {kRowLayoutVersion, spec.record_bytes, spec.lanes,
                                 spec.has_mask ? 1U : 0U, row_bytes};
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint64_t word : words) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ ((word >> (8 * byte)) & 0xff)) * 0x100000001b3ULL;
    }
  }
  return hash;
}

}  // namespace tetrion
