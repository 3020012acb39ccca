#include "lib/frame/row_check.h"

#include <cmath>

namespace tetrion {
namespace {

// CheckRow only reads, but RowView points at mutable columns.
RowView ViewOf(const RowLayout& layout, const std::byte* row) {
  return RowView(layout, const_cast<std::byte*>(row));
}

}  // namespace

const char* CheckRow(const RowLayout& layout, const std::byte* row, std::uint64_t expected_row,
                     std::int32_t action_count, CheckRecordsFn check) {
  const RowView view = ViewOf(layout, row);
  if (view.header->row != expected_row) return "row number does not follow its predecessor";
  bool actions_ok = true, floats_ok = true, flags_ok = true;
  for (std::size_t lane = 0; lane < layout.spec.lanes; ++lane) {
    const std::uint8_t flags = view.flags[lane];
    const bool last = (flags & kIsLast) != 0;
    actions_ok &= view.action[lane] >= 0 && view.action[lane] < action_count;
    floats_ok &= std::isfinite(view.reward[lane]) && std::isfinite(view.log_prob[lane]);
    flags_ok &= flags < 16 && (last || (flags & (kTerminated | kTruncated)) == 0);
    flags_ok &= view.cont[lane] == ((flags & kTerminated) != 0 ? 0.0F : 1.0F);
  }
  if (!actions_ok) return "action out of range";
  if (!floats_ok) return "reward or log-probability not finite";
  if (!flags_ok) return "flags or cont contradict each other";
  return check == nullptr ? nullptr : check(view.record, layout.spec.lanes);
}

const char* CheckSeen(const SeenColumns& seen, std::size_t lanes, std::int32_t action_count,
                      CheckRecordsFn check) {
  const std::uint64_t actions =
      action_count < 64 ? (std::uint64_t{1} << action_count) - 1 : ~std::uint64_t{0};
  for (std::size_t lane = 0; seen.masks != nullptr && lane < lanes; ++lane) {
    if ((seen.flags[lane] & kIsLast) != 0) continue;
    if (seen.masks[lane] == 0) return "a lane that plays on has no legal action";
    if ((seen.masks[lane] & ~actions) != 0) return "a mask names an action that there is not";
  }
  return check == nullptr ? nullptr : check(seen.records, static_cast<std::int64_t>(lanes));
}

const char* CheckRowPair(const RowLayout& layout, const std::byte* row, const std::byte* next_row) {
  const RowView view = ViewOf(layout, row);
  const RowView next = ViewOf(layout, next_row);
  for (std::size_t lane = 0; lane < layout.spec.lanes; ++lane) {
    const bool first = (next.flags[lane] & kIsFirst) != 0;
    if (first != (next.episode_id[lane] != view.episode_id[lane])) {
      return "is_first and episode_id do not move together";
    }
    if (first != ((view.flags[lane] & kIsLast) != 0)) return "is_last and is_first do not pair up";
    if (view.cont[lane] != 0.0F && view.cont[lane] != 1.0F) return "cont is neither 0 nor 1";
  }
  return nullptr;
}

}  // namespace tetrion
