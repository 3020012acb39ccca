#include "lib/checkpoint/manifest.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "lib/core/error.h"
#include "lib/core/json.h"
#include "lib/core/json_value.h"

namespace tetrion {
namespace {

constexpr int kManifestVersion = 1;
constexpr std::size_t kHexDigits = 16;

std::string Hex(std::uint64_t value) {
  char text[kHexDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string RealText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Reads fields of a metadata map; the first bad one throws.
class FieldReader {
 public:
  FieldReader(const std::map<std::string, std::string>& fields, const std::string& origin)
      : fields_(fields), origin_(origin) {}

  const std::string& Text(const std::string& name) const {
    const auto found = fields_.find(name);
    if (found == fields_.end()) {
      throw Error(ExitCode::kConfig,
                  origin_ + " does not say its " + name + ": it was not written by this program");
    }
    return found->second;
  }

  template <typename T>
  T Integer(const std::string& name, int base = 10) const {
    const std::string& text = Text(name);
    T value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || stop != text.data() + text.size()) Unreadable(name);
    return value;
  }

  double Real(const std::string& name) const {
    const std::string& text = Text(name);
    char* stop = nullptr;
    const double value = std::strtod(text.c_str(), &stop);
    if (text.empty() || stop != text.c_str() + text.size()) Unreadable(name);
    return value;
  }

 private:
  [[noreturn]] void Unreadable(const std::string& name) const {
    throw Error(ExitCode::kConfig,
                origin_ + " has an unreadable " + name + ": \"" + Text(name) + "\"");
  }

  const std::map<std::string, std::string>& fields_;
  const std::string& origin_;
};

std::map<std::string, std::string> StringsOf(const JsonValue& object) {
  std::map<std::string, std::string> strings;
  for (const auto& [key, value] : object.members) strings[key] = value.text;
  return strings;
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> MetadataOf(const CheckpointInfo& info) {
  return {{"config_hash", Hex(info.config_hash)},
          {"run", info.run},
          {"env", info.env},
          {"network", info.network},
          {"updates", std::to_string(info.updates)},
          {"policy_version", std::to_string(info.policy_version)},
          {"env_steps", std::to_string(info.env_steps)},
          {"mean_return", RealText(info.mean_return)}};
}

CheckpointInfo InfoOf(const std::map<std::string, std::string>& metadata,
                      const std::string& origin) {
  const FieldReader fields(metadata, origin);
  return {.config_hash = fields.Integer<std::uint64_t>("config_hash", 16),
          .run = fields.Text("run"),
          .env = fields.Text("env"),
          .network = fields.Text("network"),
          .updates = fields.Integer<std::int64_t>("updates"),
          .policy_version = fields.Integer<std::int64_t>("policy_version"),
          .env_steps = fields.Integer<std::int64_t>("env_steps"),
          .mean_return = fields.Real("mean_return")};
}

std::string EncodeManifest(const std::vector<ManifestEntry>& entries) {
  const ManifestEntry* best = BestOf(entries);
  std::string text = "{\n  \"version\": " + std::to_string(kManifestVersion) +
                     ",\n  \"best\": " + JsonQuoted(best == nullptr ? "" : best->file) +
                     ",\n  \"checkpoints\": [";
  const char* comma = "";
  for (const ManifestEntry& entry : entries) {
    text += comma;
    text += "\n    {\"file\": " + JsonQuoted(entry.file) + ", \"xxhash64\": \"" +
            Hex(entry.xxhash64) + "\", \"bytes\": \"" + std::to_string(entry.bytes) + "\"";
    for (const auto& [key, value] : MetadataOf(entry.info)) {
      text += ", " + JsonQuoted(key) + ": " + JsonQuoted(value);
    }
    text += "}";
    comma = ",";
  }
  return text + "\n  ]\n}\n";
}

std::vector<ManifestEntry> DecodeManifest(const std::string& text, const std::string& origin) {
  JsonValue root;
  const bool parsed = ParseJson(text, root);
  const JsonValue* version = parsed ? root.Find("version") : nullptr;
  const JsonValue* list = parsed ? root.Find("checkpoints") : nullptr;
  if (version == nullptr || list == nullptr || list->kind != JsonValue::Kind::kArray) {
    throw Error(ExitCode::kConfig,
                origin +
                    " is not a checkpoint manifest; put a whole one back, or move the "
                    "folder away to begin anew");
  }
  if (version->text != std::to_string(kManifestVersion)) {
    throw Error(ExitCode::kConfig, origin + " has version " + version->text +
                                       ", this program reads " + std::to_string(kManifestVersion));
  }
  std::vector<ManifestEntry> entries;
  for (const JsonValue& item : list->items) {
    const std::map<std::string, std::string> strings = StringsOf(item);
    const FieldReader fields(strings, origin);
    ManifestEntry entry{.file = fields.Text("file"),
                        .xxhash64 = fields.Integer<std::uint64_t>("xxhash64", 16),
                        .bytes = fields.Integer<std::uint64_t>("bytes"),
                        .info = InfoOf(strings, origin)};
    if (!IsPlainFileName(entry.file)) {
      throw Error(ExitCode::kConfig, origin + " names a file outside its folder: " + entry.file);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

const ManifestEntry* BestOf(const std::vector<ManifestEntry>& entries) {
  const ManifestEntry* best = nullptr;
  for (const ManifestEntry& entry : entries) {
    // A NaN return never wins over a number, and always loses to one.
    const bool better = best == nullptr || std::isnan(best->info.mean_return) ||
                        entry.info.mean_return >= best->info.mean_return;
    if (better) best = &entry;
  }
  return best;
}

}  // namespace tetrion
