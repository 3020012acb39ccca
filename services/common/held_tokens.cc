#include "services/common/held_tokens.h"

#include <algorithm>
#include <limits>

namespace tetrion {
namespace {

std::uint64_t FirstOf(std::uint64_t token_id) {
  return token_id - token_id % wire::kRangeTokens;
}

bool TestBit(const wire::Bitmap& bitmap, std::size_t i) {
  return i / 8 < bitmap.size() && ((bitmap[i / 8] >> (i % 8)) & 1U) != 0;
}

void SetBit(wire::Bitmap& bitmap, std::size_t i) {
  bitmap[i / 8] = static_cast<std::uint8_t>(bitmap[i / 8] | (1U << (i % 8)));
}

void ClearBit(wire::Bitmap& bitmap, std::size_t i) {
  bitmap[i / 8] = static_cast<std::uint8_t>(bitmap[i / 8] & ~(1U << (i % 8)));
}

}  // namespace

void HeldTokens::Add(const wire::GrantedRange& granted) {
  const std::uint64_t first = granted.first_id;
  if (const auto known = ranges_.find(first); known != ranges_.end()) {
    if (known->second.attempt >= granted.attempt) return;  // a repeated grant
    Drop(known);
  }
  Range range = {.attempt = granted.attempt, .bitmap = wire::Bitmap(wire::kRangeBitmapBytes)};
  const std::uint32_t count = std::min(granted.count, wire::kRangeTokens);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (TestBit(granted.done, i)) continue;
    SetBit(range.bitmap, i);
    ++range.held;
    pool_.push_back({.id = first + i, .attempt = granted.attempt, .max_steps = granted.max_steps});
  }
  if (range.held == 0) return;
  held_ += range.held;
  ranges_.emplace(first, std::move(range));
}

void HeldTokens::TakeFromPool(std::size_t count, std::vector<Token>& out) {
  const auto n = static_cast<std::ptrdiff_t>(std::min(count, pool_.size()));
  out.insert(out.end(), pool_.begin(), pool_.begin() + n);
  pool_.erase(pool_.begin(), pool_.begin() + n);
}

std::vector<Token> HeldTokens::TakePool() {
  std::vector<Token> out;
  TakeFromPool(pool_.size(), out);
  return out;
}

bool HeldTokens::Holds(std::uint64_t token_id, std::uint32_t attempt) const {
  const auto found = ranges_.find(FirstOf(token_id));
  return found != ranges_.end() && found->second.attempt == attempt &&
         TestBit(found->second.bitmap, token_id - found->first);
}

void HeldTokens::Settle(std::uint64_t token_id, std::uint32_t attempt) {
  if (!Holds(token_id, attempt)) return;
  const auto found = ranges_.find(FirstOf(token_id));
  ClearBit(found->second.bitmap, token_id - found->first);
  --held_;
  if (--found->second.held == 0) ranges_.erase(found);
}

void HeldTokens::Drop(std::map<std::uint64_t, Range>::iterator range) {
  const std::uint64_t first = range->first;
  std::erase_if(pool_, [first](const Token& token) { return FirstOf(token.id) == first; });
  held_ -= range->second.held;
  ranges_.erase(range);
}

HeldTokens::Listed HeldTokens::ListHeld() const {
  Listed listed = {.ranges = {}, .below = std::numeric_limits<std::uint64_t>::max()};
  for (const auto& [first, range] : ranges_) {
    if (listed.ranges.size() == wire::kMaxHeldRanges) {
      listed.below = first;
      break;
    }
    listed.ranges.push_back({.first_id = first, .attempt = range.attempt, .held = range.bitmap});
  }
  return listed;
}

std::vector<wire::HeldRange> HeldTokens::Group(std::span<const Token> tokens) {
  std::map<std::uint64_t, wire::HeldRange> groups;
  for (const Token& token : tokens) {
    const std::uint64_t first = FirstOf(token.id);
    wire::HeldRange& group = groups[first];
    group.first_id = first;
    group.attempt = token.attempt;
    group.held.resize(wire::kRangeBitmapBytes);
    SetBit(group.held, token.id - first);
  }
  std::vector<wire::HeldRange> out;
  for (auto& [first, group] : groups) out.push_back(std::move(group));
  return out;
}

void HeldTokens::Clear() {
  ranges_.clear();
  pool_.clear();
  held_ = 0;
}

}  // namespace tetrion
