#include "lib/checkpoint/checkpoint_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "lib/core/error.h"
#include "tests/lib/shm/scratch_dir.h"
#include "tests/support/little_memory.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

TrainerState StateOf(int tag, std::size_t floats = 100) {
  TrainerState state;
  state.tensors = {{"policy.w",
                    {static_cast<std::int64_t>(floats)},
                    std::vector<float>(floats, static_cast<float>(tag))},
                   {"adam_m.w", {1}, {0.5F}},
                   {"policy.b", {2}, {1.0F, 2.0F}}};
  state.counters = {{"updates", tag}, {"minus", -3}};
  return state;
}

CheckpointInfo InfoOf(int tag, double mean_return = 0) {
  return {.config_hash = 0xABCDEF0123456789u,
          .run = "run \"1\"",
          .env = "cartpole",
          .network = "mlp",
          .updates = tag,
          .policy_version = tag * 2,
          .env_steps = tag * 1000,
          .mean_return = mean_return};
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');  // of a parameter: one folder, not two
    folder_ =
        fs::path(::testing::TempDir()) / ("checkpoints-" + std::to_string(::getpid()) + "-" + name);
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_)) names.insert(file.path().filename());
    return names;
  }
  void Damage(const std::string& file, std::streamoff at) const {
    std::fstream stream(folder_ / file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 0x40);
    stream.seekp(at);
    stream.put(byte);
  }
  std::string NewestFile() const { return CheckpointStore(folder_, 3).Manifest().back().file; }

  fs::path folder_;
};

TEST_F(CheckpointStoreTest, SavedStateAndInfoComeBack) {
  CheckpointStore store(folder_, 3);
  EXPECT_FALSE(store.LoadNewest().has_value());
  CheckpointInfo info = InfoOf(7, -1.25e-7);
  store.Save(StateOf(7), info);
  const auto loaded = CheckpointStore(folder_, 3).LoadNewest(info.config_hash);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->info, info);
  EXPECT_EQ(loaded->warning, "");
  EXPECT_EQ(loaded->state.counters, StateOf(7).counters);
  ASSERT_EQ(loaded->state.tensors.size(), 3u);
  EXPECT_EQ(loaded->state.tensors[0].data, StateOf(7).tensors[0].data);
  EXPECT_EQ(loaded->state.tensors[2].name, "policy.b");
}

TEST_F(CheckpointStoreTest, PolicyBlobIsThePolicyTensorsInOrder) {
  const std::vector<std::byte> blob = PolicyBlobOf(StateOf(3));
  ASSERT_EQ(blob.size(), 102 * sizeof(float));
  float values[102];
  std::memcpy(values, blob.data(), blob.size());
  EXPECT_EQ(values[0], 3.0F);
  EXPECT_EQ(values[101], 2.0F);
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndTheBestAndNothingElse) {
  CheckpointStore store(folder_, 2);
  for (int tag = 1; tag <= 6; ++tag) store.Save(StateOf(tag), InfoOf(tag, tag == 2 ? 100 : tag));
  EXPECT_EQ(Files(), (std::set<std::string>{"000000000002.safetensors", "000000000005.safetensors",
                                            "000000000006.safetensors", "manifest.json"}));
  EXPECT_EQ(store.LoadNewest()->info.updates, 6);
  EXPECT_EQ(store.LoadBest()->info.updates, 2);
  store.Save(StateOf(7), InfoOf(7, 200));
  EXPECT_EQ(store.LoadBest()->info.updates, 7);
  EXPECT_EQ(store.Manifest().size(), 2u);
}

TEST_F(CheckpointStoreTest, ALostBestGivesItsPlaceToTheBestOfTheOthers) {
  CheckpointStore store(folder_, 1);
  store.Save(StateOf(1), InfoOf(1, 10));
  store.Save(StateOf(2), InfoOf(2, 50));
  const std::string best = store.Manifest().back().file;
  fs::remove(fs::path(folder_) / best);
  store.Save(StateOf(3), InfoOf(3, 20));
  store.Save(StateOf(4), InfoOf(4, 15));
  EXPECT_EQ(store.LoadBest()->info.updates, 3);
  fs::resize_file(store.LoadBest()->path, 10);
  store.Save(StateOf(5), InfoOf(5, 5));
  EXPECT_EQ(store.LoadBest()->info.updates, 4);
  EXPECT_EQ(store.Manifest().size(), 2U);
}

