#include "lib/wire/rows_codec.h"

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"
#include "lib/wire/decode_envelope.h"
#include "lib/wire/remote_path.h"
#include "proto/rows_generated.h"

namespace tetrion::wire {
namespace {

namespace fbs = rows_fbs;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

void Bound(const char* field, std::size_t have, std::size_t bound) {
  if (have <= bound) return;
  throw Error(ExitCode::kUsage, std::string("row message: ") + field + " has " +
                                    std::to_string(have) + ", at most " + std::to_string(bound) +
                                    " are possible");
}

auto Path(FlatBufferBuilder& fbb, const std::string& path) {
  Bound("ring path", path.size(), kMaxRingPathBytes);
  return fbb.CreateString(path);
}

auto Pack(FlatBufferBuilder& fbb, const OpenRows& m) {
  const auto path = Path(fbb, m.path);
  return fbs::CreateOpenRows(fbb, path, m.row_bytes, m.spec_hash, m.oldest);
}
auto Pack(FlatBufferBuilder& fbb, const RowBatch& m) {
  return fbs::CreateRowBatch(fbb, m.stream, m.first, m.count, static_cast<std::uint8_t>(m.packing));
}
auto Pack(FlatBufferBuilder& fbb, const CloseRows& m) {
  return fbs::CreateCloseRows(fbb, m.stream, m.end);
}
auto Pack(FlatBufferBuilder& fbb, const RowsPing& m) {
  return fbs::CreateRowsPing(fbb, m.number);
}
auto Pack(FlatBufferBuilder& fbb, const WeightsGet& m) {
  return fbs::CreateWeightsGet(fbb, m.version, m.chunk);
}
auto Pack(FlatBufferBuilder& fbb, const RowsOpened& m) {
  const auto path = Path(fbb, m.path);
  return fbs::CreateRowsOpened(fbb, path, m.stream, m.next, m.released, m.capacity);
}
auto Pack(FlatBufferBuilder& fbb, const OpenRefused& m) {
  const auto path = Path(fbb, m.path);
  const auto text = fbb.CreateString(CutText(m.text, kMaxTextBytes));
  return fbs::CreateOpenRefused(fbb, path, text, m.final);
}
auto Pack(FlatBufferBuilder& fbb, const RowsAck& m) {
  Bound("streams", m.streams.size(), kMaxStreams);
  std::vector<fbs::StreamAck> packed;
  packed.reserve(m.streams.size());
  for (const StreamAck& s : m.streams) {
    packed.emplace_back(s.stream, s.next, s.released, s.closed);
  }
  return fbs::CreateRowsAck(fbb, fbb.CreateVectorOfStructs(packed), m.weights_version, m.answered);
}
auto Pack(FlatBufferBuilder& fbb, const StreamUnknown& m) {
  return fbs::CreateStreamUnknown(fbb, m.stream);
}
auto Pack(FlatBufferBuilder& fbb, const WeightsChunk& m) {
  return fbs::CreateWeightsChunk(fbb, m.version, m.chunk, m.blob_bytes, m.hash);
}
auto Pack(FlatBufferBuilder& fbb, const WeightsGone& m) {
  return fbs::CreateWeightsGone(fbb, m.version, m.newest);
}
auto Pack(FlatBufferBuilder& fbb, const WeightsRefused& m) {
  return fbs::CreateWeightsRefused(fbb, m.version,
                                   fbb.CreateString(CutText(m.text, kMaxTextBytes)));
}

// What a verified message breaks, if anything.
struct Faults {
  bool bound = false;
  bool text = false;
};

std::string PathText(Faults& faults, const flatbuffers::String* path) {
  std::string text = path == nullptr ? std::string() : path->str();
  if (!IsRemoteRingPath(text)) faults.text = true;
  return text;
}

// Strings of any length are verified; only what fits is copied.
std::string FreeText(Faults& faults, const flatbuffers::String* text) {
  if (text == nullptr) return {};
  if (text->size() > kMaxTextBytes) {
    faults.bound = true;
    return {};
  }
  if (!IsPlainText(text->string_view())) faults.text = true;
  return text->str();
}

OpenRows Unpack(Faults& faults, const fbs::OpenRows& f) {
  return {PathText(faults, f.path()), f.row_bytes(), f.spec_hash(), f.oldest()};
}
RowBatch Unpack(Faults& faults, const fbs::RowBatch& f) {
  if (f.count() < 1 || f.packing() > static_cast<std::uint8_t>(RowsPacking::kZstd)) {
    faults.bound = true;
  }
  return {f.stream(), f.first(), f.count(), static_cast<RowsPacking>(f.packing())};
}
CloseRows Unpack(Faults&, const fbs::CloseRows& f) {
  return {f.stream(), f.end()};
}
RowsPing Unpack(Faults&, const fbs::RowsPing& f) {
  return {f.number()};
}
WeightsGet Unpack(Faults&, const fbs::WeightsGet& f) {
  return {f.version(), f.chunk()};
}
RowsOpened Unpack(Faults& faults, const fbs::RowsOpened& f) {
  return {PathText(faults, f.path()), f.stream(), f.next(), f.released(), f.capacity()};
}
OpenRefused Unpack(Faults& faults, const fbs::OpenRefused& f) {
  return {PathText(faults, f.path()), FreeText(faults, f.text()), f.final()};
}
RowsAck Unpack(Faults& faults, const fbs::RowsAck& f) {
  RowsAck m{{}, f.weights_version(), f.answered()};
  const std::size_t count = f.streams() == nullptr ? 0 : f.streams()->size();
  if (count > kMaxStreams) {
    faults.bound = true;
    return m;
  }
  m.streams.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    // The verifier of FlatBuffers 2.0.8 does not look at the alignment of a vector's elements.
    fbs::StreamAck s;
    std::memcpy(&s, f.streams()->Data() + i * sizeof(s), sizeof(s));
    m.streams.push_back({s.stream(), s.next(), s.released(), s.closed()});
  }
  return m;
}
StreamUnknown Unpack(Faults&, const fbs::StreamUnknown& f) {
  return {f.stream()};
}
WeightsChunk Unpack(Faults& faults, const fbs::WeightsChunk& f) {
  if (f.blob_bytes() > kMaxWeightsBytes) faults.bound = true;
  return {f.version(), f.chunk(), f.blob_bytes(), f.hash()};
}
WeightsGone Unpack(Faults&, const fbs::WeightsGone& f) {
  return {f.version(), f.newest()};
}
WeightsRefused Unpack(Faults& faults, const fbs::WeightsRefused& f) {
  return {f.version(), FreeText(faults, f.text())};
}

using Tables =
    std::tuple<fbs::OpenRows, fbs::RowBatch, fbs::CloseRows, fbs::RowsPing, fbs::WeightsGet,
               fbs::RowsOpened, fbs::OpenRefused, fbs::RowsAck, fbs::StreamUnknown,
               fbs::WeightsChunk, fbs::WeightsGone, fbs::WeightsRefused>;
static_assert(std::tuple_size_v<Tables> == std::variant_size_v<RowsMessage>);

// Unpacks the union's member of number Index + 1 into the variant's alternative of number Index.
template <std::size_t Index = 0>
DecodeStatus UnpackBody(const fbs::Envelope& envelope, RowsMessage& message) {
  if constexpr (Index == std::variant_size_v<RowsMessage>) {
    return DecodeStatus::kUnknownBody;
  } else {
    using Table = std::tuple_element_t<Index, Tables>;
    static_assert(static_cast<std::size_t>(fbs::BodyTraits<Table>::enum_value) == Index + 1);
    if (static_cast<std::size_t>(envelope.body_type()) != Index + 1) {
      return UnpackBody<Index + 1>(envelope, message);
    }
    if (envelope.body() == nullptr) return DecodeStatus::kUnknownBody;
    Faults faults;
    auto plain = Unpack(faults, *static_cast<const Table*>(envelope.body()));
    static_assert(std::is_same_v<decltype(plain), std::variant_alternative_t<Index, RowsMessage>>,
                  "the union's order differs from RowsMessage");
    message = std::move(plain);
    if (faults.bound) return DecodeStatus::kBoundExceeded;
    return faults.text ? DecodeStatus::kBadText : DecodeStatus::kOk;
  }
}

struct RowsProtocol {
  using Envelope = fbs::Envelope;
  static constexpr std::uint16_t kVersion = kRowsProtocolVersion;
  static constexpr std::size_t kMaxBytes = kMaxRowsEnvelopeBytes;
  static bool HasIdentifier(const void* data) { return fbs::EnvelopeBufferHasIdentifier(data); }
  static bool Verify(flatbuffers::Verifier& verifier) {
    return fbs::VerifyEnvelopeBuffer(verifier);
  }
  static const Envelope* Get(const void* data) { return fbs::GetEnvelope(data); }
  static DecodeStatus Unpack(const fbs::Envelope& envelope, RowsMessage& message) {
    return UnpackBody(envelope, message);
  }
};

}  // namespace

