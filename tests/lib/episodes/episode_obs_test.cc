#include "lib/episodes/episode_obs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "lib/envs/vec_env.h"

namespace tetrion {
namespace {

// A buffer as EpisodeBatch has them: 64-byte aligned.
struct alignas(64) Line {
  std::byte bytes[64];
};

std::vector<std::byte> SomeRecord(std::size_t bytes) {
  std::vector<std::byte> record(bytes);
  for (std::size_t i = 0; i < bytes; ++i) record[i] = static_cast<std::byte>(i * 37 + 5);
  return record;
}

TEST(EpisodeObsTest, StreamedAndCachedViewsAreEqual) {
  for (const char* env : {"cartpole", "tetris", "tetris-placement"}) {
    for (const char* view : {"", "flat"}) {
      if (env == std::string("cartpole") && view[0] != 0) continue;
      const ObsSpec obs = MakeEnvSpec({.name = env, .view = view}).obs;
      const auto cached = MakeViewWriter(obs, false), streamed = MakeViewWriter(obs, true);
      ASSERT_EQ(cached->bytes(), static_cast<std::size_t>(obs.view_floats) * 4);
      ASSERT_EQ(streamed->bytes(), cached->bytes());
      const std::vector<std::byte> record = SomeRecord(obs.record_bytes);
      std::vector<Line> a(cached->bytes() / 64 + 1), b(a.size());
      cached->Write(record.data(), {}, a[0].bytes);
      streamed->Write(record.data(), {}, b[0].bytes);
      streamed->Flush();
      std::vector<float> expected(static_cast<std::size_t>(obs.view_floats));
      obs.expand(record.data(), 1, obs.queue_size, expected.data());
      EXPECT_EQ(std::memcmp(a.data(), expected.data(), cached->bytes()), 0) << env << view;
      EXPECT_EQ(std::memcmp(b.data(), expected.data(), cached->bytes()), 0) << env << view;
    }
  }
}

TEST(EpisodeObsTest, RecordsAreCopied) {
  const ObsSpec obs = MakeEnvSpec({.name = "tetris"}).obs;
  const auto writer = MakeRecordWriter(obs);
  ASSERT_EQ(writer->bytes(), 64U);
  const std::vector<std::byte> record = SomeRecord(64);
  std::vector<std::byte> out(65, std::byte{0xEE});
  writer->Write(record.data(), {}, out.data());
  EXPECT_EQ(std::memcmp(out.data(), record.data(), 64), 0);
  EXPECT_EQ(out[64], std::byte{0xEE});
}

}  // namespace
}  // namespace tetrion
