#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/run/run_folder.h"
#include "services/coordinator/control_config.h"

namespace tetrion::coordinator {

// Writes where the run's services listen: endpoints.json for members and tools, file_sd.json for
// Prometheus (file_sd_configs). Both by rename. One thread.
class EndpointsWriter {
 public:
  EndpointsWriter(const RunFolder& folder, const std::string& control, const std::string& http);
  // Throws Error(kTryAgain) when the run folder cannot be written.
  void Write(const std::vector<Member>& members) const;

 private:
  const RunFolder folder_;
  const std::string control_, http_;
};

// The text of file_sd.json: one target group a service, labels service and run.
std::string FileSdText(const Endpoints& endpoints);

// The control endpoint an earlier coordinator of the run wrote, so that a new one binds it again
// and members need not look for it; empty when there is none.
std::string PreviousControlEndpoint(const RunFolder& folder);

// Throws Error(kUsage) when `endpoint` is open to other machines and `insecure` was not spelled
// out.
void RefuseOpenEndpoint(const std::string& endpoint, bool insecure);

// The address for members: the one that was asked for; without one a socket in the run folder, or
// in the folder of the shared regions where that path is too long for a socket (107 bytes). Both
// are open to this user only.
std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id);

}  // namespace tetrion::coordinator
