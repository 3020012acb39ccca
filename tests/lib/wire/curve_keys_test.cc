#include "lib/wire/curve_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "lib/core/error.h"
#include "tests/lib/wire/key_folder_for_test.h"

namespace tetrion::wire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What a usage error says.
std::string Complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "no error";
}

class CurveKeysTest : public ::testing::Test {
 protected:
  std::string SecretComplaint(const std::string& name) const {
    return Complaint([&] { CurveKeys::ReadSecret(folder_.File(name)); });
  }
  mode_t ModeOf(const std::string& name) const {
    struct stat status = {};
    EXPECT_EQ(stat(folder_.File(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  const KeyFolder folder_;
  const CurveKeys keys_ = CurveKeys::Make();
};

TEST_F(CurveKeysTest, FilesHoldBothHalvesWithTheirModes) {
  WriteKeyFiles(folder_.File("actor"), keys_, false);
  EXPECT_EQ(ModeOf("actor.secret"), 0400U);
  EXPECT_EQ(ModeOf("actor.pub"), 0644U);
  const CurveKeys read = CurveKeys::ReadSecret(folder_.File("actor.secret"));
  EXPECT_EQ(read.secret_key, keys_.secret_key);
  EXPECT_EQ(read.public_key, keys_.public_key);
  EXPECT_EQ(ReadPublicKey(folder_.File("actor.pub")), keys_.public_key);
}

TEST_F(CurveKeysTest, PublicFileHoldsNoSecret) {
  WriteKeyFiles(folder_.File("actor"), keys_, false);
  std::ifstream file(folder_.File("actor.pub"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, AllOf(HasSubstr(keys_.public_key), Not(HasSubstr(keys_.secret_key))));
}

TEST_F(CurveKeysTest, EveryPairIsAnother) {
  EXPECT_NE(keys_.secret_key, CurveKeys::Make().secret_key);
}

TEST_F(CurveKeysTest, ExistingFilesStayUnlessOverwritingIsSpelledOut) {
  WriteKeyFiles(folder_.File("actor"), keys_, false);
  const CurveKeys others = CurveKeys::Make();
  EXPECT_THAT(Complaint([&] { WriteKeyFiles(folder_.File("actor"), others, false); }),
              AllOf(HasSubstr("actor.secret exists"), HasSubstr("--force")));
  EXPECT_EQ(ReadPublicKey(folder_.File("actor.pub")), keys_.public_key);
  WriteKeyFiles(folder_.File("actor"), others, true);
  EXPECT_EQ(CurveKeys::ReadSecret(folder_.File("actor.secret")).secret_key, others.secret_key);
  EXPECT_EQ(ReadPublicKey(folder_.File("actor.pub")), others.public_key);
  EXPECT_EQ(ModeOf("actor.secret"), 0400U);
}

TEST_F(CurveKeysTest, FolderThatIsNotThereIsNamed) {
  EXPECT_THAT(Complaint([&] { WriteKeyFiles(folder_.File("no/actor"), keys_, false); }),
              AllOf(HasSubstr("no/actor"), HasSubstr("must exist and be writable")));
}

TEST_F(CurveKeysTest, SecretThatOthersMayReadIsRefused) {
  WriteKeyFiles(folder_.File("actor"), keys_, false);
  for (const mode_t mode : {0440U, 0404U, 0644U, 0600U | 0002U, 0610U}) {
    ASSERT_EQ(chmod(folder_.File("actor.secret").c_str(), mode), 0);
    EXPECT_THAT(SecretComplaint("actor.secret"),
                AllOf(HasSubstr("actor.secret is open to other users"), HasSubstr("chmod 400")))
        << mode;
  }
  ASSERT_EQ(chmod(folder_.File("actor.secret").c_str(), 0600), 0);
  EXPECT_EQ(CurveKeys::ReadSecret(folder_.File("actor.secret")).secret_key, keys_.secret_key);
}

TEST(ModeProblemTest, GroupMayReadWhatIsRootsAndOnlyWhenTheReaderIsNotRoot) {
  constexpr uid_t kRoot = 0, kService = 10001;
  EXPECT_THAT(ModeProblem(0440, kRoot, kService), IsEmpty());
  EXPECT_THAT(ModeProblem(0440, kRoot, kRoot), Not(IsEmpty()));
  EXPECT_THAT(ModeProblem(0440, kService, kService), Not(IsEmpty()));
  EXPECT_THAT(ModeProblem(0460, kRoot, kService), HasSubstr("mode 0460"));
  EXPECT_THAT(ModeProblem(0444, kRoot, kService), Not(IsEmpty()));
  EXPECT_THAT(ModeProblem(0400, kService, kService), IsEmpty());
  EXPECT_THAT(ModeProblem(0600, kService, kService), IsEmpty());
}

TEST_F(CurveKeysTest, FileThatIsNotThereSaysHowToMakeKeys) {
  EXPECT_THAT(SecretComplaint("none.secret"),
              AllOf(HasSubstr("none.secret: No such file"), HasSubstr("./tetrion keygen"),
                    HasSubstr("uid " + std::to_string(geteuid()))));
}

TEST_F(CurveKeysTest, FolderInAFilesPlaceIsNoKey) {
  EXPECT_THAT(SecretComplaint(""), HasSubstr("is no file"));
}

TEST_F(CurveKeysTest, OtherHalfIsRecognised) {
  WriteKeyFiles(folder_.File("actor"), keys_, false);
  EXPECT_THAT(SecretComplaint("actor.pub"),  // which others may read, as they should
              AllOf(HasSubstr("the other half"), HasSubstr("give NAME.secret")));
  EXPECT_THAT(Complaint([&] { ReadPublicKey(folder_.File("actor.secret")); }),
              HasSubstr("give NAME.pub"));
}

TEST_F(CurveKeysTest, ContentsThatAreNoKeyAreRefusedWithoutShowingThem) {
  const std::string header = "tetrion curve secret key\n";
  const struct {
    const char* what;
    std::string text, says;
  } kCases[] = {
      {"empty", "", "holds no secret key"},
      {"other", "hello\n", "holds no secret key"},
      {"bytes", std::string(2000, '\0'), "holds no secret key"},
      {"no key", header, "40 characters, this one 0"},
      {"short", header + keys_.secret_key.substr(1) + "\n", "40 characters, this one 39"},
      {"long", header + keys_.secret_key + "x\n", "40 characters, this one 41"},
      {"letters", header + std::string(40, '"') + "\n", "other characters"},
      {"number", header + std::string(40, '#') + "\n", "no number"},
  };
  for (const auto& bad : kCases) {
    folder_.Write("bad.secret", bad.text);
    ASSERT_EQ(chmod(folder_.File("bad.secret").c_str(), 0600), 0);
    const std::string complaint = SecretComplaint("bad.secret");
    EXPECT_THAT(complaint, AllOf(HasSubstr("bad.secret"), HasSubstr(bad.says))) << bad.what;
    EXPECT_THAT(complaint, Not(HasSubstr(keys_.secret_key.substr(1, 20)))) << bad.what;
  }
}

}  // namespace
}  // namespace tetrion::wire
