#include "lib/wire/codec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/core/error.h"
#include "tests/lib/wire/messages_for_test.h"
#include "tests/lib/wire/mutated_for_test.h"

namespace tetrion::wire {
namespace {

// Messages have no operator==; equal encodings of equal kinds mean equal fields, and the fields
// that an encoding could lose are named in the tests below.
std::vector<std::byte> Again(const std::vector<std::byte>& bytes) {
  const DecodeResult decoded = Decode(bytes);
  EXPECT_EQ(decoded.status, DecodeStatus::kOk);
  return Encode(decoded.message);
}

TEST(CodecTest, EveryKindComesBackAsItWent) {
  const std::vector<Message> messages = OneOfEach();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(messages[i].index(), i);
    const auto bytes = Encode(messages[i]);
    EXPECT_EQ(Decode(bytes).message.index(), i);
    EXPECT_EQ(Again(bytes), bytes);
  }
}

TEST(CodecTest, FieldsKeepTheirPlaces) {
  const auto all = OneOfEach();
  const auto registration = std::get<Register>(Decode(Encode(all[0])).message);
  EXPECT_EQ(registration.role, Role::kLearner);
  EXPECT_EQ(registration.revision, "abc123");
  EXPECT_EQ(registration.previous_session, 7U);
  EXPECT_EQ(registration.held[0].held, std::get<Register>(all[0]).held[0].held);
  EXPECT_EQ(registration.rings[1].path, "/dev/shm/tetrion-0/ring.b");
  EXPECT_EQ(registration.rings[1].slot, -1);
  EXPECT_EQ(registration.given[1].value, "cartpole");
  EXPECT_EQ(registration.held_below, 2048U);
  EXPECT_EQ(registration.registration, 3U);
  EXPECT_EQ(registration.rows_endpoint, "learner.example:9001");
  EXPECT_EQ(registration.rows_key.size(), 40U);
  const auto registered = std::get<Registered>(Decode(Encode(all[1])).message);
  EXPECT_EQ(registered.rows_endpoint, "[::1]:9001");
  EXPECT_EQ(registered.rows_key, "a key");
  const auto grant = std::get<Grant>(Decode(Encode(all[4])).message);
  EXPECT_EQ(grant.ranges[0].attempt, 2U);
  EXPECT_EQ(grant.ranges[0].max_steps, 500U);
  EXPECT_TRUE(grant.ranges[1].done.empty());
  const auto batch = std::get<ReportBatch>(Decode(Encode(all[5])).message);
  EXPECT_EQ(batch.episodes[1].lane, 63);
  EXPECT_EQ(batch.env_steps, 44U);
  const auto beat = std::get<Heartbeat>(Decode(Encode(all[9])).message);
  EXPECT_EQ(beat.stats[1].name, "updates");
  EXPECT_EQ(beat.stats[1].value, -2);
  EXPECT_TRUE(beat.region_held);
  EXPECT_EQ(beat.region_owner, 77U);
  const auto ack = std::get<HeartbeatAck>(Decode(Encode(all[10])).message);
  EXPECT_EQ(ack.rows_endpoint, "10.0.0.7:9001");
  EXPECT_EQ(ack.rows_key, "another key");
  const auto gone = std::get<RingGone>(Decode(Encode(all[14])).message);
  EXPECT_EQ(gone.end, RingEnd::kQuarantined);
  EXPECT_EQ(gone.reason, "row 3: NaN");
  EXPECT_EQ(gone.owner, 6U);
  const auto list = std::get<RingList>(Decode(Encode(all[11])).message);
  EXPECT_EQ(list.rings[0].session, 9U);
  EXPECT_EQ(list.rings[0].owner, 9U);
  EXPECT_EQ(list.rings[1].owner, (std::uint64_t{6} << 32) + 1);
}

// They are read as bytes and written field by field.
TEST(CodecTest, EveryFieldOfAnEpisodeArrivesAsItself) {
  const EpisodeReport sent = {.token_id = 0x0102030405060708,
                              .attempt = 2,
                              .length_steps = 3,
                              .lines = 4,
                              .policy_version = 5,
                              .episode_return = -6.5F,
                              .lane = 7,
                              .worker = 8};
  const auto batch =
      std::get<ReportBatch>(Decode(Encode(ReportBatch{1, 1, {{}, sent}, 0})).message);
  ASSERT_EQ(batch.episodes.size(), 2U);
  const EpisodeReport& got = batch.episodes[1];
  EXPECT_EQ(got.token_id, sent.token_id);
  EXPECT_EQ(got.attempt, sent.attempt);
  EXPECT_EQ(got.length_steps, sent.length_steps);
  EXPECT_EQ(got.lines, sent.lines);
  EXPECT_EQ(got.policy_version, sent.policy_version);
  EXPECT_EQ(got.episode_return, sent.episode_return);
  EXPECT_EQ(got.lane, sent.lane);
  EXPECT_EQ(got.worker, sent.worker);
}

TEST(CodecTest, EnvelopeNamesRunAndProcess) {
  const Identity sender = {.run_id = 5, .process = 77};
  EXPECT_EQ(Decode(Encode(Goodbye{9, 1}, sender)).sender, sender);
}

TEST(CodecTest, TextsOfAnotherFormAreRefusedWithAnAnswer) {
  std::vector<Message> odd;
  for (const char* name : {"", "caf\xe9", "a b", "actor/0", "a\n"})
    odd.push_back(Register{.name = name});
  odd.push_back(Register{.name = "a", .http_endpoint = "host\",\"x:80"});
  odd.push_back(Register{.name = "a", .http_endpoint = "nohost"});
  odd.push_back(Register{.name = "a", .rows_endpoint = "tcp://host:9001"});
  odd.push_back(Register{.name = "a", .rows_key = "a\nkey"});
  odd.push_back(Registered{.rows_endpoint = "host:0"});
  odd.push_back(HeartbeatAck{.rows_endpoint = "host"});
  odd.push_back(Register{.name = "a", .given = {{"a key", "1"}}});
  odd.push_back(Register{.name = "a", .shm_dir = "/dev/\xff"});
  odd.push_back(Heartbeat{.session = 1, .stats = {{"a stat", 1}}});
  odd.push_back(Heartbeat{.session = 1, .phase = "\x1b[2J"});
  odd.push_back(Abandon{1, 1, "a\nb", {}});
  for (const Message& message : odd) {
    SCOPED_TRACE(message.index());
    const DecodeResult decoded = Decode(Encode(message));
    EXPECT_EQ(decoded.status, DecodeStatus::kBadText);
    EXPECT_TRUE(Answerable(decoded.status));
  }
  EXPECT_EQ(Decode(Encode(Register{.name = "a", .http_endpoint = ""})).status, DecodeStatus::kOk);
}

TEST(CodecTest, FullMessagesFitTheBound) {
  const Bitmap full(kRangeBitmapBytes, 0xff);
  const ReportBatch batch{1, 1, std::vector<EpisodeReport>(kMaxReports), 0};
  EXPECT_EQ(Decode(Encode(batch)).status, DecodeStatus::kOk);
  const Grant grant{1, 1, std::vector<GrantedRange>(kMaxRanges, {0, 256, 1, 1, full})};
  EXPECT_EQ(Decode(Encode(grant)).status, DecodeStatus::kOk);
  const RingList list{
      1, 1, std::vector<RingInfo>(kMaxRings, {std::string(kMaxRingPathBytes, 'p'), 0, 0, 0})};
  EXPECT_EQ(Decode(Encode(list)).status, DecodeStatus::kOk);
  Heartbeat beat{1};
  beat.stats.assign(kMaxStats, {std::string(kMaxNameBytes, 's'), 1.0});
  EXPECT_EQ(Decode(Encode(beat)).status, DecodeStatus::kOk);
}

TEST(CodecTest, SenderIsToldWhichFieldIsTooLong) {
  const ReportBatch batch{1, 1, std::vector<EpisodeReport>(kMaxReports + 1), 0};
  EXPECT_THROW(Encode(batch), Error);
  try {
    Encode(Abandon{1, 1, std::string(kMaxNameBytes + 1, 'r'), {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("reason has 65, at most 64"), std::string::npos);
  }
  EXPECT_THROW(Encode(Register{.rows_endpoint = std::string(kMaxEndpointBytes, 'h') + ":1"}),
               Error);
  EXPECT_THROW(Encode(HeartbeatAck{.rows_key = std::string(kMaxNameBytes + 1, 'k')}), Error);
  const auto cut = Encode(Refused{RefuseReason::kNoSlot, std::string(5000, 't')});
  EXPECT_EQ(std::get<Refused>(Decode(cut).message).text.size(), kMaxTextBytes);
}

TEST(CodecTest, LengthIsBoundedBeforeAnythingIsRead) {
  EXPECT_EQ(Decode({}).status, DecodeStatus::kTooShort);
  EXPECT_EQ(Decode(std::vector<std::byte>(1)).status, DecodeStatus::kTooShort);
  EXPECT_EQ(Decode(std::vector<std::byte>(kMaxMessageBytes + 1)).status, DecodeStatus::kTooLong);
  EXPECT_EQ(Decode(std::vector<std::byte>(64)).status, DecodeStatus::kBadIdentifier);
}

TEST(CodecTest, EveryTruncationIsRefused) {
  for (const Message& message : OneOfEach()) {
    const auto bytes = Encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto decoded = Decode(std::span(bytes).first(length));
      // Trailing bytes may be padding, so a short cut can still verify; then it says the same.
      if (decoded.status != DecodeStatus::kOk) continue;
      EXPECT_EQ(Encode(decoded.message), bytes);
    }
    EXPECT_NE(Decode(std::span(bytes).first(bytes.size() / 2)).status, DecodeStatus::kOk);
  }
}

// Finds the table's entry of `owners` by emptying every entry: a coordinator of an earlier build
// writes none.
TEST(CodecTest, RingListWithoutOwnersHasRingsWithoutOwners) {
  const auto bytes = Encode(OneOfEach()[11]);
  int found = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    auto changed = bytes;
    changed[i] = changed[i + 1] = std::byte{0};
    const DecodeResult decoded = Decode(changed);
    const auto* list = std::get_if<RingList>(&decoded.message);
    if (decoded.status != DecodeStatus::kOk || changed == bytes || list == nullptr) continue;
    if (list->rings.size() != 2 || list->rings[0].owner != 0 || list->rings[1].owner != 0) continue;
    ++found;
    EXPECT_EQ(list->session, 9U);
    EXPECT_EQ(list->rings[1].path, "/dev/shm/tetrion-0/ring.b");
    EXPECT_EQ(list->rings[1].session, 9U);
  }
  EXPECT_EQ(found, 1);
}

TEST(CodecTest, RingListWithMoreRingsThanOwnersIsRefused) {
  const RingList list{1, 1, {{"/a", 0, 0, 1, 77}, {"/b", 1, 1, 1, 78}}};
  const auto bytes = Encode(list);
  int found = 0;
  for (std::size_t i = 0; i + 12 <= bytes.size(); i += 4) {
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    std::memcpy(&count, bytes.data() + i, sizeof count);
    std::memcpy(&first, bytes.data() + i + sizeof count, sizeof first);
    if (count != 2 || first != 77) continue;
    ++found;
    auto changed = bytes;
    changed[i] = std::byte{1};
    EXPECT_EQ(Decode(changed).status, DecodeStatus::kBoundExceeded);
  }
  EXPECT_EQ(found, 1);
}

TEST(CodecTest, UnalignedBytesAreRead) {
  const auto bytes = Encode(OneOfEach()[5]);
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  EXPECT_EQ(Decode(std::span(shifted).subspan(1)).status, DecodeStatus::kOk);
}

// Finds the envelope's version, a u16 of value kProtocolVersion, by changing it and looking.
TEST(CodecTest, AnotherProtocolVersionIsNamed) {
  const auto bytes = Encode(Goodbye{1, 2});
  int found = 0;
  for (std::size_t i = 8; i + 1 < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] = std::byte{0x2a};
    changed[i + 1] = std::byte{0x01};
    const auto decoded = Decode(changed);
    if (decoded.status != DecodeStatus::kWrongVersion || decoded.have_version != 0x012a) continue;
    ++found;
    EXPECT_TRUE(Answerable(decoded.status));
    EXPECT_NE(WrongVersionText(decoded.have_version).find("298, this build needs 2"),
              std::string::npos);
  }
  EXPECT_EQ(found, 1);
}

// Property: whatever bytes arrive, Decode ends with a status, and what it accepts is within bounds,
// so it can be encoded again. AddressSanitizer watches the reads.
TEST(CodecTest, MutatedMessagesAreRefusedOrWithinBounds) {
  const std::vector<Message> messages = OneOfEach();
  std::vector<std::vector<std::byte>> seeds;
  for (const Message& message : messages) seeds.push_back(Encode(message));
  std::uint64_t accepted = 0, refused = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const DecodeResult decoded = Decode(Mutated(seeds[i % seeds.size()], 11, i));
    if (decoded.status != DecodeStatus::kOk) {
      ++refused;
      continue;
    }
    ++accepted;
    EXPECT_NO_THROW(Encode(decoded.message));
  }
  EXPECT_GT(accepted, 1000U);
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace tetrion::wire
