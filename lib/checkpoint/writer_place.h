#pragma once

#include <cstdint>
#include <string>

#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion {

// Another process has taken the place since. Its code is kTryAgain.
struct PlaceTaken : Error {
  using Error::Error;
};

// Who writes a folder: the process that took the place last. One that was stopped or cut off for so
// long that another has taken it finds that out before it writes anything, also on another host.
//
// The file `writer` in the folder holds a number that the last taker has drawn, and its flock is
// held for a turn of writing. One that was removed or emptied is taken again by the next turn.
// Where a file system has no flock, two turns may overlap.
//
// One thread; several processes.
class WriterPlace {
 public:
  static constexpr const char* kFileName = "writer";

  // Takes nothing yet. `wait_ms`: longest wait for a turn of another process.
  explicit WriterPlace(const std::string& folder, std::int64_t wait_ms = 30'000);

  // Takes the place; the folder must exist. Waits for a turn that is under way, so that what it
  // writes is there afterwards. False where the disk refuses: then the next turn takes it, unless
  // another process has meanwhile. Throws Error when it cannot be told who has the place:
  // kTryAgain, also when a turn takes too long, or kConfig for what a person has to change.
  bool Take();

  // Begins a turn, which ends when the descriptor is closed; an invalid one, which is a turn too,
  // while Take was not called. Throws PlaceTaken, or Error(kTryAgain) when another's turn takes too
  // long or the disk refuses.
  [[nodiscard]] FileDescriptor BeginTurn();

 private:
  FileDescriptor Lock() const;
  void ReadHolder(const FileDescriptor& file);
  bool WriteToken(const FileDescriptor& file);

  const std::string path_, token_;
  const std::int64_t wait_ms_;
  bool wanted_ = false, taken_ = false;
  std::string holder_;  // what the file held at the last look
};

}  // namespace tetrion
