#include <cstring>

#include "lib/envs/views/plane_at.h"
#include "lib/envs/views/views.h"

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
  for (int i = 0; i < 4; ++i) {
    const unsigned cells = ActiveCells(piece, piece.y + i);
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

void ExpandPlaneBytes(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  const std::int64_t elements = n * PlanesLayout::Floats(queue_size);
  for (std::int64_t i = 0; i < elements; ++i) out[i] = static_cast<float>(records[i]);
}

}  // namespace tetrion
