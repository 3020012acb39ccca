#include <cmath>
#include <cstring>

#include "lib/envs/cartpole_rules.h"
#include "lib/envs/views.h"

namespace tetrion {
namespace {

void ExpandPlanesRow(const TetrisRecord& record, int queue_size, float* out) {
  std::memset(out, 0, static_cast<std::size_t>(PlanesLayout::Floats(queue_size)) * sizeof(float));
  for (int r = 0; r < kTetrisRows; ++r) {
    const unsigned cells = FieldRow(record, r);
    float* field = out + PlanesLayout::kField + r * kTetrisColumns;
    for (unsigned c = 0; c < kTetrisColumns; ++c) field[c] = static_cast<float>(cells >> c & 1U);
  }
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t rows = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  for (int i = 0; i < 4; ++i) {
    const unsigned cells = static_cast<unsigned>(rows >> (16 * i + kTetrisFieldShift)) & 0x3FFU;
    if (cells == 0 || piece.y + i >= kTetrisRows) continue;
    float* active = out + PlanesLayout::kActive + (piece.y + i) * kTetrisColumns;
    for (unsigned c = 0; c < kTetrisColumns; ++c) active[c] = static_cast<float>(cells >> c & 1U);
  }
  out[PlanesLayout::kActiveId + piece.id] = 1.0F;
  out[PlanesLayout::kRotation + piece.rotation] = 1.0F;
  out[PlanesLayout::kHolder + HolderId(record)] = 1.0F;
  out[PlanesLayout::kSwapped] = HasSwapped(record) ? 1.0F : 0.0F;
  for (int slot = 0; slot < queue_size && slot < QueueSize(record); ++slot) {
    out[PlanesLayout::kQueue + 7 * slot + QueueSlot(record, slot)] = 1.0F;
  }
}

}  // namespace

void ExpandPlanes(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * static_cast<std::int64_t>(sizeof(record)), sizeof(record));
    ExpandPlanesRow(Sanitized(record), queue_size, out + i * PlanesLayout::Floats(queue_size));
  }
}

void ExpandVector(const std::byte* records, std::int64_t n, int /*queue_size*/, float* out) {
  std::memcpy(out, records, static_cast<std::size_t>(n) * sizeof(CartPoleRecord));
}

const char* CheckCartPoleRecords(const std::byte* records, std::int64_t n) {
  // The track ends at 2.4 m and the pole falls at 0.2 rad: nothing becomes nearly as fast. A float
  // that is merely finite could still overflow in the network.
  constexpr float kMost = 1000.0F;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  bool good = true;
  for (std::int64_t at = 0; at < n * static_cast<std::int64_t>(sizeof(CartPoleRecord));
       at += kBytes) {
    float value;
    std::memcpy(&value, records + at, sizeof value);
    good &= std::fabs(value) <= kMost;  // false for NaN
  }
  return good ? nullptr : "an observation is not finite or out of all bounds";
}

}  // namespace tetrion
