#include "lib/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "lib/core/error.h"
#include "lib/core/philox.h"

namespace tetrion {
namespace {

SafetensorsFile Sample() {
  SafetensorsFile file;
  file.tensors = {{"policy.w", {2, 3}, {1, 2, 3, 4, 5, 6}},
                  {"empty", {0, 4}, {}},
                  {"scalar", {}, {-0.5F}},
                  {"adam \"m\"\n", {4}, {1e-30F, 0, -1, 1e30F}}};
  file.metadata = {{"run", "a \\ \"b\"\t"}, {"counter.updates", "12"}};
  return file;
}

bool Equal(const SafetensorsFile& a, const SafetensorsFile& b) {
  if (a.tensors.size() != b.tensors.size()) return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    if (a.tensors[i].name != b.tensors[i].name || a.tensors[i].shape != b.tensors[i].shape ||
        a.tensors[i].data != b.tensors[i].data) {
      return false;
    }
  }
  return a.metadata == b.metadata;
}

std::vector<std::byte> Encoded(const SafetensorsFile& file) {
  return EncodeSafetensors(file.tensors, file.metadata);
}

// A file with a header of our choice.
std::vector<std::byte> FileWith(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string RefusalOf(const std::vector<std::byte>& bytes) {
  try {
    (void)DecodeSafetensors(bytes, "file.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("file.safetensors"), std::string::npos);
    return error.what();
  }
  return "";
}

TEST(SafetensorsTest, WhatIsWrittenIsRead) {
  EXPECT_TRUE(Equal(DecodeSafetensors(Encoded(Sample()), "x"), Sample()));
  EXPECT_TRUE(Equal(DecodeSafetensors(EncodeSafetensors({}, {}), "x"), {}));
}

TEST(SafetensorsTest, DataStartsEightByteAligned) {
  const std::vector<std::byte> bytes = Encoded(Sample());
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0u);
}

TEST(SafetensorsTest, FilesOfOtherWritersAreReadWhateverTheirKeyOrder) {
  std::vector<std::byte> bytes = FileWith(
      R"({"b":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}})",
      8);
  const float values[2] = {3, 4};
  std::memcpy(bytes.data() + bytes.size() - 8, values, 8);
  const SafetensorsFile file = DecodeSafetensors(bytes, "x");
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[0].data[0], 3.0F);
  EXPECT_EQ(file.tensors[1].data[0], 4.0F);
}

TEST(SafetensorsTest, EveryTruncationIsRefusedInOneSentence) {
  const std::vector<std::byte> bytes = Encoded(Sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(RefusalOf({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "")
        << size;
  }
}

TEST(SafetensorsTest, HostileHeadersAreRefused) {
  const auto tensor = [](const std::string& body) { return "{\"t\":{" + body + "}}"; };
  for (
      const std::string& header : {
          std::string("[]"),
          std::string("{"),
          std::string("{}x"),
          std::string("not json"),
          tensor(R"("dtype":"F64","shape":[1],"data_offsets":[0,8])"),
          tensor(R"("shape":[2],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":[2])"),
          tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"),
          tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"),
          tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,16])"),
          tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"),
          tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
          tensor(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])"),
          tensor(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])"),
          std::string(
              R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})"),
          std::string(
              R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
          std::string(
              R"({"__metadata__":{"x":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
      }) {
    EXPECT_NE(RefusalOf(FileWith(header, 8)), "") << header;
  }
  EXPECT_EQ(RefusalOf(FileWith(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 8)),
            "");
}

// Each file breaks one rule alone, and the refusal names it.
TEST(SafetensorsTest, EachBoundRefusesByItself) {
  const auto expect = [](const char* why, const std::string& header, std::size_t data_bytes) {
    const std::string refusal = RefusalOf(FileWith(header, data_bytes));
    EXPECT_NE(refusal.find(why), std::string::npos) << why << " was expected, not: " << refusal;
  };
  expect("of type I32", R"({"t":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})", 8);
  expect("more elements",
         R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0);
  expect("bytes follow", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12);
  expect("outside", R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8);
  expect("header length", "{}" + std::string(kMaxHeaderBytes, ' '), 0);
  std::string many = "{";
  for (std::size_t i = 0; i <= kMaxTensors; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  expect("too many tensors", many + "}", 0);
}

TEST(SafetensorsTest, PickleUnderOurNameIsRefused) {
  std::vector<std::byte> zip(200, std::byte{0});
  std::memcpy(zip.data(), "PK\x03\x04", 4);
  EXPECT_NE(RefusalOf(zip), "");
  std::vector<std::byte> pickle(200, std::byte{'.'});
  std::memcpy(pickle.data(),
              "\x80\x02"
              "cposix\nsystem\n",
              16);
  EXPECT_NE(RefusalOf(pickle), "");
}

TEST(SafetensorsTest, ImpossibleHeaderLengthsAreRefused) {
  for (const std::uint64_t length : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                     static_cast<std::uint64_t>(kMaxHeaderBytes + 1)}) {
    std::vector<std::byte> bytes = Encoded(Sample());
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_NE(RefusalOf(bytes), "") << length;
  }
}

// Random damage: flipped, inserted, removed and copied bytes. Every result is either refused or
// decodes to tensors whose shapes fit their data; under ASan this also shows that no byte outside
// is read.
TEST(SafetensorsTest, FortyThousandMutationsAreRefusedOrConsistent) {
  const std::vector<std::byte> original = Encoded(Sample());
  int refused = 0;
  for (std::uint64_t round = 0; round < 40000; ++round) {
    std::vector<std::byte> bytes = original;
    const std::uint32_t edits = 1 + PhiloxDraw(1, round, 0, PhiloxPurpose::kSampler).word[0] % 4;
    for (std::uint32_t edit = 1; edit <= edits; ++edit) {
      const PhiloxBlock draw = PhiloxDraw(1, round, edit, PhiloxPurpose::kSampler);
      const auto at = static_cast<std::ptrdiff_t>(
          BoundedDraw(draw.word[0], static_cast<std::uint32_t>(bytes.size())));
      const auto value = static_cast<std::byte>(draw.word[1]);
      switch (draw.word[2] % 4) {
        case 0:
          bytes[static_cast<std::size_t>(at)] ^= value;
          break;
        case 1:
          bytes.insert(bytes.begin() + at, value);
          break;
        case 2:
          bytes.erase(bytes.begin() + at);
          break;
        default:
          bytes[static_cast<std::size_t>(at)] = bytes[draw.word[3] % bytes.size()];
          break;
      }
    }
    try {
      for (const TrainerState::Tensor& tensor : DecodeSafetensors(bytes, "x").tensors) {
        std::int64_t floats = 1;
        for (const std::int64_t extent : tensor.shape) floats *= extent;
        ASSERT_EQ(static_cast<std::size_t>(floats), tensor.data.size());
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20000);
}

}  // namespace
}  // namespace tetrion
