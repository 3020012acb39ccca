#include <cstdio>
#include <optional>
#include <vector>

#include "lib/run/options.h"
#include "lib/run/program.h"
#include "lib/setup/inference_choice.h"
#include "lib/setup/run_setup.h"
#include "tools/shm_size/shm_size.h"

namespace {

int Main(int argc, const char* const* argv) {
  std::vector<tetrion::Setting> given;
  tetrion::InferenceChoice choice;
  tetrion::ServiceOptions parser(
      "tetrion-shm-size", "", "Says how much shared memory a run's regions take (doctor --shm).");
  tetrion::AddInference(parser, choice);
  tetrion::AddRunSettings(parser, &given);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return *done;
  const tetrion::ShmSize size =
      tetrion::ShmSizeOf(tetrion::MakeRunConfig(given), choice.Streamed());
  std::fputs(tetrion::ShmSizeText(size).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
