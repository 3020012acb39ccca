#include "lib/replay/replay_ring_cuda.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/schedules.h"
#include "tests/lib/replay/tagged_rows.cuh"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr RowSpec kRow = {.record_bytes = 1440, .lanes = 8, .has_mask = true};
constexpr int kCapacity = 24, kStride = 4, kLength = 6, kSequences = 5;
constexpr std::size_t kCells = kLength * kSequences;

// One thread a byte of [N, record_bytes]: what an environment draws at row t.
__global__ void DrawFrames(cuda::DeviceSpan<std::byte> slot, std::int32_t t) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= slot.size()) return;
  const auto lane = static_cast<std::int32_t>(at / kRow.record_bytes);
  const std::int32_t tag = t * 10 + lane;
  const unsigned place = at % kRow.record_bytes;  // the tag itself, then what follows from it
  const auto of_tag = static_cast<std::uint8_t>(static_cast<std::uint32_t>(tag) >> 8 * (place % 4));
  slot[at] = static_cast<std::byte>(place < 4 ? of_tag : testing::TagByte(tag, place));
}

// The other fields of row t, [N] each in an array of the environment's. One episode of 10 rows
// after the other.
struct Fields {
  std::int32_t action[8], episode_id[8];
  float reward[8], cont[8], log_prob[8];
  std::uint64_t mask[8];
  std::uint8_t flags[8];
};
__global__ void MakeFields(Fields* out, std::int32_t t, std::uint8_t first_flags) {
  const unsigned lane = threadIdx.x;
  const std::int32_t tag = t * 10 + static_cast<std::int32_t>(lane);
  const bool first = t % 10 == 0, last = t % 10 == 9;
  out->action[lane] = last ? 0 : tag;
  out->episode_id[lane] = t / 10;
  out->reward[lane] = first ? 0.0F : static_cast<float>(tag);
  out->cont[lane] = last ? 0.0F : 1.0F;
  out->log_prob[lane] = -1.0F;
  out->mask[lane] = ~std::uint64_t{0};
  out->flags[lane] = first ? first_flags : last ? kIsLast | kTerminated : 0;
}

// An environment that plays into a ring, and a reader that samples it.
class Play {
 public:
  explicit Play(int safety_margin = 0, UnpackImpl unpack_impl = UnpackImpl::kKernel)
      : ring_(device_,
              {.row = kRow,
               .capacity = kCapacity,
               .commit_stride = kStride,
               .safety_margin = safety_margin,
               .seq_len = kLength,
               .unpack_impl = unpack_impl},
              writer_, reader_) {}

  ReplayRingCuda& ring() { return ring_; }
  cuda::Stream& writer() { return writer_; }
  cuda::Stream& reader() { return reader_; }
  std::uint64_t next() const { return next_; }
  // One step of the environment: everything on the writer's stream.
  void Step(std::uint64_t t, std::uint8_t first_flags = kIsFirst) {
    const auto row = static_cast<std::int32_t>(t);
    const cuda::DeviceSpan<std::byte> slot = ring_.obs_slot(t);
    cuda::Launch(writer_, DrawFrames, static_cast<unsigned>(slot.size() / 128), 128, 0, slot, row);
    auto* const f = fields_.data<Fields>();
    cuda::Launch(writer_, MakeFields, 1, 8, 0, f, row, first_flags);
    ring_.push_step(t, {.action = f->action,
                        .reward = f->reward,
                        .flags = f->flags,
                        .cont = f->cont,
                        .episode_id = f->episode_id,
                        .log_prob = f->log_prob,
                        .mask = f->mask});
  }
  // Rows up to t - 1, a commit behind each.
  void StepTo(std::uint64_t t) {
    for (; next_ < t; ++next_) {
      Step(next_);
      ring_.record_commit(next_ + 1);
    }
  }
  ReplayRingCuda::Sampled Sample() {
    return ring_.sample_sequences(kSequences, {.record = records_.data<std::byte>()},
                                  pixels_.data<float>());
  }
  // Each sequence is rows of one lane in order, below `end` and not below `begin`: by their frames.
  void ExpectSequences(std::uint64_t begin, std::uint64_t end) {
    const auto frames = Download<std::byte>(records_);
    const auto values = Download<float>(pixels_);
    for (std::size_t sequence = 0; sequence < kSequences; ++sequence) {
      const std::int32_t first = TagOfFrame(frames, sequence);
      ASSERT_GE(first, static_cast<std::int32_t>(begin) * 10);
      for (std::size_t row = 0; row < kLength; ++row) {
        const std::size_t cell = row * kSequences + sequence;
        const std::int32_t tag = first + static_cast<std::int32_t>(row) * 10;
        ASSERT_LT(tag / 10, static_cast<std::int32_t>(end));
        ASSERT_EQ(TagOfFrame(frames, cell), tag);
        const std::uint8_t byte = testing::TagByte(tag, 77);
        for (std::size_t k = 0; k < 4; ++k) {
          EXPECT_EQ(values[cell * PixelGather::kPixels + 77 * 4 + k],
                    static_cast<float>(byte >> 2 * k & 3) / 3.0F);
        }
      }
    }
  }
  // The row and lane whose frame this is; -1 for none.
  static std::int32_t TagOfFrame(const std::vector<std::byte>& frames, std::size_t cell) {
    const std::byte* const frame = frames.data() + cell * kRow.record_bytes;
    std::int32_t tag = 0;
    std::memcpy(&tag, frame, sizeof tag);
    for (std::uint32_t at = 4; at < kRow.record_bytes; ++at) {
      if (frame[at] != static_cast<std::byte>(testing::TagByte(tag, at))) return -1;
    }
    return tag;
  }

