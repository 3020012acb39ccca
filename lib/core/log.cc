#include "lib/core/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

// `%*` of the JSON pattern: the message as a quoted, escaped JSON string.
class QuotedMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string quoted =
        JsonQuoted(std::string(message.payload.data(), message.payload.size()));
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

}  // namespace

std::string JsonQuoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void SetUpLogging(const LogConfig& config) {
  std::vector<spdlog::sink_ptr> sinks = {std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  if (!config.file.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(config.file));
    } catch (const spdlog::spdlog_ex& error) {
      throw Error(ExitCode::kUsage, "cannot write the log file " + config.file + ": " +
                                        error.what() +
                                        "; make its folder writable or choose another run folder");
    }
  }
  auto logger = std::make_shared<spdlog::logger>(config.service, sinks.begin(), sinks.end());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<QuotedMessage>('*').set_pattern(Pattern(config));
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(config.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tetrion