TEST_F(CheckpointStoreTest, ABestThatWasCorruptBeforeTheFirstSaveGivesItsPlaceUp) {
  {
    CheckpointStore before(folder_, 1);
    before.Save(StateOf(1), InfoOf(1, 50));
    before.Save(StateOf(2), InfoOf(2, 20));
    std::fstream file(before.LoadBest()->path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    const int last = file.peek();
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(~last));
  }
  CheckpointStore store(folder_, 1);
  store.Save(StateOf(3), InfoOf(3, 10));
  EXPECT_EQ(store.LoadBest()->info.updates, 2);
  EXPECT_EQ(store.Manifest().size(), 2U);
  EXPECT_EQ(store.LoadBest()->warning, "");
}

TEST_F(CheckpointStoreTest, OneThatWasTakenForDeadSavesNothingBesideItsSuccessor) {
  CheckpointStore first(folder_, 3), second(folder_, 3);
  ASSERT_TRUE(first.TakeOver());
  first.Save(StateOf(1), InfoOf(1));
  ASSERT_TRUE(second.TakeOver());
  second.Save(StateOf(2), InfoOf(2));
  const std::set<std::string> files = Files();
  EXPECT_THROW(first.Save(StateOf(3), InfoOf(3)), PlaceTaken);
  EXPECT_EQ(Files(), files);
  second.Save(StateOf(4), InfoOf(4));
  EXPECT_EQ(second.LoadNewest()->info.updates, 4);
}

