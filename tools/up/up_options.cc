#include "tools/up/up_options.h"

#include <algorithm>
#include <filesystem>

#include "lib/core/error.h"
#include "lib/run/run_folder.h"
#include "lib/run/value_text.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"
#include "lib/setup/trainer_threads.h"
#include "tools/up/config_keys.h"
#include "tools/up/slot_plan.h"

namespace tetrion {
namespace {

constexpr const char* kDescription =
    "Starts coordinator, learner and actors of one run, watches them and shows how it goes.";

[[noreturn]] void Refuse(const std::string& message) {
  throw Error(ExitCode::kUsage, message);
}

using Command = std::vector<std::string>;

void Append(Command& command, const Command& more) {
  command.insert(command.end(), more.begin(), more.end());
}

// The user's run settings as flags.
Command RunFlags(const std::vector<Setting>& given) {
  Command flags;
  for (const Setting& setting : given) flags.push_back(FlagOf(setting));
  return flags;
}

// What every service is told.
Command CommonFlags(const UpOptions& options) {
  Command flags;
  if (options.log_format_given) {
    Append(flags, {"--log-format", options.log.json ? "json" : "text"});
  }
  if (options.log_level_given) Append(flags, {"--log-level", options.log.level});
  if (!options.config_file.empty()) Append(flags, {"--config", options.config_file});
  return flags;
}

ChildSpec Coordinator(const UpOptions& options, const RunPlan& plan,
                      const std::vector<Setting>& given) {
  const std::string program = options.bin_dir + "/tetrion-coordinator";
  Command command = {"--runs-dir", RunsDirOf(options, plan)};
  Append(command, CommonFlags(options));
  if (!options.shm_dir.empty()) Append(command, {"--shm-dir", options.shm_dir});
  Append(command, RunFlags(given));
  if (!options.init_from.empty()) Append(command, {"--init-from", options.init_from});
  Command first = {program, "--run", plan.name}, again = first;
  // A coordinator may die before it has begun the run: the next one then begins it.
  again.push_back("--or-resume");
  if (plan.resuming) first = again = {program, "--resume", plan.name};
  Append(first, command);
  Append(again, command);
  // The run counts steps, and with --or-resume time; with --resume its time is from this start.
  const double time_s = plan.resuming ? ParseStopAfter(options.stop_after).seconds : 0;
  if (!options.stop_after.empty()) Append(first, {"--stop-after", options.stop_after});
  if (!options.stop_after.empty() && time_s == 0) {
    Append(again, {"--stop-after", options.stop_after});
  }
  return {"coordinator", ChildSpec::Role::kCoordinator, first, again, time_s};
}

// With a config file the services see its [run] section, so that flags which beat the file must
// reach them all.
Command RunFlagsBesideAFile(const UpOptions& options, const std::vector<Setting>& given) {
  return options.config_file.empty() ? Command() : RunFlags(given);
}

ChildSpec Learner(const UpOptions& options, const RunPlan& plan,
                  const std::vector<Setting>& given) {
  Command command = {options.bin_dir + "/tetrion-learner", "--run-folder", plan.folder};
  Append(command, CommonFlags(options));
  // The section of a config file may say otherwise than what is usual.
  const bool all = !options.config_file.empty();
  const DeviceChoice& replay = options.replay;
  const int threads = options.threads.value_or(0);
  if (all || threads > 0) Append(command, {"--threads", std::to_string(threads)});
  if (all || replay.device != "cpu") Append(command, {"--device", replay.device});
  if (replay.resident_lanes > 0) {
    Append(command, {"--resident-lanes", std::to_string(replay.resident_lanes)});
  }
  if (all || replay.trainer != "auto") Append(command, {"--trainer-device", replay.trainer});
  Append(command, RunFlagsBesideAFile(options, given));
  Command again = command;
  again.push_back("--resume");
  return {"learner", ChildSpec::Role::kLearner, plan.resuming ? again : command, again};
}

ChildSpec Actor(const UpOptions& options, const RunPlan& plan, const std::vector<Setting>& given,
                int number) {
  const std::string name = "actor-" + std::to_string(number);
  Command command = {
      options.bin_dir + "/tetrion-actor", "--run-folder", plan.folder, "--name", name, "--workers",
      std::to_string(plan.workers)};
  if (options.Streamed()) {
    Append(command, {"--inference", "streamed", "--groups", std::to_string(options.groups)});
  }
  Append(command, CommonFlags(options));
  Append(command, RunFlagsBesideAFile(options, given));
  return {name, ChildSpec::Role::kActor, command, {}};
}

std::vector<ChildSpec> ChildrenOf(const UpOptions& options, const RunPlan& plan,
                                  const std::vector<Setting>& given) {
  std::vector<ChildSpec> children = {Coordinator(options, plan, given),
                                     Learner(options, plan, given)};
  const int actors = options.replay.resident_lanes > 0 ? 0 : options.actors;
  for (int i = 0; i < actors; ++i) children.push_back(Actor(options, plan, given, i));
  return children;
}

// Name, folder and settings of the run that is resumed.
RunPlan PlanOfOld(const UpOptions& options) {
  const RunFolder folder = RunFolder::Open(options.runs_dir, options.resume);
  // Its logs are not ours to append to, and the coordinator would refuse it later anyway.
  if (folder.InUse()) {
    Refuse(
        "run " + folder.name() +
        " is in use by a coordinator: stop that one first, or start another run with --run NAME");
  }
  RunPlan plan = {.name = folder.name(),
                  .folder = folder.path(),
                  .config = folder.ReadConfig(),
                  .resuming = true,
                  .children = {}};
  static_cast<void>(ChangeOnResume(options.given, plan.config));
  return plan;
}

// Name and folder of a run to come. Throws where there is one.
RunPlan PlaceOfNew(const UpOptions& options, const std::string& default_name) {
  RunPlan plan;
  plan.name = options.run.empty() ? default_name : options.run;
  CheckRunName(plan.name);  // before a path is made of it
  plan.folder = RunFolder::At(options.runs_dir + "/" + plan.name).path();
  // A folder without it is what is left of a beginning: the coordinator begins anew in it.
  if (RunFolder::At(plan.folder).HasConfig()) {
    Refuse("run " + plan.name + " exists in " + options.runs_dir +
           "; to go on with it: ./tetrion up --resume " +
           RunArguments(options.runs_dir, plan.name));
  }
  return plan;
}

// The settings of a run to come. Refuses, while nothing is made, what the services would.
RunConfig ConfigOfNew(const UpOptions& options) {
  RunConfig config = MakeRunConfig(options.given);
  static_cast<void>(EnvSpecOf(config));  // an unknown view
  if (!options.init_from.empty()) {
    static_cast<void>(LoadInitial(options.runs_dir, options.init_from, config));
  }
  return config;
}

bool GivesSlots(const std::vector<Setting>& given) {
  return std::any_of(given.begin(), given.end(),
                     [](const Setting& setting) { return setting.key == "max_workers"; });
}

}  // namespace

std::optional<int> ParseUpOptions(int argc, const char* const* argv, UpOptions& o) {
  ServiceOptions parser("tetrion-up", "up", kDescription);
  parser.Add("actors", &o.actors, "actor processes", 1, 64, "processes");
  parser.Add("workers", &o.workers,
             "worker threads of an actor; 0: one for every six cores, and no more than one for "
             "every five threads of the learner, shared by the actors",
             0, kMostWorkers, "threads");
  AddInference(parser, o);
  AddGroups(parser, o);
  parser.AddNumberOr("threads", "auto", &o.threads,
                     "the learner's compute threads; 0: its default; auto: short trial runs choose "
                     "them, and the workers where --workers is 0, and the choice is remembered",
                     0, kMostTrainerThreads, "threads");
  AddDeviceChoice(parser, o.replay);
  AddRunChoice(parser, o);
  parser.Add("bin-dir", &o.bin_dir, "folder of the services' programs; empty: this program's");
  parser.Add("drain-timeout", &o.drain_timeout_s,
             "after a Ctrl-C services are killed when they take longer", 1, 3600, "s");
  parser.AddLogging(&o.log);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return done;
  o.log_level_given = parser.Given("log-level");
  o.log_format_given = parser.Given("log-format");
  o.config_file = parser.config_file();
  o.unheard = parser.VariablesOfOthers();
  HearServiceSections(parser, o);
  CheckRunChoice(o);
  CheckDeviceChoice(o.replay);
  return std::nullopt;
}

RunPlan PlanRun(const UpOptions& options, const std::string& default_name, int cores) {
  if (options.runs_dir.empty()) Refuse("--runs-dir is empty: name the folder of the run folders");
  RunPlan plan = options.resume.empty() ? PlaceOfNew(options, default_name) : PlanOfOld(options);
  if (!plan.resuming) plan.config = ConfigOfNew(options);
  std::vector<Setting> given = options.given;
  const bool may_grow = !plan.resuming && !GivesSlots(given);
  plan.most_slots = may_grow ? kMaxWorkersOfRun : plan.config.max_workers;
  plan.workers = WorkersPerActor(options, plan.config, plan.most_slots, cores);
  const SlotNeed need = SlotNeedOf(options, plan.config, plan.workers);
  if (need.slots > kMaxWorkersOfRun) {
    Refuse(need.text + ", a run has at most " + std::to_string(kMaxWorkersOfRun) + "; give " +
           need.less);
  }
  if (may_grow && need.slots > plan.config.max_workers) {
    given.push_back({"max_workers", std::to_string(need.slots)});
    plan.config = MakeRunConfig(given);
  }
  if (need.slots > plan.config.max_workers) {
    Refuse(need.text + ", the run has " + std::to_string(plan.config.max_workers) +
           "; give fewer, or start a run with --max-workers " + std::to_string(need.slots));
  }
  plan.children = ChildrenOf(options, plan, given);
  return plan;
}

std::string RunsDirOf(const UpOptions& options, const RunPlan& plan) {
  const bool by_path = plan.resuming && options.resume.find('/') != std::string::npos;
  return by_path ? std::filesystem::path(plan.folder).parent_path().string() : options.runs_dir;
}

}  // namespace tetrion
