#include "services/coordinator/episode_blob.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tetrion::coordinator {
namespace {

using Report = wire::EpisodeReport;

static_assert(std::endian::native == std::endian::little, "blobs are copied as they are");

struct Field {
  std::size_t offset, bytes;
};
constexpr std::array<Field, 8> kFields = {{{offsetof(Report, token_id), 8},
                                           {offsetof(Report, attempt), 4},
                                           {offsetof(Report, length_steps), 4},
                                           {offsetof(Report, lines), 4},
                                           {offsetof(Report, policy_version), 4},
                                           {offsetof(Report, episode_return), 4},
                                           {offsetof(Report, lane), 2},
                                           {offsetof(Report, worker), 2}}};
static_assert(kFields.back().offset + kFields.back().bytes == sizeof(Report));
constexpr std::size_t kHeaderBytes = kFields.size() + sizeof(Report);

// Calls `use` with a zero of the integer of so many bytes.
template <typename Use>
void WithInteger(std::size_t bytes, Use&& use) {
  switch (bytes) {
    case 1:
      return use(std::uint8_t{0});
    case 2:
      return use(std::uint16_t{0});
    case 4:
      return use(std::uint32_t{0});
    case 8:
      return use(std::uint64_t{0});
    default:
      return;  // a column of no bytes
  }
}

template <typename Value>
Value Load(const void* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename Value>
Value Load(const Report& episode, const Field& field) {
  return Load<Value>(reinterpret_cast<const std::byte*>(&episode) + field.offset);
}

std::size_t WidthOf(std::uint64_t most) {
  if (most == 0) return 0;
  return std::bit_ceil((static_cast<std::size_t>(std::bit_width(most)) + 7) / 8);
}

// The least value of a field goes into `base`; returns the width of its column.
template <typename Value>
std::size_t Measure(std::span<const Report> episodes, const Field& field, Report& base) {
  Value least = Load<Value>(episodes[0], field), most = least;
  for (const Report& episode : episodes) {
    const auto value = Load<Value>(episode, field);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  std::memcpy(reinterpret_cast<std::byte*>(&base) + field.offset, &least, sizeof(least));
  return WidthOf(static_cast<Value>(most - least));
}

template <typename Value, typename Narrow>
void PutColumn(std::span<const Report> episodes, const Field& field, const Report& base,
               std::byte* out) {
  const auto least = Load<Value>(base, field);
  for (const Report& episode : episodes) {
    const auto difference = static_cast<Narrow>(Load<Value>(episode, field) - least);
    std::memcpy(out, &difference, sizeof(difference));
    out += sizeof(difference);
  }
}

template <typename Value, typename Narrow>
void TakeColumn(const std::byte* in, const Field& field, const Report& base,
                std::span<Report> episodes) {
  const auto least = Load<Value>(base, field);
  for (Report& episode : episodes) {
    const auto value = static_cast<Value>(least + Load<Narrow>(in));
    std::memcpy(reinterpret_cast<std::byte*>(&episode) + field.offset, &value, sizeof(value));
    in += sizeof(Narrow);
  }
}

// Whether the blob has its header and columns of these widths for `count` episodes, and no more.
bool HasColumns(std::span<const std::byte> blob, std::uint64_t count) {
  if (count == 0 || count > wire::kMaxReports || blob.size() < kHeaderBytes) return false;
  std::size_t bytes = kHeaderBytes;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const auto width = static_cast<std::size_t>(blob[i]);
    if (width > kFields[i].bytes || (width != 0 && !std::has_single_bit(width))) return false;
    bytes += width * count;
  }
  return blob.size() == bytes;
}

}  // namespace

void EncodeEpisodes(std::span<const Report> episodes, std::vector<std::byte>& blob) {
  blob.resize(episodes.size_bytes());
  if (episodes.empty()) return;
  std::array<std::uint8_t, kFields.size()> widths{};
  Report base;
  std::size_t bytes = kHeaderBytes;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    WithInteger(kFields[i].bytes, [&](auto value) {
      widths[i] = static_cast<std::uint8_t>(Measure<decltype(value)>(episodes, kFields[i], base));
    });
    bytes += widths[i] * episodes.size();
  }
  // Readers refuse columns of more: a header alone could make any number of episodes.
  if (bytes >= blob.size() || episodes.size() > wire::kMaxReports) {
    std::memcpy(blob.data(), episodes.data(), blob.size());
    return;
  }
  blob.resize(bytes);
  std::memcpy(blob.data(), widths.data(), widths.size());
  std::memcpy(blob.data() + widths.size(), &base, sizeof(base));
  std::byte* out = blob.data() + kHeaderBytes;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    WithInteger(kFields[i].bytes, [&](auto value) {
      WithInteger(widths[i], [&](auto narrow) {
        PutColumn<decltype(value), decltype(narrow)>(episodes, kFields[i], base, out);
      });
    });
    out += widths[i] * episodes.size();
  }
}

bool DecodeEpisodes(std::span<const std::byte> blob, std::uint64_t count,
                    std::vector<Report>& episodes) {
  episodes.clear();
  if (blob.size() % sizeof(Report) == 0 && blob.size() / sizeof(Report) == count) {
    episodes.resize(count);
    if (count > 0) std::memcpy(episodes.data(), blob.data(), blob.size());
    return true;
  }
  if (!HasColumns(blob, count)) return false;
  const auto base = Load<Report>(blob.data() + kFields.size());
  episodes.assign(count, base);
  const std::byte* in = blob.data() + kHeaderBytes;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const auto width = static_cast<std::size_t>(blob[i]);
    WithInteger(kFields[i].bytes, [&](auto value) {
      WithInteger(width, [&](auto narrow) {
        TakeColumn<decltype(value), decltype(narrow)>(in, kFields[i], base, episodes);
      });
    });
    in += width * count;
  }
  return true;
}

}  // namespace tetrion::coordinator
