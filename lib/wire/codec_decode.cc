#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lib/core/text_forms.h"
#include "lib/wire/codec.h"
#include "lib/wire/decode_envelope.h"
#include "proto/control_generated.h"

namespace tetrion::wire {
namespace {

template <typename T>
using FbVector = flatbuffers::Vector<T>;
using FbStrings = FbVector<flatbuffers::Offset<flatbuffers::String>>;

// Element `i` of a verified vector, wherever it lies: the verifier of FlatBuffers 2.0.8 does not
// look at the alignment of a vector's elements.
template <typename T, typename Element>
T CopyAt(const FbVector<Element>* vector, std::size_t i) {
  T copy;
  std::memcpy(&copy, vector->Data() + i * sizeof(T), sizeof(T));
  return copy;
}

// Copies verified fields out under the bounds of messages.h. The first violation sets `ok` to false
// and everything after it is empty; counts are bounded before anything is allocated.
class Reader {
 public:
  bool ok = true;
  bool texts_ok = true;  // every string has its form

  std::string Text(const flatbuffers::String* text, std::size_t bound) {
    return Formed(text, bound, IsPlainText);
  }
  std::string NameText(const flatbuffers::String* text) {
    return Formed(text, kMaxNameBytes, IsName);
  }
  // Several lines.
  std::string Lines(const flatbuffers::String* text, std::size_t bound) {
    return Formed(text, bound, [](std::string_view lines) {
      while (!lines.empty()) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        if (!IsPlainText(lines.substr(0, end))) return false;
        lines.remove_prefix(std::min(end + 1, lines.size()));
      }
      return true;
    });
  }
  // Empty: none.
  std::string HostPort(const flatbuffers::String* text) {
    return Formed(text, kMaxEndpointBytes,
                  [](std::string_view t) { return t.empty() || IsHostPort(t); });
  }
  template <typename T>
  std::size_t Count(const FbVector<T>* vector, std::size_t bound) {
    if (vector == nullptr || !Fits(vector->size(), bound)) return 0;
    return vector->size();
  }
  std::vector<HeldRange> Held(const FbVector<const fbs::HeldRange*>* vector, std::size_t bound) {
    std::vector<HeldRange> held;
    const std::size_t count = Count(vector, bound);
    held.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto range = CopyAt<fbs::HeldRange>(vector, i);
      held.push_back({range.first_id(), range.attempt(), Bits(range.held())});
    }
    return held;
  }
  std::vector<RingInfo> Rings(const FbStrings* paths, const FbVector<const fbs::Ring*>* vector) {
    std::vector<RingInfo> rings;
    const std::size_t count = Count(vector, kMaxRings);
    if (!SameCount(Count(paths, kMaxRings), count)) return rings;
    rings.reserve(count);
    for (std::uint32_t i = 0; i < count && ok; ++i) {
      const auto ring = CopyAt<fbs::Ring>(vector, i);
      rings.push_back(
          {Text(paths->Get(i), kMaxRingPathBytes), ring.worker(), ring.slot(), ring.session()});
    }
    return rings;
  }
  // Absent in lists of coordinators that tell none.
  void Owners(const FbVector<std::uint64_t>* vector, std::vector<RingInfo>& rings) {
    if (vector == nullptr || !SameCount(vector->size(), rings.size())) return;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      rings[i].owner = CopyAt<std::uint64_t>(vector, i);
    }
  }
  bool SameCount(std::size_t a, std::size_t b) {
    if (a != b) ok = false;
    return ok;
  }
  static Bitmap Bits(const fbs::Bits256& bits) {
    const std::uint64_t words[4] = {bits.w0(), bits.w1(), bits.w2(), bits.w3()};
    Bitmap bitmap(kRangeBitmapBytes);
    std::memcpy(bitmap.data(), words, kRangeBitmapBytes);
    return bitmap;
  }

 private:
  template <typename Form>
  std::string Formed(const flatbuffers::String* text, std::size_t bound, Form form) {
    const std::string_view view = text == nullptr ? std::string_view() : text->string_view();
    if (!Fits(view.size(), bound)) return {};
    if (!form(view)) texts_ok = false;
    return texts_ok ? std::string(view) : std::string();
  }
  bool Fits(std::size_t have, std::size_t bound) {
    if (have > bound) ok = false;
    return ok;
  }
};

Register Unpack(Reader& r, const fbs::Register& f) {
  Register m;
  m.role = static_cast<Role>(f.role());
  if (m.role != Role::kActor && m.role != Role::kLearner) r.ok = false;
  m.name = r.NameText(f.name());
  m.revision = r.Text(f.revision(), kMaxNameBytes);
  m.previous_session = f.previous_session();
  m.held = r.Held(f.held(), kMaxHeldRanges);
  m.held_below = f.held_below();
  m.registration = f.registration();
  m.workers = f.workers();
  if (m.workers > kMaxRings) r.ok = false;
  m.rings = r.Rings(f.ring_paths(), f.rings());
  const std::size_t given = r.Count(f.given_keys(), kMaxGiven);
  if (r.SameCount(given, r.Count(f.given_values(), kMaxGiven))) {
    for (std::uint32_t i = 0; i < given && r.ok; ++i) {
      m.given.push_back(
          {r.NameText(f.given_keys()->Get(i)), r.Text(f.given_values()->Get(i), kMaxValueBytes)});
    }
  }
  m.http_endpoint = r.HostPort(f.http_endpoint());
  m.shm_dir = r.Text(f.shm_dir(), kMaxFolderBytes);
  m.rows_endpoint = r.HostPort(f.rows_endpoint());
  m.rows_key = r.Text(f.rows_key(), kMaxNameBytes);
  return m;
}

