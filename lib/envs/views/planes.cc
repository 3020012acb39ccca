#include <cstring>

#include "lib/envs/views/planes_bits.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

constexpr int kWordBits = 32;

void ExpandPlanesRow(const TetrisRecord& record, int queue_size, float* out) {
  std::uint32_t words[kPlanesWords];
  MakePlanesBits(record, queue_size, words);
  const auto floats = static_cast<int>(PlanesLayout::Floats(queue_size));
  for (int word = 0; word < floats / kWordBits; ++word) {
    for (int bit = 0; bit < kWordBits; ++bit) {
      out[word * kWordBits + bit] = static_cast<float>(words[word] >> bit & 1U);
    }
  }
  for (int i = floats / kWordBits * kWordBits; i < floats; ++i) {
    out[i] = static_cast<float>(words[i / kWordBits] >> (i % kWordBits) & 1U);
  }
}

}  // namespace

void ExpandPlanes(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * static_cast<std::int64_t>(sizeof(record)), sizeof(record));
    ExpandPlanesRow(record, queue_size, out + i * PlanesLayout::Floats(queue_size));
  }
}

void ExpandPlaneBytes(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  const std::int64_t elements = n * PlanesLayout::Floats(queue_size);
  for (std::int64_t i = 0; i < elements; ++i) out[i] = static_cast<float>(records[i]);
}

}  // namespace tetrion
