#include "lib/run/options.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A program with one option of every kind.
struct Program {
  int workers = 2;
  std::uint32_t port = 0;
  std::int64_t offset = -5;
  std::uint64_t big = 7;
  double rate = 0.5;
  std::optional<int> threads = 0;
  std::string folder = "runs";
  std::string mode = "fast";
  bool resume = false;
  std::string what;
  LogConfig log;
  std::vector<Setting> given;
  ServiceOptions options{"tetrion-actor", "actor", "Plays episodes."};

  Program() {
    options.Add("workers", &workers, "worker threads", 1, 64, "workers");
    options.Add("port", &port, "HTTP port", 0, 65535);
    options.Add("offset", &offset, "an offset", -10, 10);
    options.Add("big", &big, "a large number", 0, 1ULL << 63);
    options.AddNumberOr("threads", "auto", &threads, "compute threads", 0, 8, "threads");
    options.Add("lease-rate", &rate, "a rate", 0.0, 1.0, "1/s");
    options.Add("run-folder", &folder, "the run's folder");
    options.Add("mode", &mode, "how", {"fast", "slow"});
    options.AddFlag("resume", &resume, "go on");
    options.AddPositional("what", &what, "what to do");
    options.AddLogging(&log);
    options.AddRun(&given, {{"window", ", as told elsewhere"}});
  }

  // The defaults with what was given.
  RunConfig Config() const {
    RunConfig config;
    for (const Setting& setting : given) Apply(setting, config);
    return config;
  }

  std::optional<int> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "tetrion-actor");
    return options.Parse(static_cast<int>(arguments.size()), arguments.data());
  }
};

// What parsing complains about; "" when it is content.
std::string Complaint(std::vector<const char*> arguments) {
  Program program;
  try {
    EXPECT_EQ(program.Parse(std::move(arguments)), std::nullopt);
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 2);
    return error.what();
  }
  return "";
}

// A config file that lives as long as the object.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("tetrion-options-" + std::to_string(getpid()) + ".toml")) {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const char* path() const { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

