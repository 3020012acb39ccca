// One environment lane behind a line protocol on stdin and stdout, so that scripts can drive the
// real VecEnv beside other implementations of the same games. Every request is one line and gets
// one line:
//
//   open NAME SEED QUEUE IID NOOP ROWS [VIEW] -> ok             (IID, NOOP: 0 or 1)
//   pieces TOKEN COUNT              -> COUNT ids 0..6 of the token
//   reset TOKEN MAX_STEPS           -> a row
//   step ACTION                     -> a row
//   view                            -> floats of the view of the last record
//   flat                            -> the view as float32 in hexadecimal bytes
//   dict                            -> DictLayout of the last record, hexadecimal (view `flat`)
//   rgb SCALE                       -> its picture, hexadecimal (view `flat`)
//   start TOKEN                     -> CartPole's start in double (hexadecimal), starts `push`, too
//   push ACTION                     -> CartPole's state in double after the action
//
// A row is: reward flags cont episode_lines mask record(hexadecimal bytes).
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/views/gym_views.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

std::string Hexadecimal(const void* data, std::size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto* byte = static_cast<const unsigned char*>(data);
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += kDigits[byte[i] >> 4];
    text += kDigits[byte[i] & 15];
  }
  return text;
}

class LineServer {
 public:
  // The answer to one request. Throws Error(kUsage) for an unknown one.
  std::string Answer(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "open") return Open(in);
    if (verb == "pieces") return Pieces(in);
    if (verb == "reset") return Reset(in);
    if (verb == "step") return Step(in);
    if (verb == "view") return View();
    if (verb == "flat") return Flat();
    if (verb == "dict") return Dict();
    if (verb == "rgb") return Rgb(in);
    if (verb == "start") return Start(in);
    if (verb == "push") return Push(in);
    throw Error(ExitCode::kUsage, "unknown request: " + line);
  }

 private:
  std::string Open(std::istringstream& in) {
    config_ = {};
    in >> config_.name >> config_.seed >> config_.queue_size >> config_.iid_pieces >>
        config_.illegal_is_noop >> config_.rows >> config_.view;
    rows_ = std::make_unique<testing::RowedEnv>(config_);
    view_.assign(static_cast<std::size_t>(rows_->env->spec().obs.view_floats), 0.0F);
    return "ok";
  }

  std::string Pieces(std::istringstream& in) const {
    std::uint64_t token = 0;
    int count = 0;
    in >> token >> count;
    PhiloxPieces pieces = PhiloxPieces::Of(config_.seed, token, config_.iid_pieces);
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(pieces.Next()) + " ";
    return text;
  }

  std::string Reset(std::istringstream& in) {
    Token token;
    in >> token.id >> token.max_steps;
    rows_->env->Reset(0, token);
    rows_->StepAll();
    return Row();
  }

  std::string Step(std::istringstream& in) {
    in >> rows_->actions[0];
    rows_->StepAll();
    return Row();
  }

  std::string Row() const {
    std::ostringstream out;
    out.precision(9);
    const RowView& row = rows_->row;
    out << row.reward[0] << ' ' << int{row.flags[0]} << ' ' << row.cont[0] << ' '
        << rows_->env->Episode(0).lines << ' ' << (row.mask == nullptr ? 0 : row.mask[0]) << ' ';
    out << Hexadecimal(row.record, rows_->env->spec().obs.record_bytes);
    return out.str();
  }

  std::string View() {
    const ObsSpec& obs = rows_->env->spec().obs;
    obs.expand(rows_->row.record, 1, obs.queue_size, view_.data());
    std::ostringstream out;
    out.precision(9);
    for (const float value : view_) out << value << ' ';
    return out.str();
  }

  std::string Flat() {
    const ObsSpec& obs = rows_->env->spec().obs;
    obs.expand(rows_->row.record, 1, obs.queue_size, view_.data());
    return Hexadecimal(view_.data(), view_.size() * sizeof(float));
  }

  const ColourRecord& Coloured() const {
    if (rows_->env->spec().obs.record != "colour") {
      throw Error(ExitCode::kUsage, "open the environment with the view flat");
    }
    return rows_->RecordAt<ColourRecord>(0);
  }

  std::string Dict() const {
    std::vector<std::uint8_t> dict(static_cast<std::size_t>(DictLayout::Bytes(config_.queue_size)));
    ExpandDict(reinterpret_cast<const std::byte*>(&Coloured()), 1, config_.queue_size, dict.data());
    return Hexadecimal(dict.data(), dict.size());
  }

  std::string Rgb(std::istringstream& in) const {
    int scale = 1;
    in >> scale;
    std::vector<std::uint8_t> picture(
        static_cast<std::size_t>(TetrisRgbSize(config_.queue_size, scale).Bytes()));
    RenderRgb(Coloured(), config_.queue_size, scale, picture.data());
    return Hexadecimal(picture.data(), picture.size());
  }

  std::string Start(std::istringstream& in) {
    std::uint64_t token = 0;
    in >> token;
    cart_ = CartPoleReset(config_.seed, token);
    return Cart();
  }

  std::string Push(std::istringstream& in) {
    int action = 0;
    in >> action;
    (void)CartPoleStep(cart_, action);
    return Cart();
  }

  std::string Cart() const {
    char text[128];
    (void)std::snprintf(text, sizeof(text), "%a %a %a %a", cart_.x, cart_.x_dot, cart_.theta,
                        cart_.theta_dot);
    return text;
  }

  EnvConfig config_;
  std::unique_ptr<testing::RowedEnv> rows_;
  std::vector<float> view_;
  CartPoleState cart_ = {};
};

}  // namespace
}  // namespace tetrion

int main() {
  tetrion::LineServer server;
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << server.Answer(line) << std::endl;
    }
  } catch (const tetrion::Error& error) {
    std::cerr << "env_line_server: " << error.what() << '\n';
    return static_cast<int>(error.code());
  }
  return 0;
}
