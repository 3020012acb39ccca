#include "lib/envs/registry.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

std::string Refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(RegistryTest, EntriesAreFoundByNameOrRefusedWithTheNamesThereAre) {
  EXPECT_EQ(EnvNames().rfind("tetris, tetris-placement, ", 0), 0U);
  for (const EnvEntry& entry : Envs()) EXPECT_EQ(&EnvOf(entry.name), &entry);
  EXPECT_EQ(Refusal([] { EnvOf("pong"); }),
            "unknown environment 'pong': choose one of " + EnvNames());
}

TEST(RegistryTest, EveryEntrySaysWhatIsAskedOfIt) {
  for (const EnvEntry& entry : Envs()) {
    const EnvSpec spec = MakeEnvSpec({.name = entry.name});
    EXPECT_EQ(spec.obs.view, entry.default_view);
    EXPECT_EQ(spec.obs.network, entry.NetworkView("").networks.front());
    EXPECT_EQ(spec.action.count, static_cast<int>(entry.actions.size()));
    for (const ViewEntry& view : entry.views) {
      EXPECT_EQ(&entry.Observation(view.observation()), &view) << "names are unique";
      EXPECT_LE(view.record.bytes, entry.picture.record.bytes);
      EXPECT_TRUE(entry.HasRecordOf(view.record.bytes));
      const auto elements = static_cast<std::size_t>(view.elements(3));
      EXPECT_TRUE(view.low.size() == 1 || view.low.size() == elements) << view.name;
      EXPECT_EQ(view.low.size(), view.high.size());
      EXPECT_LE(view.action_floats * spec.action.count, view.elements(1)) << view.name;
    }
    EXPECT_FALSE(entry.HasRecordOf(1));
    const std::string& drawn = entry.ViewOfRecord(entry.picture.record);
    EXPECT_EQ(entry.NetworkView(drawn).record.name, entry.picture.record.name);
  }
}

TEST(RegistryTest, PartsOfAnObservationFillItWithoutGaps) {
  const ViewEntry& dict = EnvOf("tetris").Observation("dict");
  std::int64_t elements = 0;
  for (const ViewPart& part : dict.parts(5)) {
    std::int64_t size = 1;
    for (const std::int64_t extent : part.shape) size *= extent;
    elements += size;
  }
  EXPECT_EQ(elements, dict.elements(5));
}

TEST(RegistryTest, BytesAreNoNetworksViewAndViewsHaveTheirOwnNames) {
  EXPECT_NE(
      Refusal([] { EnvOf("tetris").NetworkView("packed2"); }).find("one of flat, planes, pixels"),
      std::string::npos);
  EXPECT_EQ(EnvOf("cartpole").Observation("flat").name, "vector");
  EXPECT_NE(Refusal([] { EnvOf("cartpole").Observation("vector"); }).find("one of flat, compact"),
            std::string::npos);
}

TEST(RegistryDeathTest, EntriesThatLackSomethingOrExistAreBugs) {
  EXPECT_DEATH(RegisterEnv(EnvOf("cartpole")), "two environments have the name 'cartpole'");
  EnvEntry undrawn = EnvOf("cartpole");
  undrawn.name = "undrawn";
  undrawn.picture.draw = nullptr;
  EXPECT_DEATH(RegisterEnv(undrawn), "environment 'undrawn' lacks picture.draw");
  EnvEntry unread = EnvOf("cartpole");
  unread.name = "unread";
  unread.views.front().networks.clear();
  EXPECT_DEATH(RegisterEnv(unread), "'unread' lacks in its view 'vector' networks");
}

}  // namespace
}  // namespace tetrion
