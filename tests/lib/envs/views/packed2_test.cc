#include "lib/envs/views/packed2.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/gym_views.h"
#include "lib/envs/views/packed2_band.h"
#include "tests/lib/envs/greedy_placement.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

using L = Packed2Layout;

class Image {
 public:
  explicit Image(const TetrisRecord& record) : bytes_(static_cast<std::size_t>(L::kBytes) + 1, 9) {
    ExpandPacked2(reinterpret_cast<const std::byte*>(&record), sizeof(record), 1, bytes_.data());
    EXPECT_EQ(bytes_.back(), 9) << "wrote past the picture";
    bytes_.pop_back();
  }
  int Pixel(int y, int x) const {
    return bytes_[static_cast<std::size_t>(y * L::kRowBytes + x / 4)] >> (2 * (x % 4)) & 3;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  // A grey map of 3 - shade, so that viewers show black as black.
  std::string Pgm() const {
    std::string text = "P2\n80 72\n3\n";
    for (int y = 0; y < L::kRows; ++y) {
      for (int x = 0; x < L::kColumns; ++x) {
        text += static_cast<char>('0' + 3 - Pixel(y, x));
        text += x + 1 == L::kColumns ? '\n' : ' ';
      }
    }
    return text;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// The picture from its description, pixel by pixel.
int ExpectedPixel(const TetrisRecord& record, int y, int x) {
  const auto piece_at = [](int id, int rotation, int row, int column) {
    return row >= 0 && row < 4 && column >= 0 && column < 4 &&
           (PieceRows(id, rotation) >> (16 * row + column) & 1) != 0;
  };
  if (y >= 6 && y < 66 && x >= 8 && x < 38) {
    const int r = (y - 6) / 3, c = (x - 8) / 3;
    if (r < TopRow(record)) return 1;
    const TetrisPiece piece = UnpackActive(record.active);
    if (piece_at(piece.id, piece.rotation, r - piece.y, c + 4 - piece.x)) return 3;
    return (FieldRow(record, r) >> c & 1) != 0 ? 2 : 0;
  }
  if (y >= 6 && y < 68 && x >= 6 && x < 40) return 1;
  if (y >= 6 && y < 18 && x >= 48 && x < 60 && HolderId(record) != kTetrisNoPiece) {
    if (piece_at(HolderId(record), HolderRotation(record), (y - 6) / 3, (x - 48) / 3))
      return HasSwapped(record) ? 1 : 3;
  }
  for (int slot = 0; slot < QueueSize(record); ++slot) {
    const int top = 24 + slot % 4 * 9, left = slot < 4 ? 48 : 64;
    if (y < top || y >= top + 6 || x < left || x >= left + 12) continue;
    if (piece_at(QueueSlot(record, slot), 0, (y - top) / 3, (x - left) / 3)) return 3;
  }
  return 0;
}

// The 40th state of a mostly sensible game with `queue_size` pieces in the preview.
TetrisRecord MidGame(int queue_size) {
  PhiloxPieces pieces = PhiloxPieces::Of(2, 7, false);
  TetrisRecord record;
  TetrisReset(record, {queue_size}, pieces);
  (void)TetrisStep(record, kTetrisClockwise, pieces);
  (void)TetrisStep(record, kTetrisSwap, pieces);
  for (int i = 0; i < 40; ++i) {
    const int action = i % 5 == 4 ? 20 : testing::GreedyPlacement(record);
    (void)PlacementStep(record, action, true, pieces);
  }
  return record;
}

TEST(Packed2Test, EveryPixelIsTheDescribedOne) {
  testing::Draws draws(71);
  for (std::uint64_t token = 0; token < 30; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(3, token, false);
    TetrisRecord record;
    const int rows = token < 15 ? kTetrisRows : 5 + static_cast<int>(token % 16);
    TetrisReset(record, {1 + static_cast<int>(token % 7), rows}, pieces);
    for (bool over = false; !over;) {
      over = TetrisStep(record, draws.Below(kTetrisActions), pieces).terminated;
      if (!over && draws.Below(6) != 0) continue;
      const Image image(record);
      for (int y = 0; y < L::kRows; ++y) {
        for (int x = 0; x < L::kColumns; ++x)
          ASSERT_EQ(image.Pixel(y, x), ExpectedPixel(record, y, x))
              << token << ": " << y << ' ' << x;
      }
    }
  }
}

// tests/golden/packed2_*.pgm; written anew with TETRION_WRITE_GOLDEN=1 in the environment.
TEST(Packed2Test, PicturesEqualTheGoldenOnes) {
  PhiloxPieces pieces = PhiloxPieces::Of(2, 5, false);
  TetrisRecord start;
  TetrisReset(start, {4}, pieces);
  TetrisRecord swapped = start;
  (void)TetrisStep(swapped, kTetrisSwap, pieces);
  for (const auto& [name, record] :
       {std::pair{"start", start}, {"swapped", swapped}, {"midgame", MidGame(7)}}) {
    const std::string path = std::string(TETRION_GOLDEN "/packed2_") + name + ".pgm";
    const std::string drawn = Image(record).Pgm();
    if (std::getenv("TETRION_WRITE_GOLDEN") != nullptr) std::ofstream(path) << drawn;
    std::ifstream file(path);
    std::ostringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(drawn, golden.str()) << path;
  }
}

TEST(Packed2Test, ColourRecordsAreDrawnAsTheirCompactPart) {
  std::vector<ColourRecord> records = {UncolouredRecord(MidGame(3)), UncolouredRecord(MidGame(6))};
  std::vector<std::uint8_t> images(static_cast<std::size_t>(2 * L::kBytes));
  ExpandPacked2(reinterpret_cast<const std::byte*>(records.data()), sizeof(ColourRecord), 2,
                images.data());
  const Image one(records[0].compact), two(records[1].compact);
  EXPECT_NE(one.bytes(), two.bytes());
  EXPECT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), images.begin()));
  EXPECT_TRUE(std::equal(two.bytes().begin(), two.bytes().end(), images.begin() + L::kBytes));
}