// A variable of the environment that lives as long as the object.
class SetVariable {
 public:
  SetVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~SetVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST(OptionsTest, DefaultsStayWithoutArguments) {
  Program program;
  EXPECT_EQ(program.Parse({}), std::nullopt);
  EXPECT_EQ(program.workers, 2);
  EXPECT_EQ(program.offset, -5);
  EXPECT_EQ(program.mode, "fast");
  EXPECT_TRUE(program.given.empty());
  EXPECT_FALSE(program.options.Given("workers"));
}

TEST(OptionsTest, EveryKindOfValueIsRead) {
  Program program;
  EXPECT_EQ(program.Parse({"--workers", "64", "--port=65535", "--offset", "-10", "--big",
                           "9223372036854775808", "--threads", "4", "--lease-rate", "1e-3",
                           "--run-folder", "/tmp/x y", "--mode=slow", "--resume", "play",
                           "--log-format", "json"}),
            std::nullopt);
  EXPECT_EQ(program.workers, 64);
  EXPECT_EQ(program.port, 65535U);
  EXPECT_EQ(program.offset, -10);
  EXPECT_EQ(program.big, 1ULL << 63);
  EXPECT_EQ(program.threads, 4);
  EXPECT_EQ(program.rate, 1e-3);
  EXPECT_EQ(program.folder, "/tmp/x y");
  EXPECT_EQ(program.mode, "slow");
  EXPECT_TRUE(program.resume);
  EXPECT_EQ(program.what, "play");
  EXPECT_TRUE(program.log.json);
  EXPECT_TRUE(program.options.Given("workers"));
}

TEST(OptionsTest, EmptyValueBehindAnEqualsSignTakesNoOtherWord) {
  Program program;
  program.folder = "runs/before";
  EXPECT_EQ(program.Parse({"--run-folder=", "--resume", "--workers", "3", "play"}), std::nullopt);
  EXPECT_EQ(program.folder, "");
  EXPECT_TRUE(program.resume);
  EXPECT_EQ(program.workers, 3);
  EXPECT_EQ(program.what, "play");
  EXPECT_EQ(Complaint({"--workers=", "3"}), "--workers=: expected 1 to 64 workers");
  EXPECT_EQ(Complaint({"--mode="}), "--mode=: expected one of fast|slow");
  EXPECT_THAT(Complaint({"--resume="}), HasSubstr("--resume=: expected true or false"));
}

TEST(OptionsTest, WordThatIsAnOptionsValueIsLookedAtNoFurther) {
  Program program;
  EXPECT_EQ(program.Parse({"--run-folder", "--workers=", "--mode", "slow"}), std::nullopt);
  EXPECT_EQ(program.folder, "--workers=");
  EXPECT_EQ(program.mode, "slow");
}

TEST(OptionsTest, EmptyConfigFileOnTheCommandLineIsNoneWhateverTheVariableNames) {
  const ConfigFile file("[run]\nlanes = 8\n");
  const SetVariable variable("TETRION_CONFIG", file.path());
  Program with, without;
  EXPECT_EQ(with.Parse({}), std::nullopt);
  EXPECT_EQ(without.Parse({"--config="}), std::nullopt);
  EXPECT_FALSE(with.given.empty());
  EXPECT_TRUE(without.given.empty());
}

TEST(OptionsTest, LastOfRepeatedOptionsWins) {
  Program program;
  EXPECT_EQ(program.Parse({"--workers", "3", "--workers", "4"}), std::nullopt);
  EXPECT_EQ(program.workers, 4);
}

TEST(OptionsTest, WordInPlaceOfANumberIsNoNumber) {
  Program program;
  EXPECT_EQ(program.Parse({"--threads", "3", "--threads", "auto"}), std::nullopt);
  EXPECT_EQ(program.threads, std::nullopt);
  EXPECT_THAT(program.options.Help(), HasSubstr("(auto or 0 to 8 threads, default 0)"));
  for (const char* wrong : {"9", "-1", "auto "}) {
    EXPECT_EQ(Complaint({"--threads", wrong}),
              "--threads " + std::string(wrong) + ": expected auto or 0 to 8 threads");
  }
  EXPECT_EQ(Complaint({"--threads", ""}), "--threads=: expected auto or 0 to 8 threads");
}

TEST(OptionsTest, RefusalNamesOptionValueAndRange) {
  EXPECT_EQ(Complaint({"--workers", "0"}), "--workers 0: expected 1 to 64 workers");
  EXPECT_EQ(Complaint({"--workers", "65"}), "--workers 65: expected 1 to 64 workers");
  EXPECT_EQ(Complaint({"--workers", "many"}), "--workers many: expected 1 to 64 workers");
  EXPECT_EQ(Complaint({"--lease-rate", "nan"}), "--lease-rate nan: expected 0 to 1 1/s");
  EXPECT_EQ(Complaint({"--mode", "slowly"}), "--mode slowly: expected one of fast|slow");
  EXPECT_EQ(Complaint({"--lanes", "0"}), "--lanes 0: expected 1 to 4096 lanes");
  EXPECT_THAT(Complaint({"--resume=perhaps"}), HasSubstr("resume"));
  EXPECT_THAT(Complaint({"--workers"}), HasSubstr("workers"));
}

TEST(OptionsTest, UnknownOptionSuggestsTheNearest) {
  EXPECT_THAT(Complaint({"--wokers", "3"}),
              HasSubstr("unknown option --wokers; did you mean --workers?"));
  EXPECT_THAT(Complaint({"--commit_stride=4"}), HasSubstr("did you mean --commit-stride?"));
  EXPECT_THAT(Complaint({"--zzzzzzzz"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(Complaint({"play", "twice"}), HasSubstr("unexpected argument 'twice'"));
}

TEST(OptionsTest, MissingRequiredArgumentIsNamed) {
  std::string run;
  ServiceOptions options("tetrion-eval", "", "Evaluates.");
  options.AddPositional("run", &run, "name of the run", true);
  const char* argv[] = {"tetrion-eval"};
  try {
    (void)options.Parse(1, argv);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "missing argument run: name of the run");
  }
}

TEST(OptionsTest, RunSettingsAreCollectedOnlyWhenGiven) {
  Program program;
  EXPECT_EQ(program.Parse({"--lanes", "8", "--iid-pieces", "--discount", "0.990"}), std::nullopt);
  ASSERT_EQ(program.given.size(), 3U);
  const RunConfig config = program.Config();
  EXPECT_EQ(config.lanes, 8);
  EXPECT_TRUE(config.iid_pieces);
  EXPECT_EQ(config.vtrace.discount, 0.99);
}

TEST(OptionsTest, CommandLineBeatsTheConfigFile) {
  const ConfigFile file(
      "[run]\nlanes = 8\nwindow = 16\n[actor]\nworkers = 5\nmode = \"slow\"\nresume = true\n");
  Program program;
  EXPECT_EQ(
      program.Parse({"--config", file.path(), "--workers", "6", "--lanes=9", "--resume=false"}),
      std::nullopt);
  EXPECT_EQ(program.workers, 6);
  EXPECT_EQ(program.mode, "slow");
  EXPECT_FALSE(program.resume);
  const RunConfig config = program.Config();
  EXPECT_EQ(config.lanes, 9);
  EXPECT_EQ(config.window, 16);
  EXPECT_EQ(program.given.size(), 2U);
}

TEST(OptionsTest, TheEnvironmentBeatsTheConfigFileAndTheCommandLineBeatsBoth) {
  const ConfigFile file(
      "[run]\nlanes = 8\nwindow = 16\nseed = 5\n[actor]\nworkers = 5\nport = 5\n");
  const SetVariable config("TETRION_CONFIG", file.path()), workers("TETRION_WORKERS", "6"),
      port("TETRION_PORT", "6"), lanes("TETRION_LANES", "9"), window("TETRION_WINDOW", "17");
  Program program;
  EXPECT_EQ(program.Parse({"--port", "7", "--window", "18"}), std::nullopt);
  EXPECT_EQ(program.workers, 6);
  EXPECT_EQ(program.port, 7U);
  EXPECT_TRUE(program.options.Given("workers"));
  EXPECT_EQ(program.options.config_file(), file.path());
  const RunConfig run = program.Config();
  EXPECT_EQ(run.lanes, 9);
  EXPECT_EQ(run.window, 18);
  EXPECT_EQ(run.seed, 5U);
  EXPECT_EQ(program.given.size(), 3U);
}

TEST(OptionsTest, AFlagInTheEnvironmentIsAWordAndAnEmptyVariableIsNone) {
  for (const auto& [text, value] :
       {std::pair{"1", true}, {"true", true}, {"0", false}, {"", false}}) {
    const SetVariable resume("TETRION_RESUME", text), workers("TETRION_WORKERS", "");
    Program program;
    EXPECT_EQ(program.Parse({}), std::nullopt);
    EXPECT_EQ(program.resume, value) << text;
    EXPECT_EQ(program.options.Given("resume"), *text != '\0');
    EXPECT_EQ(program.workers, 2);
  }
  const SetVariable resume("TETRION_RESUME", "true");
  Program program;
  EXPECT_EQ(program.Parse({"--resume=false"}), std::nullopt);
  EXPECT_FALSE(program.resume);
}

TEST(OptionsTest, RefusalOfAVariableNamesItWithValueAndRange) {
  const auto complaint = [](const char* name, const char* value) {
    const SetVariable variable(name, value);
    return Complaint({});
  };
  EXPECT_EQ(complaint("TETRION_WORKERS", "0"), "TETRION_WORKERS=0: expected 1 to 64 workers");
  EXPECT_EQ(complaint("TETRION_COMMIT_STRIDE", "x"),
            "TETRION_COMMIT_STRIDE=x: expected 1 to 65536 rows");
  EXPECT_EQ(complaint("TETRION_RESUME", "2"), "TETRION_RESUME=2: expected true or false");
  EXPECT_EQ(complaint("TETRION_CONFIG", "/no/such.toml"),
            "cannot read the config file /no/such.toml: No such file or directory");
  EXPECT_EQ(complaint("TETRION_WHAT", "an argument without a name"), "");
}

TEST(OptionsTest, VariablesOfOtherProgramsAreLeftAloneAndUnknownOnesWarnedOf) {
  const SetVariable others("TETRION_CHECKPOINT_EVERY", "never"), script("TETRION_JOBS", "1"),
      unknown("TETRION_WRKERS", "3");
  Program program;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(program.Parse({}), std::nullopt);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "tetrion-actor: warning: the environment has TETRION_WRKERS, which no program reads; did "
      "you mean TETRION_WORKERS?\n");
  EXPECT_EQ(program.options.VariablesOfOthers(),
            std::vector<std::string>{"TETRION_CHECKPOINT_EVERY"});
}

TEST(OptionsTest, ProgramMayLeaveTheVariablesOfARunsProgramsAlone) {
  const SetVariable workers("TETRION_WORKERS", "6"), port("TETRION_PORT", "7");
  Program program;
  program.options.ReadVariablesOf({"port"});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(program.Parse({}), std::nullopt);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(program.workers, 2);
  EXPECT_FALSE(program.options.Given("workers"));
  EXPECT_EQ(program.port, 7U);
  const std::string said =
      "--port (TETRION_PORT) and --config (TETRION_CONFIG) are also read from the environment";
  EXPECT_NE(program.options.Help().find("Options; " + said + "; the\n"), std::string::npos);
  EXPECT_NE(program.options.Markdown().find("\nOnly " + said + ".\n"), std::string::npos);
}

TEST(OptionsTest, SettingsOfTheAlgorithmHaveASectionAndOlderFilesHaveThemInRun) {
  for (const char* text : {"[run]\nlanes = 8\n[run.vtrace]\nreuse = 3\nppo-clip = 0.1\n",
                           "[run]\nlanes = 8\nreuse = 3\nppo_clip = 0.1\n"}) {
    const ConfigFile file(text);
    Program program;
    EXPECT_EQ(program.Parse({"--config", file.path(), "--ppo-clip", "0.3"}), std::nullopt);
    const RunConfig config = program.Config();
    EXPECT_EQ(config.vtrace.reuse, 3);
    EXPECT_EQ(config.vtrace.ppo_clip, 0.3);
    EXPECT_EQ(program.given.size(), 3U);
  }
}

TEST(OptionsTest, ASettingIsTheSameOptionWhereverItStood) {
  EXPECT_EQ(FlagOf({"vtrace.ppo_clip", "0.1"}), "--ppo-clip=0.1");
  EXPECT_EQ(FlagOf({"iid_pieces", "false"}), "--iid-pieces=false");
}

TEST(OptionsTest, OtherServicesSectionsAreLeftToThem) {
  const ConfigFile file("[coordinator]\nno_such_key = 1\n[learner]\nthreads = 2\n");
  EXPECT_EQ(Complaint({"--config", file.path()}), "");
}

TEST(OptionsTest, ConfigFileErrorsSayWhere) {
  const auto complaint = [](const std::string& text) {
    const ConfigFile file(text);
    return Complaint({"--config", file.path()});
  };
  EXPECT_THAT(complaint("[actor]\nwokers = 3\n"),
              HasSubstr("[actor] wokers: unknown key; did you mean workers?"));
  EXPECT_THAT(complaint("[run]\nlane = 3\n"),
              HasSubstr("[run] lane: unknown key; did you mean lanes?"));
  EXPECT_THAT(complaint("[actor]\nlanes = 3\n"),
              HasSubstr("[actor] lanes: unknown key; it belongs in [run]"));
  EXPECT_THAT(complaint("[run]\nworkers = 3\n"), HasSubstr("[run] workers: unknown key"));
  EXPECT_THAT(complaint("[run.vtrace]\nlanes = 3\n"),
              HasSubstr("[run.vtrace] lanes: unknown key; it belongs in [run]"));
  EXPECT_THAT(complaint("[run.vtrace]\nreus = 3\n"), HasSubstr("did you mean reuse?"));
  EXPECT_THAT(complaint("[run.vtrac]\nreuse = 3\n"), HasSubstr("[run.vtrac] reuse: unknown key"));
  EXPECT_THAT(complaint("[actor.more]\nworkers = 3\n"), HasSubstr("more: expected a string"));
  EXPECT_THAT(complaint("[actor]\nworkers = 0\n"),
              HasSubstr("workers = '0': expected 1 to 64 workers"));
  EXPECT_THAT(complaint("[actors]\nworkers = 1\n"), HasSubstr("unknown section: actors"));
  EXPECT_THAT(complaint("workers = 1\n"), HasSubstr("outside a section: workers"));
  EXPECT_THAT(complaint("[actor]\nworkers = [1]\n"), HasSubstr("workers: expected a string"));
  EXPECT_THAT(complaint("[actor]\nworkers = \n"), HasSubstr(":2: "));
  EXPECT_THAT(Complaint({"--config", "/no/such/file.toml"}), HasSubstr("/no/such/file.toml"));
}

TEST(OptionsTest, HelpShowsRangeUnitAndDefaultOfEverything) {
  Program program;
  const std::string help = program.options.Help();
  EXPECT_THAT(help, HasSubstr("--workers N"));
  EXPECT_THAT(help, HasSubstr("worker threads (1 to 64 workers, default 2)"));
  EXPECT_THAT(help, HasSubstr("(fast|slow, default fast)"));
  EXPECT_THAT(help, HasSubstr("--commit-stride N"));
  EXPECT_THAT(help, HasSubstr("(0 to 1, default 0.997)"));
  EXPECT_THAT(help, HasSubstr("--config FILE"));
  EXPECT_THAT(help, HasSubstr("[what]"));
}

// Its file would set nothing, and the user would believe that it counts.
TEST(OptionsTest, ProgramWithoutASectionAndRunSettingsHasNoConfigFile) {
  const SetVariable config("TETRION_CONFIG", "/no/such/file.toml");
  ServiceOptions options("tetrion-tool", "", "a tool");
  int size = 1;
  options.Add("size", &size, "its size", 1, 9);
  EXPECT_EQ(options.Help().find("--config"), std::string::npos);
  EXPECT_EQ(options.Help().find("config file"), std::string::npos);
  const char* const plain[] = {"tetrion-tool", "--size=3"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(options.Parse(2, plain), std::nullopt);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(size, 3);
  const char* const with_file[] = {"tetrion-tool", "--config", "/etc/t.toml"};
  try {
    (void)options.Parse(3, with_file);
    FAIL() << "the file was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown option --config"));
  }
}

TEST(OptionsTest, HelpAndVersionAreAnsweredOnStdout) {
  for (const char* flag : {"--help", "--version", "--help-markdown"}) {
    Program program;
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(program.Parse({flag}), 0);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("tetrion-actor"));
  }
}

TEST(OptionsTest, HelpOfARunSettingGoesOnWithWhatTheProgramAdds) {
  Program program;
  EXPECT_THAT(program.options.Help(), HasSubstr("dreamer 64), as told elsewhere"));
  EXPECT_THAT(program.options.RunMarkdown(), HasSubstr("dreamer 64), as told elsewhere |"));
  EXPECT_THAT(program.options.RunMarkdown(), Not(HasSubstr("lease-rate")));
}

TEST(OptionsDeathTest, DeclaringAnOptionTwiceIsABug) {
  int a = 0;
  ServiceOptions options("p", "", "d");
  options.Add("x", &a, "h", 0, 1);
  EXPECT_DEATH(options.Add("x", &a, "h", 0, 1), "twice");
}

}  // namespace
}  // namespace tetrion
