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
static_assert(offsetof(Report, token_id) == 0);
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

// A report as one vector of words or half words: each field but the token's id is one of them.
using Words [[gnu::vector_size(sizeof(Report))]] = std::uint32_t;
using HalfWords [[gnu::vector_size(sizeof(Report))]] = std::uint16_t;

template <typename Parts>
struct Extremes {
  Parts least, most;
  explicit Extremes(const Report& report) : least(Load<Parts>(&report)), most(least) {}
  void Add(const Report& report) {
    const auto parts = Load<Parts>(&report);
    least = parts < least ? parts : least;
    most = parts > most ? parts : most;
  }
};

// The least value of each field goes into `base`, the width of its column into `widths`.
void Measure(std::span<const Report> episodes, Report& base,
             std::array<std::uint8_t, kFields.size()>& widths) {
  Extremes<std::uint64_t> ids(episodes[0]);  // a report begins with its token's id
  Extremes<Words> words(episodes[0]);
  Extremes<HalfWords> halves(episodes[0]);
  for (const Report& episode : episodes) {
    ids.Add(episode);
    words.Add(episode);
    halves.Add(episode);
  }
  const auto note = [&](std::size_t i, const auto& extremes) {
    WithInteger(kFields[i].bytes, [&](auto value) {
      using Value = decltype(value);
      const std::size_t at = kFields[i].offset;
      const auto low = Load<Value>(reinterpret_cast<const std::byte*>(&extremes.least) + at);
      const auto high = Load<Value>(reinterpret_cast<const std::byte*>(&extremes.most) + at);
      std::memcpy(reinterpret_cast<std::byte*>(&base) + at, &low, sizeof(low));
      widths[i] = static_cast<std::uint8_t>(WidthOf(static_cast<Value>(high - low)));
    });
  };
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].bytes == sizeof(std::uint64_t)) note(i, ids);
    if (kFields[i].bytes == sizeof(std::uint32_t)) note(i, words);
    if (kFields[i].bytes == sizeof(std::uint16_t)) note(i, halves);
  }
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
  Measure(episodes, base, widths);
  std::size_t bytes = kHeaderBytes;
  for (const std::uint8_t width : widths) bytes += width * episodes.size();
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