// A successor starts while the save is half done; it must not read before that is whole.
TEST_F(CheckpointStoreTest, ASaveUnderWayIsCompleteBeforeAnotherTakesOver) {
  static std::thread successor;
  static CheckpointStore* second = nullptr;
  static std::int64_t found = 0;
  CheckpointStore first(folder_, 3), next(folder_, 3);
  second = &next;
  ASSERT_TRUE(first.TakeOver());
  first.SetPauseHook([](PausePoint point) {
    if (point != PausePoint::kFileSynced) return;
    successor = std::thread([] {
      ASSERT_TRUE(second->TakeOver());
      const std::optional<Checkpoint> newest = second->LoadNewest();
      found = newest.has_value() ? newest->info.updates : 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  first.Save(StateOf(100), InfoOf(100));
  successor.join();
  EXPECT_EQ(found, 100);
  first.SetPauseHook(nullptr);
  EXPECT_THROW(first.Save(StateOf(101), InfoOf(101)), PlaceTaken);
}

TEST_F(CheckpointStoreTest, NotANumberReturnIsNeverTheBest) {
  CheckpointStore store(folder_, 5);
  store.Save(StateOf(1), InfoOf(1, NAN));
  store.Save(StateOf(2), InfoOf(2, -5));
  store.Save(StateOf(3), InfoOf(3, NAN));
  EXPECT_EQ(store.LoadBest()->info.updates, 2);
}

TEST_F(CheckpointStoreTest, TwoSavesOfTheSameUpdateDoNotOverwriteEachOther) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(4));
  store.Save(StateOf(2), InfoOf(4));
  ASSERT_EQ(store.Manifest().size(), 2u);
  EXPECT_EQ(store.LoadNewest()->state.counters.at("updates"), 2);
}

TEST_F(CheckpointStoreTest, CorruptNewestFallsBackToThePreviousAndSaysSo) {
  CheckpointStore store(folder_, 3);
  for (int tag = 1; tag <= 3; ++tag) store.Save(StateOf(tag), InfoOf(tag));
  const std::string newest = NewestFile();
  const auto size = static_cast<std::streamoff>(fs::file_size(folder_ / newest));
  for (const std::streamoff at : {std::streamoff{0}, std::streamoff{40}, size - 1}) {
    Damage(newest, at);
    const auto loaded = store.LoadNewest();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->info.updates, 2);
    EXPECT_NE(loaded->warning.find(newest), std::string::npos);
    Damage(newest, at);  // undo
    EXPECT_EQ(store.LoadNewest()->info.updates, 3);
  }
  fs::resize_file(folder_ / newest, 100);
  EXPECT_EQ(store.LoadNewest()->info.updates, 2);
  fs::remove(folder_ / newest);
  EXPECT_EQ(store.LoadNewest()->info.updates, 2);
}

TEST_F(CheckpointStoreTest, NewestThatHasGrownBeyondMemoryIsPassedOver) {
  CheckpointStore store(folder_, 3);
  for (int tag = 1; tag <= 2; ++tag) store.Save(StateOf(tag), InfoOf(tag));
  fs::resize_file(folder_ / NewestFile(), std::uintmax_t{2} << 30);
  const int status = testing::ExitWithRoom(std::uint64_t{512} << 20, [&] {
    if (store.LoadNewest()->info.updates != 1) return 1;
    store.Save(StateOf(3), InfoOf(3));
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store.LoadNewest()->info.updates, 3);
}

TEST_F(CheckpointStoreTest, SaveTakesTheRoomOfOneFileMore) {
  constexpr std::size_t kFloats = std::size_t{16} << 20;  // 64 MiB
  CheckpointStore store(folder_, 1);
  const TrainerState state = StateOf(1, kFloats);
  const int status = testing::ExitWithRoom(std::uint64_t{96} << 20, [&] {
    store.Save(state, InfoOf(1));
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store.LoadNewest()->info.updates, 1);
}

TEST_F(CheckpointStoreTest, LinkInTheFilesPlaceIsToldAsOneAndPassedOver) {
  CheckpointStore store(folder_, 3);
  for (int tag = 1; tag <= 2; ++tag) store.Save(StateOf(tag), InfoOf(tag));
  const fs::path newest = folder_ / NewestFile();
  fs::rename(newest, folder_ / "elsewhere");
  fs::create_symlink("elsewhere", newest);
  const auto loaded = store.LoadNewest();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->info.updates, 1);
  EXPECT_EQ(loaded->warning, newest.string() + " is a symbolic link: put the file itself there");
}

// Saves between the reading of the list and that of the files, which they remove.
class SaveBesideALoadTest : public CheckpointStoreTest {
 protected:
  void SetUp() override {
    CheckpointStoreTest::SetUp();
    writer_ = std::make_unique<CheckpointStore>(folder_, 1);
    Save();
    reader_.emplace(folder_, 1);
    reader_->SetPauseHook([](PausePoint point) {
      if (point == PausePoint::kLoadListRead && saves_ > 0) Save();
    });
  }
  static void Save() {
    --saves_;
    ++updates_;
    writer_->Save(StateOf(updates_), InfoOf(updates_, updates_));
  }

  std::optional<CheckpointStore> reader_;
  static inline std::unique_ptr<CheckpointStore> writer_;
  static inline int updates_ = 0;
  static inline int saves_ = 0;  // still to be made, one for each list that the load reads
};

TEST_F(SaveBesideALoadTest, IsWhatTheLoadFinds) {
  for (const bool best : {false, true}) {
    saves_ = 1;
    const auto loaded = best ? reader_->LoadBest() : reader_->LoadNewest();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->info.updates, updates_);
    EXPECT_EQ(loaded->warning, "");
  }
}

TEST_F(SaveBesideALoadTest, SixteenListsAreReadAtMost) {
  saves_ = 15;
  const auto loaded = reader_->LoadNewest();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->info.updates, updates_);
  saves_ = 1000;
  EXPECT_EQ(ErrorOf([&] { (void)reader_->LoadNewest(); }).code(), ExitCode::kConfig);
  EXPECT_EQ(saves_, 1000 - 16);
}

TEST_F(CheckpointStoreTest, NoUsableFileIsAnErrorThatNamesEach) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(1));
  store.Save(StateOf(2), InfoOf(2));
  for (const ManifestEntry& entry : store.Manifest()) Damage(entry.file, 60);
  try {
    (void)store.LoadNewest();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("000000000001"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("000000000002"), std::string::npos);
  }
}