TEST(Packed2Test, ArbitraryBytesAreDrawnAsTheRecordThatTheyAreTakenFor) {
  testing::Draws draws(72);
  for (int i = 0; i < 3000; ++i) {
    std::uint32_t words[16];
    for (auto& word : words) word = i == 0 ? 0 : i == 1 ? 0xFFFFFFFF : draws.Word();
    TetrisRecord record;
    std::memcpy(&record, words, sizeof(record));
    const Image image(record);
    ASSERT_EQ(image.bytes(), Image(Sanitized(record)).bytes());
    ASSERT_EQ(image.Pixel(66, 20), 1);
    ASSERT_EQ(image.Pixel(5, 20), 0);
    ASSERT_EQ(image.Pixel(40, 79), 0);
  }
}

// Of states of play, and of any bytes.
TEST(Packed2Test, BandsOfWordsEqualTheBytesOfThePicture) {
  testing::Draws draws(73);
  for (int i = 0; i < 2000; ++i) {
    TetrisRecord record;
    std::uint32_t words[16];
    for (auto& word : words) word = draws.Word();
    std::memcpy(&record, words, sizeof(record));
    if (i % 2 == 0) record = MidGame(1 + i / 2 % 7);
    record = Sanitized(record);
    const Image image(record);
    for (int band = 0; band < Packed2Band::kCount; ++band) {
      std::array<std::uint32_t, Packed2Band::kWords> drawn;
      DrawPacked2Band(record, band, drawn.data());
      ASSERT_EQ(std::memcmp(drawn.data(), image.bytes().data() + sizeof drawn * band, sizeof drawn),
                0)
          << band;
    }
  }
}

TEST(Packed2Test, EveryByteIsFourShades) {
  std::vector<std::byte> picture(static_cast<std::size_t>(L::kBytes));
  for (std::size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<std::byte>(i % 256);
  std::vector<float> shades(4 * picture.size());
  ExpandPacked2Shades(picture.data(), 1, 4, shades.data());
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t pixel = 0; pixel < 4; ++pixel) {
      const auto shade = static_cast<float>(byte >> (2 * pixel) & 3);
      ASSERT_EQ(shades[4 * byte + pixel], shade / 3.0F) << byte << " " << pixel;
    }
  }
}

TEST(Packed2Test, ShadesAreThirds) {
  const TetrisRecord record = MidGame(4);
  const Image image(record);
  std::vector<float> shades(static_cast<std::size_t>(L::kRows * L::kColumns));
  ExpandPacked2Shades(reinterpret_cast<const std::byte*>(image.bytes().data()), 1, 4,
                      shades.data());
  for (int y = 0; y < L::kRows; ++y) {
    for (int x = 0; x < L::kColumns; ++x) {
      ASSERT_EQ(shades[static_cast<std::size_t>(y * L::kColumns + x)],
                static_cast<float>(image.Pixel(y, x)) / 3.0F);
    }
  }
}

}  // namespace
}  // namespace tetrion