 private:
  template <typename T>
  std::vector<T> Download(const cuda::DeviceBuffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    cuda::CopyToHost(values.data(), buffer.data<T>(), buffer.bytes(), cuda::CopyPurpose::kBatch,
                     reader_);
    return values;
  }

  cuda::Device device_{0};
  cuda::Stream writer_{device_, "writer"}, reader_{device_, "reader"};
  ReplayRingCuda ring_;
  cuda::DeviceBuffer fields_{device_, sizeof(Fields), "fields"};
  cuda::DeviceBuffer records_{device_, kCells* kRow.record_bytes, "records"};
  cuda::DeviceBuffer pixels_{device_, kCells* PixelGather::kPixels * sizeof(float), "pixels"};
  std::uint64_t next_ = 0;
};

class ReplayRingCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = testing::DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

TEST_F(ReplayRingCudaTest, CommitStrideLogic) {
  Play play;
  for (std::uint64_t t = 0; t < 3 * kStride; ++t) {
    play.Step(t);
    EXPECT_EQ(play.ring().record_commit(t + 1), (t + 1) / kStride * kStride) << t;
  }
  play.Step(3 * kStride);
  play.Step(3 * kStride + 1);
  EXPECT_EQ(play.ring().record_commit(3 * kStride + 2), 3U * kStride);
  play.ring().flush();
  EXPECT_EQ(play.ring().committed_t(), 3U * kStride + 2) << "a partial stride at the end";
}

TEST_F(ReplayRingCudaTest, SafeMaxT) {
  Play play(3);
  EXPECT_EQ(play.ring().safe_max_t(), 0U);
  play.StepTo(2 * kStride);
  EXPECT_EQ(play.ring().safe_max_t(), 2U * kStride - 3);
  const ReplayRingCuda::Sampled early = play.Sample();
  EXPECT_FALSE(early.ready);
  EXPECT_EQ(early.have_rows, 5U);
  EXPECT_EQ(early.need_rows, 6U);
  play.StepTo(3 * kStride);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(play.Sample().ready);
    play.ExpectSequences(0, 3 * kStride - 3);
  }
}

TEST_F(ReplayRingCudaTest, WraparoundIndexing) {
  Play play;
  for (std::uint64_t t = kLength; t <= 2 * kCapacity + kStride; t += 5) {
    play.StepTo(t);
    const std::uint64_t end = play.ring().committed_t();
    if (end < kLength) continue;
    ASSERT_TRUE(play.Sample().ready) << t;
    // The stride that is being written took the rows a lap before it.
    const std::uint64_t chunk_end = (t - 1) / kStride * kStride + kStride;
    const std::uint64_t begin = chunk_end > kCapacity ? chunk_end - kCapacity : 0;
    play.ExpectSequences(begin, end);
  }
}

TEST_F(ReplayRingCudaTest, DirectWriteSmoke) {
  Play play;
  const cuda::DeviceSpan<std::byte> slot = play.ring().obs_slot(0);
  EXPECT_EQ(slot.size(), 8U * 1440);
  EXPECT_EQ(slot.data(), play.ring().rows().Slots(0).record);
  EXPECT_EQ(play.ring().obs_slot(1).data(), slot.data() + slot.size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(play.ring().obs_slot(1).data()) % 256, 0U);
  play.Step(0);
  std::vector<std::byte> frames(slot.size());
  cuda::CopyToHost(frames.data(), slot.data(), frames.size(), cuda::CopyPurpose::kBatch,
                   play.writer());
  for (std::size_t lane = 0; lane < 8; ++lane) {
    EXPECT_EQ(play.TagOfFrame(frames, lane), static_cast<std::int32_t>(lane));
  }
}