TEST_F(CheckpointStoreTest, OtherConfigurationIsRefusedUnlessForced) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(1));
  try {
    (void)store.LoadNewest(0x1234);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("abcdef0123456789"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("0000000000001234"), std::string::npos);
  }
  EXPECT_TRUE(store.LoadNewest(0x1234, /*force=*/true).has_value());
  EXPECT_TRUE(store.LoadNewest(0).has_value());
}

TEST_F(CheckpointStoreTest, ManifestThatCannotBeLookedAtIsNoMissingOne) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(1));
  const std::string file = NewestFile();
  fs::rename(folder_ / "manifest.json", folder_ / "kept");
  fs::create_symlink("manifest.json", folder_ / "manifest.json");  // to itself
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [&] { (void)store.Manifest(); }, [&] { (void)store.LoadNewest(); },
           [&] { store.Save(StateOf(2), InfoOf(2)); }}) {
    EXPECT_EQ(ErrorOf(call).code(), ExitCode::kTryAgain);
  }
  EXPECT_TRUE(fs::exists(folder_ / file)) << "no listed checkpoint is taken for a remain";
  fs::rename(folder_ / "kept", folder_ / "manifest.json");
  EXPECT_EQ(store.LoadNewest()->info.updates, 1);
}

TEST_F(CheckpointStoreTest, ForeignOrEscapingManifestIsRefused) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(1));
  std::ifstream in(folder_ / "manifest.json");
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"000000000001.safetensors\", \"xx", "../evil\", \"xx"},
        {"\"version\": 1", "\"version\": 9"},
        {"checkpoints", "others"},
        {"}", ""}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    std::ofstream(folder_ / "manifest.json") << bad;
    EXPECT_THROW((void)store.LoadNewest(), Error) << from;
  }
}

// The file system's moment, or a wrong owner: the newest is not passed over for it.
TEST_F(CheckpointStoreTest, CheckpointThatCannotBeReadNowIsTriedAgainAndNotPassedOver) {
  CheckpointStore store(folder_, 2);
  store.Save(StateOf(1), InfoOf(1, 1));
  store.Save(StateOf(2), InfoOf(2, 2));
  fs::permissions(folder_ / store.Manifest().back().file, fs::perms::none);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(100);  // root may read all
    try {
      (void)store.LoadNewest();
      ::_exit(101);
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.code()));
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::kTryAgain));
}

// Property: whatever instant of Save the process dies at, the folder loads the previous or the new
// checkpoint, complete, and the next Save works and leaves no remains.
class KilledSaveTest : public CheckpointStoreTest, public ::testing::WithParamInterface<int> {
 protected:
  // Whether the manifest that names it is in place by the instant of this test.
  static bool IsPublished() { return GetParam() >= static_cast<int>(PausePoint::kManifestRenamed); }
  // Saves in a process that is killed at that instant.
  void SaveAndDie(int updates) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      die_at = GetParam();
      CheckpointStore dying(folder_, 2);
      dying.SetPauseHook([](PausePoint point) {
        if (static_cast<int>(point) == die_at) std::raise(SIGKILL);
      });
      dying.Save(StateOf(updates), InfoOf(updates, updates));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

 private:
  static inline int die_at = -1;
};

TEST_P(KilledSaveTest, LeavesACompleteCheckpoint) {
  CheckpointStore store(folder_, 2);
  for (int round = 1; round <= 10; ++round) {
    const int before = 2 * round - 1, after = 2 * round;
    store.Save(StateOf(before), InfoOf(before, before));
    ASSERT_NO_FATAL_FAILURE(SaveAndDie(after));
    const auto loaded = store.LoadNewest();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->info.updates, IsPublished() ? after : before);
    EXPECT_EQ(loaded->state.tensors[0].data,
              StateOf(static_cast<int>(loaded->info.updates)).tensors[0].data);
    EXPECT_EQ(loaded->warning, "");
  }
  store.Save(StateOf(100), InfoOf(100, 100));
  EXPECT_EQ(Files().size(), 3u);
}

// Killed again and again, before there is any checkpoint.
TEST_P(KilledSaveTest, OfTheFirstCheckpointStandsInTheWayOfNoOther) {
  CheckpointStore store(folder_, 2);
  for (int updates = 1; updates <= 3; ++updates) {
    ASSERT_NO_FATAL_FAILURE(SaveAndDie(updates));
    EXPECT_EQ(store.LoadNewest().has_value(), IsPublished());
  }
  store.Save(StateOf(4), InfoOf(4, 4));
  EXPECT_EQ(store.LoadNewest()->info.updates, 4);
}

