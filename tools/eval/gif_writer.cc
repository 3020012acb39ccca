#include "tools/eval/gif_writer.h"

#include <gif_lib.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::size_t kMostColours = 256;
static_assert(std::size(kPictureColours) <= kMostColours);
constexpr int kLeastDelayCs = 2;
constexpr int kMostPixels = 65535;  // a side, as the format counts

int Centiseconds(double seconds) {
  return static_cast<int>(std::lround(std::clamp(seconds * 100, 1.0 * kLeastDelayCs, 60000.0)));
}

std::uint8_t IndexOf(const std::uint8_t* rgb) {
  for (std::size_t i = 0; i < std::size(kPictureColours); ++i) {
    if (std::memcmp(rgb, kPictureColours[i], 3) == 0) return static_cast<std::uint8_t>(i);
  }
  TETRION_CHECK(false, "a picture has a colour that is not in kPictureColours");
  return 0;
}

}  // namespace

RecordPicture::RecordPicture(const EnvSpec& env)
    : picture_(EnvOf(env.name).picture),
      record_bytes_(env.obs.record_bytes),
      queue_size_(env.obs.queue_size),
      size_(picture_.size(queue_size_, picture_.gif_scale)),
      pixels_(static_cast<std::size_t>(size_.Bytes())) {}

std::span<const std::uint8_t> RecordPicture::Draw(const std::byte* record) {
  picture_.draw({record, record_bytes_}, queue_size_, picture_.gif_scale, pixels_.data());
  return pixels_;
}

std::string RecordPicture::Text(const std::byte* record) const {
  return picture_.text({record, record_bytes_});
}

std::span<const PictureColour> PicturePalette() {
  static const std::vector<PictureColour> palette = [] {
    std::vector<PictureColour> colours;
    for (int i = 0; i < static_cast<int>(std::size(kPictureColours)); ++i) {
      colours.push_back(PictureColourOf(i));
    }
    return colours;
  }();
  return palette;
}

GifWriter::GifWriter(std::string path, const RgbSize& size, double frame_s,
                     std::span<const PictureColour> palette)
    : part_(std::move(path), ".part"),
      size_(size),
      delay_cs_(Centiseconds(frame_s)),
      shown_(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height)),
      next_(shown_.size()) {
  TETRION_CHECK(
      size.width > 0 && size.height > 0 && size.width <= kMostPixels && size.height <= kMostPixels,
      "a picture's size does not fit into a GIF");
  TETRION_CHECK(palette.size() > 1 && palette.size() <= kMostColours, "a GIF has 2 to 256 colours");
  // A rename would put the file in the place of a device as well, /dev/null or /dev/stdout.
  struct stat there;
  if (stat(part_.path().c_str(), &there) == 0 && !S_ISREG(there.st_mode) &&
      !S_ISDIR(there.st_mode)) {
    Fail("what is there is no file");
  }
  if (!part_.Create(0666, FileReplacement::Links::kFollow)) Fail(std::strerror(errno));
  gif_ = EGifOpenFileHandle(part_.descriptor().get(), nullptr);
  if (gif_ == nullptr) Fail("out of memory");
  (void)part_.descriptor().Release();  // the library closes it
  try {
    WriteHeader(palette);
  } catch (...) {
    (void)EGifCloseFile(gif_, nullptr);
    throw;
  }
}

GifWriter::~GifWriter() {
  if (gif_ != nullptr) (void)EGifCloseFile(gif_, nullptr);
}

void GifWriter::Fail(const std::string& why) const {
  throw Error(ExitCode::kUsage, "cannot write the GIF " + part_.path() + ": " + why +
                                    ": give a path in a folder that exists, can be written and has "
                                    "room");
}

