#include "lib/wire/socket_context.h"

#include <zmq.h>

#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::wire {

SocketContext::SocketContext(const Config& config) : handle_(zmq_ctx_new()) {
  TETRION_CHECK(handle_ != nullptr, "no ZeroMQ context");
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
  zmq_ctx_term(handle_);
}

}  // namespace tetrion::wire
