// tools/eval: GIFs and the pictures in them, read back with giflib.

#include <gif_lib.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "lib/core/error.h"
#include "lib/envs/tetris/tetris_rules.h"
#include "tests/support/envs_driver.h"
#include "tools/eval/gif_writer.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using Frame = std::vector<std::uint8_t>;  // [height, width, 3]

// A GIF as a viewer shows it.
struct Shown {
  int width = 0, height = 0;
  std::vector<Frame> frames;
  std::vector<int> delays_cs;
  std::vector<int> pixels_stored;  // of each frame's rectangle
  bool repeats = false;
};

Shown Read(const fs::path& path) {
  Shown shown;
  GifFileType* file = DGifOpenFileName(path.c_str(), nullptr);
  EXPECT_NE(file, nullptr);
  if (file == nullptr) return shown;
  EXPECT_EQ(DGifSlurp(file), GIF_OK);
  shown.width = file->SWidth;
  shown.height = file->SHeight;
  Frame canvas(static_cast<std::size_t>(3 * shown.width * shown.height));
  for (int i = 0; i < file->ImageCount; ++i) {
    const SavedImage& image = file->SavedImages[i];
    const GifImageDesc& box = image.ImageDesc;
    for (int y = 0; y < box.Height; ++y) {
      for (int x = 0; x < box.Width; ++x) {
        const GifColorType& colour = file->SColorMap->Colors[image.RasterBits[y * box.Width + x]];
        std::uint8_t* pixel =
            &canvas[static_cast<std::size_t>(3 * ((box.Top + y) * shown.width + box.Left + x))];
        pixel[0] = colour.Red;
        pixel[1] = colour.Green;
        pixel[2] = colour.Blue;
      }
    }
    GraphicsControlBlock control;
    EXPECT_EQ(DGifSavedExtensionToGCB(file, i, &control), GIF_OK);
    shown.frames.push_back(canvas);
    shown.delays_cs.push_back(control.DelayTime);
    shown.pixels_stored.push_back(box.Width * box.Height);
    for (int e = 0; e < image.ExtensionBlockCount; ++e) {
      shown.repeats |= image.ExtensionBlocks[e].Function == APPLICATION_EXT_FUNC_CODE;
    }
  }
  EXPECT_EQ(DGifCloseFile(file, nullptr), GIF_OK);
  return shown;
}

class GifTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("gifs-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(GifTest, FramesOfAGameReadBackAsTheyWereDrawn) {
  for (const EnvEntry& entry : Envs()) {
    const std::string& env = entry.name;
    testing::RowedEnv rows(
        {.name = env, .view = entry.ViewOfRecord(entry.picture.record), .illegal_is_noop = true});
    RecordPicture picture(rows.env->spec());
    const fs::path path = folder_ / (std::string(env) + ".gif");
    testing::Draws draws(61);
    std::vector<Frame> drawn;
    GifWriter gif(path, picture.size(), 0.1);
    rows.env->Reset(0, {.max_steps = 60});
    do {
      rows.actions[0] = draws.Below(rows.env->spec().action.count);
      rows.StepAll();
      const auto pixels = picture.Draw(rows.row.record);
      drawn.emplace_back(pixels.begin(), pixels.end());
      gif.Add(pixels);
    } while ((rows.row.flags[0] & kIsLast) == 0);
    EXPECT_EQ(gif.frames(), static_cast<int>(drawn.size()));
    EXPECT_FALSE(fs::exists(path)) << "nobody may see half a file";
    gif.Finish(2);
    const Shown shown = Read(path);
    EXPECT_EQ(shown.width, picture.size().width);
    EXPECT_EQ(shown.height, picture.size().height);
    ASSERT_EQ(shown.frames.size(), drawn.size() + 1) << "the last frame is shown once more";
    for (std::size_t i = 0; i < drawn.size(); ++i) ASSERT_EQ(shown.frames[i], drawn[i]) << i;
    EXPECT_EQ(shown.frames.back(), drawn.back());
    EXPECT_EQ(shown.delays_cs.front(), 10);
    EXPECT_EQ(shown.delays_cs.back(), 200);
    EXPECT_TRUE(shown.repeats);
  }
}

// 5 x 4, all of one colour of the palette.
Frame Plain(int colour) {
  Frame frame;
  for (int i = 0; i < 20; ++i) {
    frame.insert(frame.end(), kPictureColours[colour], kPictureColours[colour] + 3);
  }
  return frame;
}

void Paint(Frame& frame, int y, int x, int colour) {
  std::memcpy(&frame[static_cast<std::size_t>(3 * (5 * y + x))], kPictureColours[colour], 3);
}

TEST_F(GifTest, OnlyTheChangedRectangleIsStored) {
  const fs::path path = folder_ / "small.gif";
  GifWriter gif(path, {4, 5}, 0.04);
  std::vector<Frame> frames = {Plain(0), Plain(0), Plain(0), Plain(0)};
  Paint(frames[2], 0, 4, 5);  // the top right corner
  Paint(frames[3], 1, 1, 7);
  Paint(frames[3], 3, 2, 8);  // and the corner back again
  for (const Frame& frame : frames) gif.Add(frame);
  gif.Finish(1);
  const Shown shown = Read(path);
  EXPECT_EQ(shown.pixels_stored, (std::vector<int>{20, 1, 1, 4 * 4, 1}));
  for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(shown.frames[i], frames[i]) << i;
  EXPECT_EQ(shown.delays_cs, (std::vector<int>{4, 4, 4, 4, 100}));
}

