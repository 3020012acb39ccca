#include <ctime>
#include <filesystem>
#include <span>

#include "lib/core/cpu_count.h"
#include "lib/core/log.h"
#include "lib/run/environment.h"
#include "lib/run/program.h"
#include "lib/run/run_folder.h"
#include "lib/run/signals.h"
#include "lib/setup/run_setup.h"
#include "lib/setup/tensor_library.h"
#include "tools/up/core_choice.h"
#include "tools/up/up.h"
#include "tools/up/up_options.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::UpOptions options;
  if (const std::optional<int> code = tetrion::ParseUpOptions(argc, argv, options)) return *code;
  const bool own_services = options.bin_dir.empty();
  if (own_services) {
    options.bin_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  }
  options.log.service = "up";
  tetrion::SetUpLogging(options.log);
  for (const std::string& variable : options.unheard) {
    tetrion::log::warn(
        "{} is an option of services, which up starts without it: set it in their sections of a "
        "--config file",
        variable);
  }
  std::string name;
  if (options.resume.empty()) {  // what is given for a resume is no whole configuration
    const std::string env = tetrion::MakeRunConfig(options.given).env;
    name = tetrion::DefaultRunName(env, std::time(nullptr));
  }
  const int cores = tetrion::UsableCpus();
  tetrion::RunPlan plan = tetrion::PlanRun(options, name, cores);
  if (own_services) {
    tetrion::RequireTensorLibrary(plan.config, "tetrion-up",
                                  std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  }
  tetrion::ForgetOptionVariables();  // the services are told by flags
  tetrion::SignalWatcher signals;
  tetrion::log::debug("tetrion-up {} ({})", tetrion::Version(), tetrion::Revision());
  if (!options.threads) {
    if (const auto code = tetrion::ChooseCores(plan, cores, signals, options)) return *code;
    plan = tetrion::PlanRun(options, name, cores);
  }
  tetrion::Up up(options, std::move(plan), signals);
  return up.Run();
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