TEST_F(ReplayRingCudaTest, PointerStability) {
  Play play;
  const std::byte* const first = play.ring().obs_slot(0).data();
  const std::byte* const second = play.ring().obs_slot(1).data();
  for (std::uint64_t lap = 0; lap < 4; ++lap) {
    play.StepTo(lap * kCapacity);
    EXPECT_EQ(play.ring().obs_slot(lap * kCapacity).data(), first);
    EXPECT_EQ(play.ring().obs_slot(lap * kCapacity + 1).data(), second);
  }
}

// What is committed need not be done: the reader's stream waits, not its thread.
TEST_F(ReplayRingCudaTest, EventGating) {
  testing::ForEachSchedule(30, 30, [](std::uint64_t) {
    Play play;
    play.StepTo(2 * kStride);
    play.ring().wait_for_commit(2 * kStride);
    const RowView row = play.ring().rows().Slots(0).At(2 * kStride - 1);
    std::vector<std::int32_t> got(8);
    cuda::CopyToHost(got.data(), row.action, 8 * sizeof(std::int32_t), cuda::CopyPurpose::kBatch,
                     play.reader());
    for (int lane = 0; lane < 8; ++lane) {
      EXPECT_EQ(got[static_cast<std::size_t>(lane)], (2 * kStride - 1) * 10 + lane);
    }
    EXPECT_THROW(play.ring().wait_for_commit(2 * kStride + 1), Error);
  });
}

// Environment, slot, commit, sample: nothing crosses the host. Positive control: one copy of four
// bytes is found, and so is a loop that does nothing.
TEST_F(ReplayRingCudaTest, MemcpyGate) {
  for (const UnpackImpl impl : {UnpackImpl::kKernel, UnpackImpl::kLut}) {
    Play play(0, impl);
    play.StepTo(2 * kStride);
    ASSERT_TRUE(play.Sample().ready);  // its memory is there
    const auto ingest = [&] {
      play.StepTo(play.next() + 4 * kStride);
      EXPECT_TRUE(play.Sample().ready);
    };
    EXPECT_NO_THROW(ReplayRingCuda::assert_no_host_memcpy(ingest));
    const cuda::PinnedBuffer pinned(4, "four bytes");
    const cuda::DeviceBuffer scratch(cuda::Device(0), 4, "four bytes");
    std::string said;
    try {
      ReplayRingCuda::assert_no_host_memcpy([&] {
        ingest();
        cuda::CopyToDevice(scratch.data<std::byte>(), pinned.data<std::byte>(), 4,
                           cuda::CopyPurpose::kIngest, play.writer());
      });
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_THAT(said, HasSubstr("host to device for ingest, 4 bytes"));
    EXPECT_THROW(ReplayRingCuda::assert_no_host_memcpy([] {}), Error) << "nothing was watched";
  }
}

TEST_F(ReplayRingCudaTest, WriterAndReaderMayBeTwoThreads) {
  constexpr std::uint64_t kEnd = 30 * kStride;
  Play play;
  std::thread writer([&] { play.StepTo(kEnd); });
  for (int sampled = 0; sampled < 30;) {
    if (!play.Sample().ready) continue;
    play.ExpectSequences(0, kEnd);
    ++sampled;
  }
  writer.join();
}

TEST_F(ReplayRingCudaTest, CheckInvariants) {
  Play play;
  play.StepTo(5 * kStride);
  EXPECT_EQ(play.ring().check_invariants(0, 5 * kStride), nullptr);
  for (std::uint64_t t = 5 * kStride; t < 8 * kStride; ++t) {
    play.Step(t, 0);  // row 30 begins an episode and does not say so
    play.ring().record_commit(t + 1);
  }
  EXPECT_STREQ(play.ring().check_invariants(3 * kStride, 8 * kStride),
               "is_first and episode_id do not move together");
}

TEST_F(ReplayRingCudaTest, RowsOutsideOfTheChunkAreRefused) {
  Play play;
  EXPECT_DEATH(play.ring().obs_slot(kStride), "its own chunk");
  play.StepTo(kStride);
  EXPECT_DEATH(play.ring().push_step(0, {}), "its own chunk");
}

}  // namespace
}  // namespace tetrion