bool HasPayload(const RowsMessage& message) {
  return std::holds_alternative<RowBatch>(message) || std::holds_alternative<WeightsChunk>(message);
}

std::vector<std::byte> EncodeRows(const RowsMessage& message, const Identity& sender) {
  static_assert(std::variant_size_v<RowsMessage> == static_cast<std::size_t>(fbs::Body::MAX));
  FlatBufferBuilder fbb(256);
  const Offset<void> body =
      std::visit([&fbb](const auto& m) { return Pack(fbb, m).Union(); }, message);
  const auto type = static_cast<fbs::Body>(message.index() + 1);
  fbs::FinishEnvelopeBuffer(fbb, fbs::CreateEnvelope(fbb, kRowsProtocolVersion, type, body,
                                                     sender.run_id, sender.process));
  Bound("bytes", fbb.GetSize(), kMaxRowsEnvelopeBytes);
  const auto* begin = reinterpret_cast<const std::byte*>(fbb.GetBufferPointer());
  return {begin, begin + fbb.GetSize()};
}

RowsDecodeResult DecodeRows(std::span<const std::byte> bytes) {
  return DecodeEnvelope<RowsProtocol, RowsDecodeResult>(bytes);
}

std::string RowsWrongVersionText(std::uint16_t have_version) {
  return "peer speaks row protocol " + std::to_string(have_version) + ", this build needs " +
         std::to_string(kRowsProtocolVersion) + ": use the same Tetrion release on both sides";
}

}  // namespace tetrion::wire
