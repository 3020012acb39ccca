// The small parts of lib/nn: thread team, scorer rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/nn/network.h"
#include "lib/nn/scorer_rows.h"
#include "lib/nn/thread_team.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/support/little_memory.h"

namespace tetrion {
namespace {

TEST(ThreadTeamTest, EveryItemIsDoneOnceByOneMemberWhenShareReturns) {
  for (int size : {1, 2, 4}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    for (int round = 0; round < 500; ++round) {
      const int items = round % 9;
      // Of the caller's frame: a helper that came late would write to what is no longer there.
      std::vector<int> done(static_cast<std::size_t>(items));
      std::vector<std::atomic<int>> at_work(static_cast<std::size_t>(size));
      team.Share(items, [&](int member, int item) {
        const auto of_member = static_cast<std::size_t>(member);
        ASSERT_LT(member, size);
        ASSERT_EQ(at_work[of_member]++, 0) << "a member does one item at a time";
        ++done[static_cast<std::size_t>(item)];
        --at_work[of_member];
      });
      ASSERT_EQ(done, std::vector<int>(static_cast<std::size_t>(items), 1));
    }
  }
}

TEST(ThreadTeamTest, HelpersTakeItemsWhileTheCallerIsBusyWithOne) {
  ThreadTeam team(2);
  std::atomic<bool> helped = false;
  team.Share(2, [&](int member, int) {
    if (member > 0) helped = true;
    // Whoever is first holds its item until the other has the other one.
    const std::int64_t deadline = MonotonicClock::Get().NowNs() + 60 * kNanosPerSecond;
    while (member == 0 && !helped && MonotonicClock::Get().NowNs() < deadline) {
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(helped);
}

// The names of this process's threads, as `top -H` shows them.
std::multiset<std::string> ThreadNames() {
  std::multiset<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    names.insert(name);
  }
  return names;
}

TEST(ThreadTeamTest, HelpersAreNamedAfterTheirTeamWhoeverMadeThem) {
  const ThreadTeam scorer(3);
  const ThreadTeam other(2, "a-name-of-17-byte");
  const std::multiset<std::string> names = ThreadNames();
  EXPECT_EQ(names.count("scorer-1"), 1U);
  EXPECT_EQ(names.count("scorer-2"), 1U);
  EXPECT_EQ(names.count("a-name-of-17-by"), 1U);
}

// For want of room for their stacks, which fails as a limit of threads does.
TEST(ThreadTeamTest, HelperThatCannotBeStartedIsAnExceptionAndTheOthersEnd) {
  const int status = testing::ExitWithRoom(std::uint64_t{32} << 20, [] {
    try {
      const ThreadTeam team(1000);
      return 1;
    } catch (const std::system_error& error) {
      return error.code() == std::errc::resource_unavailable_try_again ? 0 : 2;
    }
  });
  EXPECT_EQ(status, 0);
}

TEST(ScorerRowsTest, DistinctLegalAfterstatesGetOneRowEach) {
  constexpr int kActions = 6, kAfter = 24, kFloats = kActions * kAfter + 3;
  std::vector<float> view = testing::Noise(2 * kFloats, 1);
  const auto after = [&](int state, int action) {
    return view.begin() + state * kFloats + action * kAfter;
  };
  std::copy_n(after(0, 1), kAfter, after(0, 4));  // the same placement twice
  std::copy_n(after(0, 1), kAfter, after(1, 0));  // equal, but of another state
  const std::uint64_t mask[] = {0b110011, 0b000001};
  ScorerRows rows;
  rows.Allocate(2, kActions, kAfter);
  rows.Plan(view.data(), kFloats, mask, 2, kActions);
  EXPECT_EQ(rows.rows, 4);
  EXPECT_EQ(rows.first, (std::vector<std::int32_t>{0, 3, 4}));
  EXPECT_EQ(rows.row_of, (std::vector<std::int32_t>{0, 1, -1, -1, 1, 2, 3, -1, -1, -1, -1, -1}));
  for (int i = 0; i < kAfter; ++i) {
    EXPECT_EQ(rows.after[static_cast<std::size_t>(2 * kAfter + i)], after(0, 5)[i]);
  }
}

// Against a map of whole rows, with many, few and no equal ones of up to 64 actions.
TEST(ScorerRowsTest, PlansOfRandomViewsAreThoseOfAMap) {
  constexpr int kStates = 40, kActions = 64;
  for (const int floats : {12, 16, 17}) {
    const int view_floats = kActions * floats + 3;
    std::vector<float> view = testing::Noise(
        static_cast<std::size_t>(kStates) * static_cast<std::size_t>(view_floats), 5);
    std::vector<std::uint64_t> mask;
    for (int s = 0; s < kStates; ++s) {
      const PhiloxBlock draw =
          PhiloxDraw(3, static_cast<std::uint64_t>(s), 0, PhiloxPurpose::kSampler);
      mask.push_back(s == 0 ? ~std::uint64_t{0}
                            : draw.word[0] | std::uint64_t{draw.word[1] & draw.word[2]} << 32);
      float* own = view.data() + s * view_floats;
      const int kinds = s % 4 == 0 ? kActions : 1 + s;
      for (int a = kinds; a < kActions; ++a)
        std::copy_n(own + a % kinds * floats, floats, own + a * floats);
    }
    ScorerRows rows;
    rows.Allocate(kStates, kActions, floats);
    rows.Plan(view.data(), view_floats, mask.data(), kStates, kActions);
    int expected = 0;
    for (int s = 0; s < kStates; ++s) {
      std::map<std::vector<float>, int> known;
      ASSERT_EQ(rows.first[static_cast<std::size_t>(s)], expected);
      for (int a = 0; a < kActions; ++a) {
        const int row = rows.row_of[static_cast<std::size_t>(s * kActions + a)];
        if ((mask[static_cast<std::size_t>(s)] >> a & 1) == 0) {
          ASSERT_EQ(row, -1);
          continue;
        }
        const float* own = view.data() + s * view_floats + a * floats;
        const auto [at, added] = known.try_emplace(std::vector<float>(own, own + floats), expected);
        if (added) ++expected;
        ASSERT_EQ(row, at->second) << floats << " " << s << " " << a;
        ASSERT_EQ(rows.state[static_cast<std::size_t>(row)], s);
        ASSERT_TRUE(std::equal(own, own + floats, rows.after.data() + row * floats));
      }
    }
    EXPECT_EQ(rows.rows, expected);
  }
}

// Pairs of floats count with factors that rise by the same step, so that one more, two less and one
// more of three such pairs cancel: equal keys, which the rows themselves must tell apart.
TEST(ScorerRowsTest, UnequalRowsWithEqualKeysStayApart) {
  constexpr int kActions = 3, kAfter = 16;
  std::vector<float> view = testing::Noise(kActions * kAfter, 6);
  const auto row = [&](int action) { return view.begin() + action * kAfter; };
  std::copy_n(row(0), kAfter, row(1));
  std::copy_n(row(0), kAfter, row(2));
  std::uint64_t pairs[3];
  std::memcpy(pairs, &*row(1), sizeof(pairs));
  pairs[0] += 1;
  pairs[1] -= 2;
  pairs[2] += 1;
  std::memcpy(&*row(1), pairs, sizeof(pairs));
  ScorerRows rows;
  rows.Allocate(1, kActions, kAfter);
  rows.Plan(view.data(), kActions * kAfter, nullptr, 1, kActions);
  EXPECT_EQ(rows.row_of, (std::vector<std::int32_t>{0, 1, 0}));
}

TEST(ScorerRowsTest, RowsThatDifferInOneBitStayApart) {
  constexpr int kActions = 2, kAfter = 15;  // an odd number: the last word is half a one
  std::vector<float> view(kActions * kAfter, 0.0F);
  view[kAfter + 14] = std::nextafter(0.0F, 1.0F);
  ScorerRows rows;
  rows.Allocate(1, kActions, kAfter);
  rows.Plan(view.data(), kActions * kAfter, nullptr, 1, kActions);
  EXPECT_EQ(rows.rows, 2);
}

}  // namespace
}  // namespace tetrion