Registered Unpack(Reader& r, const fbs::Registered& f) {
  Registered m;
  m.session = f.session();
  m.epoch = f.epoch();
  m.run = r.Text(f.run(), kMaxEndpointBytes);
  m.run_id = f.run_id();
  m.run_folder = r.Text(f.run_folder(), kMaxFolderBytes);
  m.run_config = r.Lines(f.run_config(), kMaxConfigBytes);
  m.shm_dir = r.Text(f.shm_dir(), kMaxFolderBytes);
  const std::size_t slots = r.Count(f.slots(), kMaxRings);
  for (std::uint32_t i = 0; i < slots; ++i) m.slots.push_back(f.slots()->Get(i));
  m.version_first = f.version_first();
  m.version_limit = f.version_limit();
  m.heartbeat_ms = f.heartbeat_ms();
  m.session_lease_ms = f.session_lease_ms();
  m.rows_endpoint = r.HostPort(f.rows_endpoint());
  m.rows_key = r.Text(f.rows_key(), kMaxNameBytes);
  return m;
}

Refused Unpack(Reader& r, const fbs::Refused& f) {
  return {static_cast<RefuseReason>(f.reason()), r.Lines(f.text(), kMaxTextBytes)};
}

GrantRequest Unpack(Reader& r, const fbs::GrantRequest& f) {
  if (f.ranges() < 1 || f.ranges() > kMaxRanges) r.ok = false;
  return {f.session(), f.request(), f.ranges()};
}

Grant Unpack(Reader& r, const fbs::Grant& f) {
  Grant m{f.session(), f.request(), {}};
  const std::size_t count = r.Count(f.ranges(), kMaxRanges);
  m.ranges.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto range = CopyAt<fbs::GrantedRange>(f.ranges(), i);
    if (range.count() < 1 || range.count() > kRangeTokens) r.ok = false;
    const fbs::Bits256& done = range.done();
    const bool any = (done.w0() | done.w1() | done.w2() | done.w3()) != 0;
    m.ranges.push_back({range.first_id(), range.count(), range.attempt(), range.max_steps(),
                        any ? Reader::Bits(done) : Bitmap{}});
  }
  return m;
}

ReportBatch Unpack(Reader& r, const fbs::ReportBatch& f) {
  ReportBatch m{f.session(), f.batch(), {}, f.env_steps()};
  const std::size_t count = r.Count(f.episodes(), kMaxReports);
  static_assert(sizeof(fbs::EpisodeReport) == sizeof(EpisodeReport));  // and of the same order
  m.episodes.resize(count);
  if (count > 0) {
    std::memcpy(m.episodes.data(), f.episodes()->Data(), count * sizeof(EpisodeReport));
  }
  return m;
}

ReportAck Unpack(Reader&, const fbs::ReportAck& f) {
  return {f.session(), f.batch(), f.accepted(), f.duplicates(), f.refused()};
}

Abandon Unpack(Reader& r, const fbs::Abandon& f) {
  return {f.session(), f.request(), r.Text(f.reason(), kMaxNameBytes),
          r.Held(f.tokens(), kMaxRanges)};
}

AbandonAck Unpack(Reader&, const fbs::AbandonAck& f) {
  return {f.session(), f.request()};
}

Heartbeat Unpack(Reader& r, const fbs::Heartbeat& f) {
  Heartbeat m;
  m.session = f.session();
  m.phase = r.Text(f.phase(), kMaxNameBytes);
  m.env_steps = f.env_steps();
  m.rings_revision = f.rings_revision();
  m.policy_version = f.policy_version();
  m.rows_ingested = f.rows_ingested();
  const std::size_t count = r.Count(f.stat_names(), kMaxStats);
  if (r.SameCount(count, r.Count(f.stat_values(), kMaxStats))) {
    for (std::uint32_t i = 0; i < count && r.ok; ++i) {
      m.stats.push_back({r.NameText(f.stat_names()->Get(i)), CopyAt<double>(f.stat_values(), i)});
    }
  }
  m.region_held = f.region_held();
  m.region_owner = f.region_owner();
  return m;
}

HeartbeatAck Unpack(Reader& r, const fbs::HeartbeatAck& f) {
  return {f.session(),
          f.epoch(),
          f.drain(),
          f.version_limit(),
          f.episodes(),
          f.mean_return(),
          f.mean_lines(),
          r.HostPort(f.rows_endpoint()),
          r.Text(f.rows_key(), kMaxNameBytes)};
}

