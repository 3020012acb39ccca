#include "lib/wire/socket_context.h"

#include <zmq.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/error.h"

namespace tetrion::wire {

SocketContext::SocketContext(const Config& config)
    : handle_(zmq_ctx_new()), most_wait_ms_(config.most_wait_ms) {
  if (handle_ == nullptr) {
    throw Error(ExitCode::kTryAgain, std::string("cannot open a socket: ") + zmq_strerror(errno) +
                                         "; raise the open-files limit");
  }
  const int limit = zmq_ctx_get(handle_, ZMQ_SOCKET_LIMIT);
  if (config.max_sockets <= limit && config.io_threads > 0 &&
      zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, config.max_sockets) == 0 &&
      zmq_ctx_set(handle_, ZMQ_IO_THREADS, config.io_threads) == 0) {
    return;
  }
  zmq_ctx_term(handle_);
  throw Error(ExitCode::kUsage, "no context of " + std::to_string(config.max_sockets) +
                                    " sockets and " + std::to_string(config.io_threads) +
                                    " threads: ZeroMQ allows 1 to " + std::to_string(limit) +
                                    " sockets and needs a thread");
}

SocketContext::~SocketContext() {
  if (!most_wait_ms_.has_value()) {
    zmq_ctx_term(handle_);
    return;
  }
  try {
    std::packaged_task<void()> end([handle = handle_] { zmq_ctx_term(handle); });
    const std::future<void> ended = end.get_future();
    std::thread(std::move(end)).detach();  // it needs nothing but the handle
    ended.wait_for(std::chrono::milliseconds(*most_wait_ms_));
  } catch (const std::exception&) {  // no thread, no memory: nothing has begun
    zmq_ctx_term(handle_);
  }
}

}  // namespace tetrion::wire
