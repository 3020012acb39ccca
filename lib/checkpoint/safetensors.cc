#include "lib/checkpoint/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/json.h"
#include "lib/core/json_value.h"

namespace tetrion {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

// Where a tensor lies in the data part, read from the header but not yet believed.
struct Placed {
  std::uint64_t begin = 0, end = 0;
  TrainerState::Tensor tensor;
};

class Reader {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  SafetensorsFile Read(std::span<const std::byte> bytes) const;

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ExitCode::kConfig, origin_ + " is not a usable checkpoint: " + why);
  }

  std::uint64_t Unsigned(const JsonValue& value) const {
    std::uint64_t number = 0;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, number);
    if (value.kind != JsonValue::Kind::kNumber || error != std::errc{} || stop != end) {
      Refuse("its header has an unreadable number");
    }
    return number;
  }

  Placed ReadPlace(const std::string& name, const JsonValue& value, std::uint64_t data_bytes) const;
  std::map<std::string, std::string> ReadMetadata(const JsonValue& value) const;

  const std::string& origin_;
};

Placed Reader::ReadPlace(const std::string& name, const JsonValue& value,
                         std::uint64_t data_bytes) const {
  const JsonValue* dtype = value.Find("dtype");
  const JsonValue* shape = value.Find("shape");
  const JsonValue* offsets = value.Find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr || offsets->items.size() != 2 ||
      shape->kind != JsonValue::Kind::kArray) {
    Refuse("tensor " + name + " lacks dtype, shape or data_offsets");
  }
  if (dtype->text != "F32") Refuse("tensor " + name + " is of type " + dtype->text + ", not F32");
  if (shape->items.size() > kMaxDimensions) Refuse("tensor " + name + " has too many dimensions");
  Placed placed;
  placed.tensor.name = name;
  placed.begin = Unsigned(offsets->items[0]);
  placed.end = Unsigned(offsets->items[1]);
  if (placed.begin > placed.end || placed.end > data_bytes) {
    Refuse("tensor " + name + " lies outside the file; it may be truncated");
  }
  std::uint64_t floats = 1;
  for (const JsonValue& item : shape->items) {
    const std::uint64_t extent = Unsigned(item);
    // Bounding each product by the file's size also rules out overflow.
    if (extent > data_bytes || (extent > 0 && floats > data_bytes / extent)) {
      Refuse("tensor " + name + " claims more elements than the file holds");
    }
    floats *= extent;
    placed.tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (placed.end - placed.begin != floats * sizeof(float)) {
    Refuse("shape and data_offsets of tensor " + name + " disagree");
  }
  return placed;
}

std::map<std::string, std::string> Reader::ReadMetadata(const JsonValue& value) const {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, entry] : value.members) {
    if (entry.kind != JsonValue::Kind::kString) Refuse("its metadata holds something but strings");
    metadata[key] = entry.text;
  }
  return metadata;
}

SafetensorsFile Reader::Read(std::span<const std::byte> bytes) const {
  if (bytes.size() < kLengthBytes) Refuse("it has only " + std::to_string(bytes.size()) + " bytes");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - kLengthBytes) {
    Refuse("its header length is impossible; it is truncated or another kind of file");
  }
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                header_bytes);
  JsonValue root;
  if (!ParseJson(header, root) || root.kind != JsonValue::Kind::kObject) {
    Refuse("its header is not a JSON object");
  }
  if (root.members.size() > kMaxTensors) Refuse("it has too many tensors");
  SafetensorsFile file;
  std::vector<Placed> places;
  std::set<std::string> names;
  for (const auto& [name, value] : root.members) {
    if (!names.insert(name).second) Refuse("tensor " + name + " occurs twice");
    if (name == kMetadataKey) {
      file.metadata = ReadMetadata(value);
    } else {
      places.push_back(ReadPlace(name, value, data.size()));
    }
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (Placed& placed : places) {
    if (placed.begin != end) Refuse("its tensors overlap or leave a gap");
    end = placed.end;
    placed.tensor.data.resize((placed.end - placed.begin) / sizeof(float));
    if (!placed.tensor.data.empty()) {
      std::memcpy(placed.tensor.data.data(), data.data() + placed.begin, placed.end - placed.begin);
    }
    file.tensors.push_back(std::move(placed.tensor));
  }
  if (end != data.size()) Refuse("bytes follow its last tensor");
  return file;
}

std::string HeaderOf(std::span<const TrainerState::Tensor> tensors,
                     const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  header += JsonQuoted(std::string(kMetadataKey)) + ":{";
  const char* comma = "";
  for (const auto& [key, value] : metadata) {
    header += comma + JsonQuoted(key) + ":" + JsonQuoted(value);
    comma = ",";
  }
  header += "}";
  std::uint64_t offset = 0;
  for (const TrainerState::Tensor& tensor : tensors) {
    header += "," + JsonQuoted(tensor.name) + ":{\"dtype\":\"F32\",\"shape\":[";
    comma = "";
    for (std::int64_t extent : tensor.shape) {
      header += comma + std::to_string(extent);
      comma = ",";
    }
    const std::uint64_t end = offset + tensor.data.size() * sizeof(float);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  // Tensor data starts 8-byte aligned in the file.
  header.append((8 - header.size() % 8) % 8, ' ');
  return header;
}

}  // namespace

std::vector<std::byte> EncodeSafetensors(std::span<const TrainerState::Tensor> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  const std::string header = HeaderOf(tensors, metadata);
  TETRION_CHECK(header.size() <= kMaxHeaderBytes && tensors.size() < kMaxTensors,
                "our own reader must accept what we write");
  std::size_t data_bytes = 0;
  for (const TrainerState::Tensor& tensor : tensors) {
    std::int64_t floats = 1;
    for (std::int64_t extent : tensor.shape) floats *= extent;
    TETRION_CHECK(static_cast<std::size_t>(floats) == tensor.data.size(),
                  "shape must fit the data");
    data_bytes += tensor.data.size() * sizeof(float);
  }
  std::vector<std::byte> bytes(kLengthBytes + header.size() + data_bytes);
  const std::uint64_t header_bytes = header.size();
  std::memcpy(bytes.data(), &header_bytes, kLengthBytes);
  std::memcpy(bytes.data() + kLengthBytes, header.data(), header.size());
  std::size_t at = kLengthBytes + header.size();
  for (const TrainerState::Tensor& tensor : tensors) {
    if (tensor.data.empty()) continue;
    std::memcpy(bytes.data() + at, tensor.data.data(), tensor.data.size() * sizeof(float));
    at += tensor.data.size() * sizeof(float);
  }
  return bytes;
}

SafetensorsFile DecodeSafetensors(std::span<const std::byte> bytes, const std::string& origin) {
  return Reader(origin).Read(bytes);
}

}  // namespace tetrion
