#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/core/file.h"
#include "lib/envs/picture.h"
#include "lib/envs/registry.h"

struct GifFileType;

namespace tetrion {

// Draws the records of a run's environment as its entry says: pictures of one size, of as many
// pixels a unit as a GIF has, or lines of text. Pictures allocate at construction only; one thread.
class RecordPicture {
 public:
  // `env` plays the records; its entry must outlive this.
  explicit RecordPicture(const EnvSpec& env);

  const RgbSize& size() const { return size_; }
  // [height, width, 3] u8, valid until the next call. `record` holds the environment's record.
  std::span<const std::uint8_t> Draw(const std::byte* record);
  // The same for a terminal.
  std::string Text(const std::byte* record) const;

 private:
  const PictureEntry& picture_;
  const std::size_t record_bytes_;
  const int queue_size_;
  const RgbSize size_;
  std::vector<std::uint8_t> pixels_;
};

// kPictureColours as a palette.
std::span<const PictureColour> PicturePalette();

// An animated GIF that repeats without end, written frame by frame to PATH.part and renamed to PATH
// by Finish: a reader never sees half a file. Holds two frames of one byte a pixel, whatever the
// length; a frame stores only the rectangle that changed.
//
// One thread. All calls throw Error(kUsage) naming the path when the file cannot be written.
class GifWriter {
 public:
  // Frames of `size`, at most 65535 pixels each way, shown for `frame_s` seconds each (GIF counts
  // hundredths; viewers slow down below two of them, so that is the least). `palette`: the colours
  // there are, at most 256.
  GifWriter(std::string path, const RgbSize& size, double frame_s,
            std::span<const PictureColour> palette = PicturePalette());
  // Removes the unfinished file unless Finish was called.
  ~GifWriter();
  GifWriter(const GifWriter&) = delete;
  GifWriter& operator=(const GifWriter&) = delete;

  // `rgb` is [height, width, 3] u8 in the colours of kPictureColours only (CHECKed), with the
  // palette of pictures.
  void Add(std::span<const std::uint8_t> rgb);
  // `indices` is [height, width] u8, places in the palette.
  void AddIndices(std::span<const std::uint8_t> indices);
  // Shows the last frame for `last_s` seconds more, closes and renames. At least one Add before.
  void Finish(double last_s);

  int frames() const { return frames_; }

 private:
  struct Box {
    int left, top, width, height;
  };
  // The smallest rectangle that holds every changed pixel; one pixel when nothing changed.
  Box ChangedBox() const;
  void WriteHeader(std::span<const PictureColour> palette);
  void AddNext();
  void WriteFrame(const Box& box, int delay_cs);
  [[noreturn]] void Fail(const std::string& why) const;

  FileReplacement part_;
  const RgbSize size_;
  const int delay_cs_;  // hundredths of a second
  GifFileType* gif_ = nullptr;
  int frames_ = 0;
  bool finished_ = false;
  std::vector<std::uint8_t> shown_;  // [height, width] indices of the last frame
  std::vector<std::uint8_t> next_;   // [height, width] of the frame being added
};

}  // namespace tetrion