INSTANTIATE_TEST_SUITE_P(AllPoints, KilledSaveTest, ::testing::Range(0, 8));

// On a full disk their room is what the next one needs.
TEST_F(CheckpointStoreTest, RemainsOfASaveThatDiedAreGoneBeforeTheNextIsWritten) {
  static fs::path folder;
  static int others = -1;
  folder = folder_;
  fs::create_directories(folder);
  CheckpointStore store(folder_, 2);
  store.SetPauseHook([](PausePoint point) {
    if (point != PausePoint::kFileWritten) return;
    others = static_cast<int>(fs::exists(folder / "000000000098.safetensors")) +
             static_cast<int>(fs::exists(folder / "000000000099.safetensors.partial"));
  });
  store.Save(StateOf(1), InfoOf(1));
  for (const char* remain : {"000000000098.safetensors", "000000000099.safetensors.partial",
                             "000000000099-2.safetensors"}) {
    std::ofstream(folder_ / remain) << "not in the manifest";
  }
  store.Save(StateOf(2), InfoOf(2));
  EXPECT_EQ(others, 0);
  EXPECT_EQ(Files().size(), 3U);
  EXPECT_EQ(store.LoadNewest()->info.updates, 2);
}

TEST_F(CheckpointStoreTest, CopiesUnderNamesOfAPersonStay) {
  CheckpointStore store(folder_, 1);
  store.Save(StateOf(1), InfoOf(1));
  const std::set<std::string> copies = {"my-best.safetensors", "000000000001-mine.safetensors",
                                        "1.safetensors", "000000000001-.safetensors"};
  for (const std::string& copy : copies) fs::copy(folder_ / NewestFile(), folder_ / copy);
  for (int updates = 2; updates <= 3; ++updates) store.Save(StateOf(updates), InfoOf(updates));
  for (const std::string& copy : copies) EXPECT_TRUE(fs::exists(folder_ / copy)) << copy;
}

// As after a copy that was cut short.
TEST_F(CheckpointStoreTest, CheckpointsWithoutTheirListAreRefusedAndStay) {
  CheckpointStore store(folder_, 3);
  store.Save(StateOf(1), InfoOf(1));
  const std::string file = NewestFile();
  fs::rename(folder_ / "manifest.json", folder_ / "kept");
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [&] { (void)store.Manifest(); }, [&] { (void)store.LoadNewest(); },
           [&] { store.Save(StateOf(2), InfoOf(2)); }}) {
    const Error error = ErrorOf(call);
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("without their list"), std::string::npos);
  }
  EXPECT_EQ(Files(), (std::set<std::string>{file, "kept"}));
  fs::rename(folder_ / "kept", folder_ / "manifest.json");
  EXPECT_EQ(store.LoadNewest()->info.updates, 1);
}

TEST_F(CheckpointStoreTest, FullDiskKeepsWhatWasSavedAndALaterSaveWorks) {
  CheckpointStore(folder_, 2).Save(StateOf(1), InfoOf(1));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A file size limit fails writes half way, as a full disk does.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int refused = 0;
    CheckpointStore store(folder_, 2);
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        store.Save(StateOf(2, 5000), InfoOf(2));
      } catch (const Error& error) {
        refused += error.code() == ExitCode::kTryAgain ? 1 : 0;
      }
    }
    ::_exit(refused == 3 && store.LoadNewest()->info.updates == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Files(), (std::set<std::string>{"000000000001.safetensors", "manifest.json"}));
  CheckpointStore store(folder_, 2);
  store.Save(StateOf(2, 5000), InfoOf(2));
  EXPECT_EQ(store.LoadNewest()->info.updates, 2);
}

TEST_F(CheckpointStoreTest, UnusableFolderIsOneSentence) {
  std::ofstream(folder_) << "a file, not a folder";
  try {
    CheckpointStore(folder_, 2).Save(StateOf(1), InfoOf(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find(folder_.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
