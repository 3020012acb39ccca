#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"
#include "lib/wire/codec.h"
#include "proto/control_generated.h"

namespace tetrion::wire {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using FbString = Offset<flatbuffers::String>;
template <typename T>
using FbVector = Offset<flatbuffers::Vector<T>>;

[[noreturn]] void FailBound(const char* field, std::size_t have, std::size_t bound) {
  throw Error(ExitCode::kUsage, std::string("control message: ") + field + " has " +
                                    std::to_string(have) + ", at most " + std::to_string(bound) +
                                    " are possible");
}

void Bound(const char* field, std::size_t have, std::size_t bound) {
  if (have > bound) FailBound(field, have, bound);
}

FbString Text(FlatBufferBuilder& fbb, const char* field, const std::string& text,
              std::size_t bound) {
  Bound(field, text.size(), bound);
  return fbb.CreateString(text);
}

// A missing bitmap means no bit.
fbs::Bits256 Bits(const char* field, const Bitmap& bitmap) {
  std::array<std::uint64_t, 4> words{};
  if (!bitmap.empty()) {
    if (bitmap.size() != kRangeBitmapBytes) FailBound(field, bitmap.size(), kRangeBitmapBytes);
    std::memcpy(words.data(), bitmap.data(), kRangeBitmapBytes);
  }
  return {words[0], words[1], words[2], words[3]};
}

FbVector<const fbs::HeldRange*> Held(FlatBufferBuilder& fbb, const std::vector<HeldRange>& held,
                                     std::size_t bound) {
  Bound("held ranges", held.size(), bound);
  std::vector<fbs::HeldRange> packed;
  packed.reserve(held.size());
  for (const HeldRange& range : held) {
    packed.emplace_back(range.first_id, Bits("held bitmap", range.held), range.attempt);
  }
  return fbb.CreateVectorOfStructs(packed);
}

struct PackedRows {
  FbString endpoint;
  FbString key;
};

// Of Register, Registered and HeartbeatAck.
template <typename M>
PackedRows Rows(FlatBufferBuilder& fbb, const M& m) {
  return {Text(fbb, "rows endpoint", m.rows_endpoint, kMaxEndpointBytes),
          Text(fbb, "rows key", m.rows_key, kMaxNameBytes)};
}

struct PackedRings {
  FbVector<FbString> paths;
  FbVector<const fbs::Ring*> rings;
};

PackedRings Rings(FlatBufferBuilder& fbb, const std::vector<RingInfo>& rings) {
  Bound("rings", rings.size(), kMaxRings);
  std::vector<FbString> paths;
  std::vector<fbs::Ring> packed;
  for (const RingInfo& ring : rings) {
    paths.push_back(Text(fbb, "ring path", ring.path, kMaxRingPathBytes));
    packed.emplace_back(ring.session, ring.worker, ring.slot);
  }
  return {fbb.CreateVector(paths), fbb.CreateVectorOfStructs(packed)};
}

auto Pack(FlatBufferBuilder& fbb, const Register& m) {
  const auto name = Text(fbb, "name", m.name, kMaxNameBytes);
  const auto revision = Text(fbb, "revision", m.revision, kMaxNameBytes);
  const auto held = Held(fbb, m.held, kMaxHeldRanges);
  const PackedRings rings = Rings(fbb, m.rings);
  Bound("given settings", m.given.size(), kMaxGiven);
  std::vector<FbString> keys, values;
  for (const GivenSetting& given : m.given) {
    keys.push_back(Text(fbb, "setting key", given.key, kMaxNameBytes));
    values.push_back(Text(fbb, "setting value", given.value, kMaxValueBytes));
  }
  const auto key_vector = fbb.CreateVector(keys);
  const auto value_vector = fbb.CreateVector(values);
  const auto http = Text(fbb, "http endpoint", m.http_endpoint, kMaxEndpointBytes);
  const auto shm_dir = Text(fbb, "shm-dir", m.shm_dir, kMaxFolderBytes);
  const PackedRows rows = Rows(fbb, m);
  return fbs::CreateRegister(fbb, static_cast<std::uint8_t>(m.role), name, revision,
                             m.previous_session, held, m.workers, rings.paths, rings.rings,
                             key_vector, value_vector, http, shm_dir, m.held_below, rows.endpoint,
                             rows.key, m.registration);
}

auto Pack(FlatBufferBuilder& fbb, const Registered& m) {
  const auto run = Text(fbb, "run name", m.run, kMaxEndpointBytes);
  const auto folder = Text(fbb, "run folder", m.run_folder, kMaxFolderBytes);
  const auto config = Text(fbb, "run configuration", m.run_config, kMaxConfigBytes);
  const auto shm_dir = Text(fbb, "shm-dir", m.shm_dir, kMaxFolderBytes);
  Bound("slots", m.slots.size(), kMaxRings);
  const auto slots = fbb.CreateVector(m.slots);
  const PackedRows rows = Rows(fbb, m);
  return fbs::CreateRegistered(fbb, m.session, m.epoch, run, m.run_id, folder, config, shm_dir,
                               slots, m.version_first, m.version_limit, m.heartbeat_ms,
                               m.session_lease_ms, rows.endpoint, rows.key);
}

auto Pack(FlatBufferBuilder& fbb, const Refused& m) {
  const auto text = fbb.CreateString(CutText(m.text, kMaxTextBytes));
  return fbs::CreateRefused(fbb, static_cast<std::uint8_t>(m.reason), text);
}

auto Pack(FlatBufferBuilder& fbb, const GrantRequest& m) {
  return fbs::CreateGrantRequest(fbb, m.session, m.request, m.ranges);
}

auto Pack(FlatBufferBuilder& fbb, const Grant& m) {
  Bound("granted ranges", m.ranges.size(), kMaxRanges);
  std::vector<fbs::GrantedRange> packed;
  packed.reserve(m.ranges.size());
  for (const GrantedRange& range : m.ranges) {
    packed.emplace_back(range.first_id, Bits("done bitmap", range.done), range.count, range.attempt,
                        range.max_steps);
  }
  return fbs::CreateGrant(fbb, m.session, m.request, fbb.CreateVectorOfStructs(packed));
}

auto Pack(FlatBufferBuilder& fbb, const ReportBatch& m) {
  static_assert(sizeof(fbs::EpisodeReport) == sizeof(EpisodeReport));
  Bound("reports", m.episodes.size(), kMaxReports);
  fbs::EpisodeReport* packed = nullptr;
  const auto episodes =
      fbb.CreateUninitializedVectorOfStructs<fbs::EpisodeReport>(m.episodes.size(), &packed);
  for (const EpisodeReport& e : m.episodes) {
    *packed++ = fbs::EpisodeReport(e.token_id, e.attempt, e.length_steps, e.lines, e.policy_version,
                                   e.episode_return, e.lane, e.worker);
  }
  return fbs::CreateReportBatch(fbb, m.session, m.batch, episodes, m.env_steps);
}

auto Pack(FlatBufferBuilder& fbb, const ReportAck& m) {
  return fbs::CreateReportAck(fbb, m.session, m.batch, m.accepted, m.duplicates, m.refused);
}

auto Pack(FlatBufferBuilder& fbb, const Abandon& m) {
  const auto reason = Text(fbb, "reason", m.reason, kMaxNameBytes);
  return fbs::CreateAbandon(fbb, m.session, m.request, reason, Held(fbb, m.tokens, kMaxRanges));
}

auto Pack(FlatBufferBuilder& fbb, const AbandonAck& m) {
  return fbs::CreateAbandonAck(fbb, m.session, m.request);
}

auto Pack(FlatBufferBuilder& fbb, const Heartbeat& m) {
  const auto phase = Text(fbb, "phase", m.phase, kMaxNameBytes);
  Bound("stats", m.stats.size(), kMaxStats);
  std::vector<FbString> names;
  std::vector<double> values;
  for (const Stat& stat : m.stats) {
    names.push_back(Text(fbb, "stat name", stat.name, kMaxNameBytes));
    values.push_back(stat.value);
  }
  const auto name_vector = fbb.CreateVector(names);
  const auto value_vector = fbb.CreateVector(values);
  return fbs::CreateHeartbeat(fbb, m.session, phase, m.env_steps, m.rings_revision,
                              m.policy_version, m.rows_ingested, name_vector, value_vector,
                              m.region_held, m.region_owner);
}

auto Pack(FlatBufferBuilder& fbb, const HeartbeatAck& m) {
  const PackedRows rows = Rows(fbb, m);
  return fbs::CreateHeartbeatAck(fbb, m.session, m.epoch, m.drain, m.version_limit, m.episodes,
                                 m.mean_return, m.mean_lines, rows.endpoint, rows.key);
}

auto Pack(FlatBufferBuilder& fbb, const RingList& m) {
  const PackedRings rings = Rings(fbb, m.rings);
  std::vector<std::uint64_t> owners;
  for (const RingInfo& ring : m.rings) owners.push_back(ring.owner);
  return fbs::CreateRingList(fbb, m.session, m.revision, rings.paths, rings.rings,
                             fbb.CreateVector(owners));
}

auto Pack(FlatBufferBuilder& fbb, const RingsReady& m) {
  const PackedRings rings = Rings(fbb, m.rings);
  return fbs::CreateRingsReady(fbb, m.session, rings.paths, rings.rings);
}

auto Pack(FlatBufferBuilder& fbb, const RingsAck& m) {
  return fbs::CreateRingsAck(fbb, m.session);
}

auto Pack(FlatBufferBuilder& fbb, const RingGone& m) {
  const auto path = Text(fbb, "ring path", m.path, kMaxRingPathBytes);
  const auto reason = fbb.CreateString(CutText(m.reason, kMaxReasonBytes));
  return fbs::CreateRingGone(fbb, m.session, path, static_cast<std::uint8_t>(m.end), reason,
                             m.owner);
}

auto Pack(FlatBufferBuilder& fbb, const Goodbye& m) {
  return fbs::CreateGoodbye(fbb, m.session, m.env_steps);
}

auto Pack(FlatBufferBuilder& fbb, const GoodbyeAck& m) {
  return fbs::CreateGoodbyeAck(fbb, m.session);
}

auto Pack(FlatBufferBuilder& fbb, const Fenced& m) {
  return fbs::CreateFenced(fbb, m.session);
}

}  // namespace

std::vector<std::byte> Encode(const Message& message, const Identity& sender) {
  // The union's members are numbered from 1 in the order of Message; codec_decode.cc asserts it.
  static_assert(std::variant_size_v<Message> == static_cast<std::size_t>(fbs::Body::MAX));
  FlatBufferBuilder fbb(1024);
  const Offset<void> body =
      std::visit([&fbb](const auto& m) { return Pack(fbb, m).Union(); }, message);
  const auto type = static_cast<fbs::Body>(message.index() + 1);
  fbs::FinishEnvelopeBuffer(
      fbb, fbs::CreateEnvelope(fbb, kProtocolVersion, type, body, sender.run_id, sender.process));
  Bound("bytes", fbb.GetSize(), kMaxMessageBytes);
  const auto* begin = reinterpret_cast<const std::byte*>(fbb.GetBufferPointer());
  return {begin, begin + fbb.GetSize()};
}

}  // namespace tetrion::wire