void GifWriter::WriteHeader(std::span<const PictureColour> colours) {
  EGifSetGifVersion(gif_, true);
  const auto bits = static_cast<int>(std::bit_width(colours.size() - 1));
  GifColorType table[kMostColours] = {};
  for (std::size_t i = 0; i < colours.size(); ++i) {
    table[i] = {colours[i].red, colours[i].green, colours[i].blue};
  }
  const std::unique_ptr<ColorMapObject, decltype(&GifFreeMapObject)> palette(
      GifMakeMapObject(1 << bits, table), &GifFreeMapObject);
  // The block that makes viewers repeat: a name, then 1 and the count, 0 without end.
  const char name[] = "NETSCAPE2.0";
  const std::uint8_t repeat[3] = {1, 0, 0};
  if (palette == nullptr ||
      EGifPutScreenDesc(gif_, size_.width, size_.height, bits, 0, palette.get()) == GIF_ERROR ||
      EGifPutExtensionLeader(gif_, APPLICATION_EXT_FUNC_CODE) == GIF_ERROR ||
      EGifPutExtensionBlock(gif_, sizeof(name) - 1, name) == GIF_ERROR ||
      EGifPutExtensionBlock(gif_, sizeof(repeat), repeat) == GIF_ERROR ||
      EGifPutExtensionTrailer(gif_) == GIF_ERROR) {
    Fail(std::strerror(errno));
  }
}

void GifWriter::Add(std::span<const std::uint8_t> rgb) {
  TETRION_CHECK(!finished_ && rgb.size() == 3 * next_.size(), "a frame of another size");
  // Neighbours mostly have the same colour.
  const std::uint8_t* last = rgb.data();
  std::uint8_t index = IndexOf(last);
  for (std::size_t i = 0; i < next_.size(); ++i) {
    const std::uint8_t* pixel = &rgb[3 * i];
    if (std::memcmp(pixel, last, 3) != 0) {
      last = pixel;
      index = IndexOf(pixel);
    }
    next_[i] = index;
  }
  AddNext();
}

void GifWriter::AddIndices(std::span<const std::uint8_t> indices) {
  TETRION_CHECK(!finished_ && indices.size() == next_.size(), "a frame of another size");
  std::copy(indices.begin(), indices.end(), next_.begin());
  AddNext();
}

void GifWriter::AddNext() {
  const Box box = frames_ == 0 ? Box{0, 0, size_.width, size_.height} : ChangedBox();
  std::swap(shown_, next_);
  WriteFrame(box, delay_cs_);
  ++frames_;
}

GifWriter::Box GifWriter::ChangedBox() const {
  int left = size_.width, right = -1, top = size_.height, bottom = -1;
  for (int y = 0; y < size_.height; ++y) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(y) * size_.width;
    const auto old_row = shown_.begin() + start, row = next_.begin() + start;
    const auto first = std::mismatch(row, row + size_.width, old_row).first;
    if (first == row + size_.width) continue;
    int end = size_.width - 1;
    while (row[end] == old_row[end]) --end;
    left = std::min(left, static_cast<int>(first - row));
    right = std::max(right, end);
    top = std::min(top, y);
    bottom = y;
  }
  if (bottom < 0) return {0, 0, 1, 1};
  return {left, top, right - left + 1, bottom - top + 1};
}

void GifWriter::WriteFrame(const Box& box, int delay_cs) {
  const GraphicsControlBlock control = {.DisposalMode = DISPOSE_DO_NOT,
                                        .UserInputFlag = false,
                                        .DelayTime = delay_cs,
                                        .TransparentColor = NO_TRANSPARENT_COLOR};
  GifByteType block[4];
  (void)EGifGCBToExtension(&control, block);
  if (EGifPutExtension(gif_, GRAPHICS_EXT_FUNC_CODE, sizeof(block), block) == GIF_ERROR ||
      EGifPutImageDesc(gif_, box.left, box.top, box.width, box.height, false, nullptr) ==
          GIF_ERROR) {
    Fail(std::strerror(errno));
  }
  for (int y = box.top; y < box.top + box.height; ++y) {
    GifPixelType* row =
        &shown_[static_cast<std::size_t>(y) * static_cast<std::size_t>(size_.width) +
                static_cast<std::size_t>(box.left)];
    if (EGifPutLine(gif_, row, box.width) == GIF_ERROR) Fail(std::strerror(errno));
  }
}

void GifWriter::Finish(double last_s) {
  TETRION_CHECK(!finished_ && frames_ > 0, "a GIF needs a frame");
  WriteFrame({0, 0, 1, 1}, Centiseconds(last_s));
  const int closed = EGifCloseFile(std::exchange(gif_, nullptr), nullptr);
  if (closed == GIF_ERROR || !part_.Place()) Fail(std::strerror(errno));
  finished_ = true;
}

}  // namespace tetrion
