#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "lib/run/options.h"
#include "lib/run/program.h"
#include "lib/setup/run_setup.h"
#include "tools/shm_size/shm_size.h"

namespace {

int Main(int argc, const char* const* argv) {
  std::vector<tetrion::Setting> given;
  std::string inference = "local";
  tetrion::ServiceOptions parser(
      "tetrion-shm-size", "", "Says how much shared memory a run's regions take (doctor --shm).");
  parser.Add("inference", &inference, "who decides, as the actors are told", {"local", "streamed"});
  tetrion::AddRunSettings(parser, &given);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return *done;
  const tetrion::ShmSize size =
      tetrion::ShmSizeOf(tetrion::MakeRunConfig(given), inference == "streamed");
  std::fputs(tetrion::ShmSizeText(size).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
