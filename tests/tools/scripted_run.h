#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tetrion {

// Polls until `condition` holds; false after a generous deadline.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Alive and not a zombie.
inline bool Alive(pid_t pid) {
  const std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
  const auto state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z';
}

// A scratch folder with shell scripts in it.
class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-up-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Every script has $S, this folder, and notes its pid in `pids` once its answer to SIGTERM is
  // set.
  std::string Script(const std::string& name, const std::string& body,
                     const std::string& on_sigterm = "-") const {
    const std::string script = path_ + "/" + name;
    std::ofstream(script) << "#!/bin/sh\nS=" << path_ << "\ntrap " << on_sigterm
                          << " TERM\necho $$ >> $S/pids\n"
                          << body << "\n";
    chmod(script.c_str(), 0755);
    return script;
  }
  std::vector<pid_t> Pids() const {
    std::ifstream file(path_ + "/pids");
    std::vector<pid_t> pids;
    for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
    return pids;
  }
  bool NobodyLeft() const {
    for (const pid_t pid : Pids()) {
      if (Alive(pid)) return false;
    }
    return true;
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tetrion
