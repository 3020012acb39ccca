#include "lib/wire/rows_codec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/core/error.h"
#include "tests/lib/wire/mutated_for_test.h"
#include "tests/lib/wire/rows_messages_for_test.h"

namespace tetrion::wire {
namespace {

template <typename T>
T Sent(const T& message) {
  const RowsDecodeResult decoded = DecodeRows(EncodeRows(message));
  EXPECT_EQ(decoded.status, DecodeStatus::kOk);
  return std::get<T>(decoded.message);
}

TEST(RowsCodecTest, EveryKindComesBackAsItWent) {
  const auto messages = OneOfEachRowsMessage();
  ASSERT_EQ(messages.size(), std::variant_size_v<RowsMessage>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(messages[i].index(), i);
    const auto bytes = EncodeRows(messages[i]);
    const RowsDecodeResult decoded = DecodeRows(bytes);
    ASSERT_EQ(decoded.status, DecodeStatus::kOk);
    EXPECT_EQ(decoded.message.index(), i);
    EXPECT_EQ(EncodeRows(decoded.message), bytes);
  }
}

TEST(RowsCodecTest, FieldsKeepTheirPlaces) {
  const auto all = OneOfEachRowsMessage();
  const auto open = Sent(std::get<OpenRows>(all[0]));
  EXPECT_EQ(open.path, "remote:0000000000000abc.3");
  EXPECT_EQ(open.row_bytes, 4096U);
  EXPECT_EQ(open.oldest, 17U);
  const auto batch = Sent(std::get<RowBatch>(all[1]));
  EXPECT_EQ(batch.first, 100U);
  EXPECT_EQ(batch.count, 16U);
  EXPECT_EQ(batch.packing, RowsPacking::kZstd);
  EXPECT_EQ(Sent(std::get<RowsPing>(all[3])).number, 12U);
  EXPECT_EQ(Sent(std::get<WeightsGet>(all[4])).chunk, 2U);
  const auto opened = Sent(std::get<RowsOpened>(all[5]));
  EXPECT_EQ(opened.next, 100U);
  EXPECT_EQ(opened.released, 90U);
  EXPECT_EQ(opened.capacity, 256U);
  EXPECT_TRUE(Sent(std::get<OpenRefused>(all[6])).final);
  const auto ack = Sent(std::get<RowsAck>(all[7]));
  EXPECT_EQ(ack.streams, std::get<RowsAck>(all[7]).streams);
  EXPECT_EQ(ack.weights_version, 9U);
  EXPECT_EQ(ack.answered, 12U);
  EXPECT_EQ(Sent(std::get<WeightsChunk>(all[9])).blob_bytes, 600'000U);
  EXPECT_EQ(Sent(std::get<WeightsGone>(all[10])).newest, 11U);
  EXPECT_EQ(Sent(std::get<WeightsRefused>(all[11])).version, 9U);
  EXPECT_EQ(Sent(std::get<WeightsRefused>(all[11])).text, "no stream");
}

TEST(RowsCodecTest, EnvelopeNamesRunAndProcess) {
  const Identity sender = {.run_id = 5, .process = 77};
  EXPECT_EQ(DecodeRows(EncodeRows(RowsPing{}, sender)).sender, sender);
}

TEST(RowsCodecTest, OnlyRowsAndWeightsHaveAPayload) {
  for (const RowsMessage& message : OneOfEachRowsMessage()) {
    EXPECT_EQ(HasPayload(message), message.index() == 1 || message.index() == 9);
  }
}

TEST(RowsCodecTest, FullAckFitsAndOneMoreIsTheSendersError) {
  RowsAck ack{std::vector<StreamAck>(kMaxStreams, {~0ULL, ~0ULL, ~0ULL, true}), 1};
  EXPECT_EQ(Sent(ack).streams, ack.streams);
  ack.streams.emplace_back();
  EXPECT_THROW(EncodeRows(ack), Error);
  EXPECT_THROW(EncodeRows(OpenRows{.path = std::string(kMaxRingPathBytes + 1, 'p')}), Error);
  const OpenRefused refused{"remote:0000000000000abc.3", std::string(5000, 't')};
  EXPECT_EQ(Sent(refused).text.size(), kMaxTextBytes);
}

TEST(RowsCodecTest, WhatNoMessageMaySayIsRefused) {
  const auto status = [](const RowsMessage& message) {
    return DecodeRows(EncodeRows(message)).status;
  };
  EXPECT_EQ(status(OpenRows{.path = "/dev/shm/ring"}), DecodeStatus::kBadText);
  EXPECT_EQ(status(OpenRefused{"remote:0000000000000abc.3", "\x1b[2J"}), DecodeStatus::kBadText);
  EXPECT_EQ(status(WeightsRefused{1, "a\nb"}), DecodeStatus::kBadText);
  EXPECT_EQ(status(RowBatch{1, 0, 0, RowsPacking::kNone}), DecodeStatus::kBoundExceeded);
  EXPECT_EQ(status(RowBatch{1, 0, 1, static_cast<RowsPacking>(2)}), DecodeStatus::kBoundExceeded);
  EXPECT_EQ(status(WeightsChunk{1, 0, kMaxWeightsBytes + 1, 0}), DecodeStatus::kBoundExceeded);
}

TEST(RowsCodecTest, LengthIsBoundedBeforeAnythingIsRead) {
  EXPECT_EQ(DecodeRows({}).status, DecodeStatus::kTooShort);
  EXPECT_EQ(DecodeRows(std::vector<std::byte>(kMaxRowsEnvelopeBytes + 1)).status,
            DecodeStatus::kTooLong);
  EXPECT_EQ(DecodeRows(std::vector<std::byte>(64)).status, DecodeStatus::kBadIdentifier);
  EXPECT_EQ(DecodeRows(Encode(Goodbye{1, 2})).status, DecodeStatus::kBadIdentifier);
}

TEST(RowsCodecTest, UnalignedBytesAreRead) {
  const auto bytes = EncodeRows(OneOfEachRowsMessage()[7]);
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  EXPECT_EQ(DecodeRows(std::span(shifted).subspan(1)).status, DecodeStatus::kOk);
}

// Finds the envelope's version, a u16 of value kRowsProtocolVersion, by changing it and looking.
TEST(RowsCodecTest, AnotherProtocolVersionIsNamed) {
  const auto bytes = EncodeRows(CloseRows{1, 2});
  int found = 0;
  for (std::size_t i = 8; i + 1 < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] = std::byte{0x2a};
    changed[i + 1] = std::byte{0x01};
    const auto decoded = DecodeRows(changed);
    if (decoded.status != DecodeStatus::kWrongVersion || decoded.have_version != 0x012a) continue;
    ++found;
    EXPECT_NE(RowsWrongVersionText(decoded.have_version)
                  .find("298, this build needs " + std::to_string(kRowsProtocolVersion)),
              std::string::npos);
  }
  EXPECT_EQ(found, 1);
}

// Property: whatever bytes arrive, DecodeRows ends with a status, and what it accepts is within
// bounds, so it can be encoded again. AddressSanitizer watches the reads.
TEST(RowsCodecTest, MutatedMessagesAreRefusedOrWithinBounds) {
  std::vector<std::vector<std::byte>> seeds;
  for (const RowsMessage& message : OneOfEachRowsMessage()) seeds.push_back(EncodeRows(message));
  std::uint64_t accepted = 0, refused = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const RowsDecodeResult decoded = DecodeRows(Mutated(seeds[i % seeds.size()], 12, i));
    if (decoded.status != DecodeStatus::kOk) {
      ++refused;
      continue;
    }
    ++accepted;
    EXPECT_NO_THROW(EncodeRows(decoded.message));
  }
  EXPECT_GT(accepted, 1000U);
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace tetrion::wire
