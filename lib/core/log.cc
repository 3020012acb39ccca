#include "lib/core/log.h"

#include <fcntl.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/json.h"
#include "lib/core/mutex.h"
#include "lib/core/nowait_writer.h"

namespace tetrion {
namespace {

std::atomic<std::uint64_t> log_lines{0};       // counted by sinks; pairs with LogLines
std::atomic<std::uint64_t> lost_log_lines{0};  // counted by sinks; pairs with LostLogLines

// Lines to a descriptor, dropped where it does not take them at once. Any thread.
class NoWaitSink final : public spdlog::sinks::sink {
 public:
  NoWaitSink(int fd, bool colours) : colours_(colours), writer_(fd) {}
  explicit NoWaitSink(FileDescriptor file)
      : file_(std::move(file)), colours_(false), writer_(file_.get()) {}

  void log(const spdlog::details::log_msg& message) override TETRION_EXCLUDES(mu_) {
    log_lines.fetch_add(1, std::memory_order_relaxed);
    MutexLock lock(mu_);
    if (!ReportLosses(message) || !WriteLine(message)) {
      ++unreported_;
      lost_log_lines.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void flush() override {}  // every line is written at once
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override TETRION_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    formatter_ = std::move(formatter);
  }

 private:
  // False while the descriptor does not even take the sentence.
  bool ReportLosses(const spdlog::details::log_msg& next) TETRION_REQUIRES(mu_) {
    if (unreported_ == 0) return true;
    const std::string text = "log lines lost here: " + std::to_string(unreported_) +
                             "; nothing read them, or the disk was full";
    spdlog::details::log_msg message(next.logger_name, spdlog::level::warn, text);
    message.thread_id = next.thread_id;
    if (!WriteLine(message)) return false;
    unreported_ = 0;
    return true;
  }

  bool WriteLine(const spdlog::details::log_msg& message) TETRION_REQUIRES(mu_) {
    spdlog::memory_buf_t line;
    message.color_range_start = message.color_range_end = 0;
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    const std::size_t begin = message.color_range_start, end = message.color_range_end;
    if (!colours_ || end <= begin) return writer_.Write(text);
    std::string coloured(text.substr(0, begin));
    coloured += kColours[static_cast<std::size_t>(message.level)];
    coloured += text.substr(begin, end - begin);
    coloured += kPlain;
    coloured += text.substr(end);
    return writer_.Write(coloured);
  }

  // By level: trace, debug, info, warning, error, critical, off.
  static constexpr std::array<std::string_view, spdlog::level::n_levels> kColours = {
      "\033[37m",        "\033[36m",        "\033[32m", "\033[33m\033[1m",
      "\033[31m\033[1m", "\033[1m\033[41m", "\033[m"};
  static constexpr std::string_view kPlain = "\033[m";

  const FileDescriptor file_;  // invalid: stderr
  const bool colours_;
  Mutex mu_;
  NoWaitWriter writer_ TETRION_GUARDED_BY(mu_);
  std::unique_ptr<spdlog::formatter> formatter_ TETRION_GUARDED_BY(mu_);
  std::uint64_t unreported_ TETRION_GUARDED_BY(mu_) = 0;
};

spdlog::sink_ptr StderrSink() {
  const bool colours =
      spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
  return std::make_shared<NoWaitSink>(STDERR_FILENO, colours);
}

// O_NONBLOCK: a log file may be a named pipe; one without a reader is refused.
spdlog::sink_ptr FileSink(const std::string& path) {
  std::error_code ignored;  // open says it better
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  if (!file.valid()) {
    throw Error(ExitCode::kUsage, "cannot write the log file " + path + ": " +
                                      std::strerror(errno) +
                                      "; make its folder writable or choose another --log-file");
  }
  return std::make_shared<NoWaitSink>(std::move(file));
}

// `%*` of the JSON pattern: the message as a quoted, escaped JSON string.
class QuotedMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string quoted = JsonQuoted({message.payload.data(), message.payload.size()});
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<QuotedMessage>();
  }
};

// spdlog patterns give '%' a meaning.
std::string EscapePercent(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

std::string Pattern(const LogConfig& config) {
  if (config.json) {
    return R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","service":)" +
           EscapePercent(JsonQuoted(config.service)) + R"(,"run":)" +
           EscapePercent(JsonQuoted(config.run)) + R"(,"id":)" +
           EscapePercent(JsonQuoted(config.id)) + R"(,"message":%*})";
  }
  std::string who = config.service;
  if (!config.run.empty()) who += " " + config.run;
  if (!config.id.empty()) who += " " + config.id;
  return "%H:%M:%S.%e %^%L%$ [" + EscapePercent(who) + "] %v";
}

std::unique_ptr<spdlog::formatter> FormatterOf(const LogConfig& config) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<QuotedMessage>('*').set_pattern(Pattern(config));
  return formatter;
}

// Whether lines go to the same places, whatever stands at their beginning.
bool SamePlaces(const LogConfig& a, const LogConfig& b) {
  return a.service == b.service && a.level == b.level && a.file == b.file;
}

// spdlog hands its default logger out without a lock: other threads may log while it is replaced,
// so it stays where only the pattern changes, and no logger that was one is ever freed.
struct SetUp {
  Mutex mu;
  LogConfig config TETRION_GUARDED_BY(mu);
  std::vector<std::shared_ptr<spdlog::logger>> loggers TETRION_GUARDED_BY(mu);
};

}  // namespace

std::uint64_t LogLines() {
  return log_lines.load(std::memory_order_relaxed);
}

std::uint64_t LostLogLines() {
  return lost_log_lines.load(std::memory_order_relaxed);
}

void SetUpLogging(const LogConfig& config) {
  static SetUp set_up;
  MutexLock lock(set_up.mu);
  if (!set_up.loggers.empty() && SamePlaces(set_up.config, config)) {
    set_up.loggers.back()->set_formatter(FormatterOf(config));
    return;
  }
  std::vector<spdlog::sink_ptr> sinks = {StderrSink()};
  if (!config.file.empty()) sinks.push_back(FileSink(config.file));
  auto logger = std::make_shared<spdlog::logger>(config.service, sinks.begin(), sinks.end());
  logger->set_formatter(FormatterOf(config));
  logger->set_level(spdlog::level::from_str(config.level));
  logger->flush_on(spdlog::level::info);
  // A line that cannot be made (out of memory) is lost, too; spdlog's own handler would block.
  logger->set_error_handler(
      [](const std::string&) { lost_log_lines.fetch_add(1, std::memory_order_relaxed); });
  set_up.config = config;
  set_up.loggers.push_back(logger);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tetrion
