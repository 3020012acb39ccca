#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/core/check.h"
#include "lib/wire/curve_keys.h"

namespace tetrion::wire {

// A folder of keys that goes with the test.
class KeyFolder {
 public:
  KeyFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-keys-XXXXXX";
    TETRION_CHECK(mkdtemp(pattern.data()) != nullptr, "a folder for the test");
    path_ = pattern;
  }
  ~KeyFolder() { std::filesystem::remove_all(path_); }
  KeyFolder(const KeyFolder&) = delete;
  KeyFolder& operator=(const KeyFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // NAME.pub alone, as in an allow-list, whole from its first instant.
  void Allow(const std::string& name, const CurveKeys& keys) const {
    WriteKeyFiles(path_ + "/." + name, keys, /*overwrite=*/true);
    std::filesystem::remove(File("." + name + ".secret"));
    std::filesystem::rename(File("." + name + ".pub"), File(name + ".pub"));
  }
  void Remove(const std::string& name) const { std::filesystem::remove(File(name + ".pub")); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
  }

 private:
  std::string path_;
};

}  // namespace tetrion::wire