RingList Unpack(Reader& r, const fbs::RingList& f) {
  RingList m{f.session(), f.revision(), r.Rings(f.ring_paths(), f.rings())};
  r.Owners(f.owners(), m.rings);
  return m;
}

RingsReady Unpack(Reader& r, const fbs::RingsReady& f) {
  return {f.session(), r.Rings(f.ring_paths(), f.rings())};
}

RingsAck Unpack(Reader&, const fbs::RingsAck& f) {
  return {f.session()};
}

RingGone Unpack(Reader& r, const fbs::RingGone& f) {
  RingGone m{f.session(), r.Text(f.path(), kMaxRingPathBytes), static_cast<RingEnd>(f.end()),
             r.Text(f.reason(), kMaxReasonBytes), f.owner()};
  if (m.end < RingEnd::kClosed || m.end > RingEnd::kQuarantined) r.ok = false;
  return m;
}

Goodbye Unpack(Reader&, const fbs::Goodbye& f) {
  return {f.session(), f.env_steps()};
}

GoodbyeAck Unpack(Reader&, const fbs::GoodbyeAck& f) {
  return {f.session()};
}

Fenced Unpack(Reader&, const fbs::Fenced& f) {
  return {f.session()};
}

// Unpacks the union's member of number Index + 1 into the variant's alternative of number Index.
template <std::size_t Index = 0>
DecodeStatus UnpackBody(const fbs::Envelope& envelope, Message& message) {
  if constexpr (Index == std::variant_size_v<Message>) {
    return DecodeStatus::kUnknownBody;
  } else {
    if (static_cast<std::size_t>(envelope.body_type()) != Index + 1) {
      return UnpackBody<Index + 1>(envelope, message);
    }
    if (envelope.body() == nullptr) return DecodeStatus::kUnknownBody;
    Reader reader;
    const auto unpack = [&]<typename T>(const T* body) {
      static_assert(static_cast<std::size_t>(fbs::BodyTraits<T>::enum_value) == Index + 1);
      using Plain = decltype(Unpack(reader, *body));
      static_assert(std::is_same_v<Plain, std::variant_alternative_t<Index, Message>>,
                    "the union's order differs from Message");
      message = Unpack(reader, *body);
    };
    // One conversion per type: the table type is found by the order of the union.
    using Tables =
        std::tuple<fbs::Register, fbs::Registered, fbs::Refused, fbs::GrantRequest, fbs::Grant,
                   fbs::ReportBatch, fbs::ReportAck, fbs::Abandon, fbs::AbandonAck, fbs::Heartbeat,
                   fbs::HeartbeatAck, fbs::RingList, fbs::RingsReady, fbs::RingsAck, fbs::RingGone,
                   fbs::Goodbye, fbs::GoodbyeAck, fbs::Fenced>;
    unpack(static_cast<const std::tuple_element_t<Index, Tables>*>(envelope.body()));
    if (!reader.ok) return DecodeStatus::kBoundExceeded;
    return reader.texts_ok ? DecodeStatus::kOk : DecodeStatus::kBadText;
  }
}

struct ControlProtocol {
  using Envelope = fbs::Envelope;
  static constexpr std::uint16_t kVersion = kProtocolVersion;
  static constexpr std::size_t kMaxBytes = kMaxMessageBytes;
  static bool HasIdentifier(const void* data) { return fbs::EnvelopeBufferHasIdentifier(data); }
  static bool Verify(flatbuffers::Verifier& verifier) {
    return fbs::VerifyEnvelopeBuffer(verifier);
  }
  static const Envelope* Get(const void* data) { return fbs::GetEnvelope(data); }
  static DecodeStatus Unpack(const fbs::Envelope& envelope, Message& message) {
    return UnpackBody(envelope, message);
  }
};

}  // namespace

const char* Name(DecodeStatus status) {
  switch (status) {
    case DecodeStatus::kOk:
      return "ok";
    case DecodeStatus::kTooShort:
      return "too_short";
    case DecodeStatus::kTooLong:
      return "too_long";
    case DecodeStatus::kBadIdentifier:
      return "bad_identifier";
    case DecodeStatus::kUnverified:
      return "unverified";
    case DecodeStatus::kWrongVersion:
      return "wrong_version";
    case DecodeStatus::kUnknownBody:
      return "unknown_body";
    case DecodeStatus::kBoundExceeded:
      return "bound_exceeded";
    case DecodeStatus::kBadText:
      return "bad_text";
  }
  return "unknown";
}

bool Answerable(DecodeStatus status) {
  return status == DecodeStatus::kWrongVersion || status == DecodeStatus::kUnknownBody ||
         status == DecodeStatus::kBoundExceeded || status == DecodeStatus::kBadText;
}

DecodeResult Decode(std::span<const std::byte> bytes) {
  return DecodeEnvelope<ControlProtocol, DecodeResult>(bytes);
}

std::string WrongVersionText(std::uint16_t have_version) {
  return "peer speaks control protocol " + std::to_string(have_version) + ", this build needs " +
         std::to_string(kProtocolVersion) + ": use the same Tetrion release on both sides";
}

}  // namespace tetrion::wire
