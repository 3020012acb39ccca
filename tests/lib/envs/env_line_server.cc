// One environment lane behind a line protocol on stdin and stdout, so that scripts can drive the
// real VecEnv beside other implementations of the same games. Every request is one line and gets
// one line:
//
//   open NAME SEED QUEUE IID NOOP   -> ok                       (IID, NOOP: 0 or 1)
//   pieces TOKEN COUNT              -> COUNT ids 0..6 of the token
//   reset TOKEN MAX_STEPS           -> a row
//   step ACTION                     -> a row
//   view                            -> floats of the default view of the last record
//   start TOKEN                     -> CartPole's start in double (hexadecimal), also starts `push`
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
#include "lib/envs/cartpole_rules.h"
#include "lib/envs/tetris_pieces.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

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
    if (verb == "start") return Start(in);
    if (verb == "push") return Push(in);
    throw Error(ExitCode::kUsage, "unknown request: " + line);
  }

 private:
  std::string Open(std::istringstream& in) {
    config_ = {};
    in >> config_.name >> config_.seed >> config_.queue_size >> config_.iid_pieces >>
        config_.illegal_is_noop;
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
    out << std::hex;
    for (std::uint32_t i = 0; i < rows_->env->spec().obs.record_bytes; ++i) {
      const int byte = std::to_integer<int>(row.record[i]);
      out << (byte >> 4) << (byte & 15);
    }
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
