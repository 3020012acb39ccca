#include "tools/eval/record_picture.h"

#include <cstring>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr int kCellPixels = 10;    // as the package draws by default
constexpr int kCartPoleScale = 2;  // pixels a unit

}  // namespace

std::string ViewWithColours(const std::string& env) {
  return env == "cartpole" ? "" : "flat";
}

RecordPicture::RecordPicture(const ObsSpec& obs)
    : kind_(obs.record),
      queue_size_(obs.queue_size),
      size_(kind_ == "cartpole" ? CartPoleRgbSize(kCartPoleScale)
                                : TetrisRgbSize(queue_size_, kCellPixels)),
      pixels_(static_cast<std::size_t>(size_.Bytes())) {
  TETRION_CHECK(kind_ == "cartpole" || kind_ == "colour" || kind_ == "compact",
                "no picture of this kind of record");
}

std::span<const std::uint8_t> RecordPicture::Draw(const std::byte* record) {
  if (kind_ == "cartpole") {
    CartPoleRecord cart;
    std::memcpy(&cart, record, sizeof(cart));
    RenderCartPoleRgb(cart, kCartPoleScale, pixels_.data());
    return pixels_;
  }
  ColourRecord tetris;
  if (kind_ == "colour") {
    std::memcpy(&tetris, record, sizeof(tetris));
  } else {
    TetrisRecord compact;
    std::memcpy(&compact, record, sizeof(compact));
    tetris = UncolouredRecord(compact);
  }
  RenderRgb(tetris, queue_size_, kCellPixels, pixels_.data());
  return pixels_;
}

}  // namespace tetrion
