#pragma once

#include <vector>

#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/run/options.h"
#include "lib/run/run_config.h"

namespace tetrion {

// What a run's settings mean in the modules' own terms; every program that needs an environment or
// a row of a run asks here, so that all of them get the same.

EnvConfig EnvConfigOf(const RunConfig& run);
// Throws Error(kUsage) for an unknown environment or view, with the names there are.
EnvSpec EnvSpecOf(const RunConfig& run);
RowSpec RowSpecOf(const RunConfig& run);

// Declares every setting of a run as an option; the environments' names and defaults stand in the
// help, their presets below the settings in docs/options.md. As ServiceOptions::AddRun.
void AddRunSettings(ServiceOptions& parser, std::vector<Setting>* given);
// Declares --shm-dir, the folder of the shared regions. `if_empty`: which one that is where none is
// given. Programs that make runs choose it; a member may name the run's, and is refused another.
void AddShmDir(ServiceOptions& parser, std::string* dir, const std::string& if_empty);

// Fills the fields whose 0 or "auto" means "derive" and checks what the environment and its view
// decide (the network reads the view), then ResolveShapes. Throws Error(kUsage), also for an
// unknown environment or view, with the names there are.
void Resolve(RunConfig& config);
// Whether the run, resolved, trains a network that scores placements (scorer, columns): the ones
// that have --scorer-units and know --precision bf16.
bool HasScorer(const RunConfig& run);
// Defaults, then the presets of the environment and of the view that `given` names (or the default
// ones), then `given`, resolved. Throws as Apply and Resolve do.
RunConfig MakeRunConfig(const std::vector<Setting>& given);
// ApplyOnResume, resolved.
std::vector<SettingChange> ChangeOnResume(const std::vector<Setting>& given, RunConfig& config);

}  // namespace tetrion
