#include "tools/up/child_processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/run/signals.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxPendingBytes = 1 << 20;  // kept for a log file that cannot be written
constexpr std::size_t kMaxLineBytes = 4096;
constexpr int kCannotExecute = 127;

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void BecomeChild(pid_t parent, int output_fd, char* const* arguments) {
  setpgid(0, 0);
  signal(SIGHUP, SIG_DFL);  // under nohup it is ignored, and a service would not watch it
  prctl(PR_SET_PDEATHSIG, SIGHUP);
  if (getppid() != parent) _exit(kCannotExecute);  // the parent died before the line above
  const int null_fd = open("/dev/null", O_RDONLY);
  dup2(null_fd, STDIN_FILENO);
  dup2(output_fd, STDOUT_FILENO);
  dup2(output_fd, STDERR_FILENO);
  SignalWatcher::UnblockInChild();
  execv(arguments[0], arguments);
  const char* const reason = strerrordesc_np(errno);
  for (const char* part :
       {"cannot execute ", static_cast<const char*>(arguments[0]), ": ", reason, "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  }
  _exit(static_cast<int>(ExitCode::kUsage));
}

[[noreturn]] void CannotStart(const std::string& name) {
  throw Error(ExitCode::kTryAgain, "cannot start " + name + ": " + std::strerror(errno) +
                                       "; check the limits on processes and open files");
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  KillAll();
  for (auto& [pid, child] : children_) close(child.output_fd);
}

pid_t ChildProcesses::Start(const std::string& name, const std::vector<std::string>& command) {
  const auto free =
      std::find_if(live_.begin(), live_.end(), [](const auto& pid) { return pid.load() == 0; });
  if (free == live_.end()) {
    throw Error(ExitCode::kUsage, "more than " + std::to_string(kMaxChildren) + " processes");
  }
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) CannotStart(name);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(parent, fds[1], arguments.data());
  const int reason = errno;
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    errno = reason;
    CannotStart(name);
  }
  setpgid(pid, pid);  // also here: a signal may be sent before the child has come so far
  free->store(pid);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  children_[pid] = {name, fds[0]};
  return pid;
}

std::optional<ChildExit> ChildProcesses::Poll(pid_t pid) {
  const auto child = children_.find(pid);
  if (child == children_.end()) return std::nullopt;
  int status = 0;
  const pid_t reaped = waitpid(pid, &status, WNOHANG);
  Pump(child->second);
  if (reaped == 0) return std::nullopt;
  for (auto& slot : live_) {
    pid_t expected = pid;
    if (slot.compare_exchange_strong(expected, 0)) break;
  }
  kill(-pid, SIGKILL);  // grandchildren, if any
  close(child->second.output_fd);
  children_.erase(child);
  if (reaped < 0) return ChildExit{true, SIGKILL};  // KillAll was faster
  if (WIFSIGNALED(status)) return ChildExit{true, WTERMSIG(status)};
  return ChildExit{false, WEXITSTATUS(status)};
}

void ChildProcesses::Signal(pid_t pid, int signal) {
  if (children_.count(pid) != 0) kill(-pid, signal);
}

void ChildProcesses::PumpOutput() {
  for (auto& [pid, child] : children_) Pump(child);
}

void ChildProcesses::Pump(Child& child) {
  Log& log = logs_[child.name];
  char buffer[16 * 1024];
  constexpr int kMaxReads = 64;  // a child that writes without end does not keep us here
  for (int i = 0; i < kMaxReads; ++i) {
    const ssize_t n = read(child.output_fd, buffer, sizeof buffer);
    if (n <= 0) break;
    Take(log, buffer, static_cast<std::size_t>(n));
  }
  Flush(child.name, log);
}

void ChildProcesses::Take(Log& log, const char* text, std::size_t bytes) {
  if (log.pending.size() < kMaxPendingBytes) log.pending.append(text, bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (text[i] != '\n' && log.line.size() < kMaxLineBytes) {
      log.line += text[i];
    } else if (text[i] == '\n') {
      log.tail.push_back(std::move(log.line));
      log.line.clear();
      if (log.tail.size() > kTailLines) log.tail.pop_front();
    }
  }
}

void ChildProcesses::Flush(const std::string& name, Log& log) {
  if (log.pending.empty()) return;
  const std::string path = log_folder_ + "/" + name + ".log";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;  // the coordinator has not made the folder yet
  const ssize_t written = write(fd, log.pending.data(), log.pending.size());
  if (written > 0) log.pending.erase(0, static_cast<std::size_t>(written));
  close(fd);
}

std::vector<std::string> ChildProcesses::LastLines(const std::string& name) const {
  const auto log = logs_.find(name);
  if (log == logs_.end()) return {};
  std::vector<std::string> lines(log->second.tail.begin(), log->second.tail.end());
  if (!log->second.line.empty()) lines.push_back(log->second.line);
  return lines;
}

std::string ChildProcesses::LastLine(const std::string& name) const {
  const std::vector<std::string> lines = LastLines(name);
  return lines.empty() ? "" : lines.back();
}

void ChildProcesses::KillAll() {
  for (const auto& slot : live_) {
    const pid_t pid = slot.load();
    if (pid != 0) kill(-pid, SIGKILL);
  }
  const Deadline deadline = Deadline::AfterMs(2000);
  for (auto& slot : live_) {
    const pid_t pid = slot.load();
    while (pid != 0 && waitpid(pid, nullptr, WNOHANG) == 0 && !deadline.Passed()) {
      kill(-pid, SIGKILL);  // again: Start may have made it since
      usleep(1000);
    }
    slot.store(0);
  }
}

}  // namespace tetrion