TEST_F(GifTest, AnyPaletteUpTo256ColoursIsTaken) {
  for (const int colours : {2, 3, 256}) {
    std::vector<PictureColour> palette;
    for (int i = 0; i < colours; ++i) {
      palette.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(255 - i), 7});
    }
    const fs::path path = folder_ / "palette.gif";
    GifWriter gif(path, {16, 16}, 0.1, palette);
    std::vector<std::uint8_t> indices;
    for (int i = 0; i < 256; ++i) indices.push_back(static_cast<std::uint8_t>(i % colours));
    gif.AddIndices(indices);
    gif.Finish(0);
    const Frame frame = Read(path).frames.front();
    for (std::size_t i = 0; i < 256; ++i) {
      const PictureColour& colour = palette[indices[i]];
      ASSERT_EQ(frame[3 * i], colour.red) << i << " of " << colours;
      ASSERT_EQ(frame[3 * i + 1], colour.green);
      ASSERT_EQ(frame[3 * i + 2], colour.blue);
    }
  }
}

TEST_F(GifTest, ExtremeRatesBecomeTheNearestThatViewersPlay) {
  for (const auto& [seconds, delay_cs] :
       {std::pair{0.0, 2}, {0.001, 2}, {0.083, 8}, {1e9, 60000}}) {
    GifWriter gif(folder_ / "rate.gif", {4, 5}, seconds);
    gif.Add(Plain(1));
    gif.Finish(0);
    EXPECT_EQ(Read(folder_ / "rate.gif").delays_cs.front(), delay_cs);
  }
}

TEST_F(GifTest, AnUnfinishedFileIsRemovedAndTheOldOneKept) {
  const fs::path path = folder_ / "kept.gif";
  std::ofstream(path) << "old";
  {
    GifWriter gif(path, {4, 5}, 0.1);
    gif.Add(Plain(2));
  }
  EXPECT_EQ(fs::file_size(path), 3U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

// The sentence that a path is refused with.
std::string Refusal(const fs::path& path) {
  try {
    GifWriter gif(path, {400, 500}, 0.1);
    Frame noise;
    testing::Draws draws(62);
    for (int i = 0; i < 400 * 500; ++i) {
      const auto* colour = kPictureColours[draws.Below(12)];
      noise.insert(noise.end(), colour, colour + 3);
    }
    gif.Add(noise);
    gif.Finish(1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST_F(GifTest, UnusablePathsGetOneSentenceWithPathAndReason) {
  const std::string nowhere = Refusal(folder_ / "no" / "such.gif");
  EXPECT_NE(nowhere.find("no/such.gif: No such file or directory"), std::string::npos) << nowhere;
  fs::create_directories(folder_ / "folder.gif");
  const std::string is_folder = Refusal(folder_ / "folder.gif");
  EXPECT_NE(is_folder.find("Is a directory"), std::string::npos) << is_folder;
  EXPECT_FALSE(fs::exists(folder_ / "folder.gif.part"));
}

TEST_F(GifTest, ADeviceOrAPipeIsNotReplaced) {
  const std::string pipe = folder_ / "pipe.gif";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string said = Refusal(pipe);
  EXPECT_NE(said.find("no file"), std::string::npos) << said;
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// /dev/full takes nothing: what a full disk does, in the first write or at the latest in Finish.
TEST_F(GifTest, AFullDiskIsReported) {
  fs::create_symlink("/dev/full", folder_ / "full.gif.part");
  const std::string full = Refusal(folder_ / "full.gif");
  EXPECT_NE(full.find("No space left"), std::string::npos) << full;
  EXPECT_FALSE(fs::exists(folder_ / "full.gif"));
}

TEST(RecordPictureTest, CompactRecordsAreDrawnWithGreyLockedCells) {
  testing::RowedEnv plain({.name = "tetris"}), coloured({.name = "tetris", .view = "flat"});
  RecordPicture grey(plain.env->spec()), colours(coloured.env->spec());
  EXPECT_EQ(grey.size().Bytes(), colours.size().Bytes());
  for (auto* rows : {&plain, &coloured}) {
    rows->env->Reset(0, {.max_steps = 10});
    rows->StepAll();
  }
  const auto same = [&] {
    const auto a = grey.Draw(plain.row.record), b = colours.Draw(coloured.row.record);
    return std::equal(a.begin(), a.end(), b.begin());
  };
  EXPECT_TRUE(same()) << "nothing is locked yet";
  for (auto* rows : {&plain, &coloured}) {
    rows->actions[0] = kTetrisHardDrop;
    rows->StepAll();
  }
  EXPECT_FALSE(same());
}

}  // namespace
}  // namespace tetrion
