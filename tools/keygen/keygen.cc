#include "tools/keygen/keygen.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"
#include "lib/run/program.h"
#include "lib/wire/curve_keys.h"

namespace tetrion {
namespace {

constexpr const char* kUsage =
    "usage: ./tetrion keygen DIR NAME... [--force]\n\n"
    "Makes the keys that a process needs to talk over a network (docs/SECURITY.md), for each "
    "NAME:\n"
    "  DIR/NAME.secret   its --curve-key, for that process alone\n"
    "  DIR/NAME.pub      for its peers: --curve-server of members (the coordinator's), or into "
    "the\n"
    "                    --curve-allow folder of coordinator and learner (everyone's)\n"
    "DIR is made when it is not there. Existing files are replaced only with --force.\n";

struct Request {
  std::string folder;
  std::vector<std::string> names;
  bool force = false, help = false, version = false;
};

Request Parse(int argc, const char* const* argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--force") {
      request.force = true;
    } else if (argument == "--help" || argument == "-h") {
      request.help = true;
    } else if (argument == "--version") {
      request.version = true;
    } else if (argument.starts_with("-")) {
      throw Error(ExitCode::kUsage, "unknown option " + argument + "; --help lists them");
    } else if (request.folder.empty()) {
      request.folder = argument;
    } else {
      request.names.push_back(argument);
    }
  }
  return request;
}

void Check(const Request& request) {
  if (request.names.empty()) {
    throw Error(ExitCode::kUsage,
                std::string("give a folder and a name for each process\n") + kUsage);
  }
  for (const std::string& name : request.names) {
    if (!IsName(name) || name.starts_with(".")) {
      throw Error(ExitCode::kUsage,
                  "a name has 1 to 64 letters, digits, '.', '_' and '-' and begins with no '.': '" +
                      name + "' does not; the folder comes first");
    }
    if (std::count(request.names.begin(), request.names.end(), name) > 1) {
      throw Error(ExitCode::kUsage, "'" + name + "' is given twice: give each process a name");
    }
  }
}

// Before the first key is made: a refusal half-way would leave some of them.
void CheckAbsent(const Request& request) {
  for (const std::string& name : request.names) {
    for (const char* suffix : {".secret", ".pub"}) {
      const std::string path = request.folder + "/" + name + suffix;
      struct stat status = {};
      if (lstat(path.c_str(), &status) != 0) continue;
      throw Error(ExitCode::kUsage,
                  path +
                      " exists, no key was made: choose another name, or replace it with "
                      "--force (peers must then get the new NAME.pub)");
    }
  }
}

void MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) == 0) return;
  const int error = errno;
  if (error == EEXIST && std::filesystem::is_directory(folder)) return;
  throw Error(ExitCode::kUsage, "cannot make the folder " + folder + ": " + std::strerror(error) +
                                    "; its parent must exist and be writable");
}

}  // namespace

int RunKeygen(int argc, const char* const* argv, std::ostream& out) {
  const Request request = Parse(argc, argv);
  if (request.help || request.version) {
    out << (request.help ? kUsage : std::string("tetrion-keygen ") + Version() + "\n");
    return 0;
  }
  Check(request);
  if (!request.force) CheckAbsent(request);
  MakeFolder(request.folder);
  for (const std::string& name : request.names) {
    const std::string stem = request.folder + "/" + name;
    wire::WriteKeyFiles(stem, wire::CurveKeys::Make(), request.force);
    out << stem << ".secret  " << stem << ".pub\n";
  }
  return 0;
}

}  // namespace tetrion
