#include "services/coordinator/endpoints.h"

#include <unistd.h>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/json.h"
#include "lib/shm/shm_dir.h"

namespace tetrion::coordinator {
namespace {

constexpr std::size_t kMaxSocketPathBytes = 107;  // sockaddr_un

}  // namespace

EndpointsWriter::EndpointsWriter(const RunFolder& folder, const std::string& control,
                                 const std::string& http)
    : folder_(folder), control_(control), http_(http) {}

void EndpointsWriter::Write(const std::vector<Member>& members) const {
  Endpoints endpoints;
  endpoints.control = control_;
  endpoints.pid = getpid();
  endpoints.run = folder_.name();
  endpoints.http["coordinator"] = http_;
  for (const Member& member : members) {
    // A name that is taken gets its session's number, so that no member hides another.
    const bool taken = endpoints.http.contains(member.name);
    const std::string suffix = taken ? ".session-" + std::to_string(member.sequence) : "";
    endpoints.http[member.name + suffix] = member.http_endpoint;
  }
  WriteEndpoints(folder_.endpoints_json(), endpoints);
  WriteAtomically(folder_.path() + "/file_sd.json", FileSdText(endpoints));
}

std::string FileSdText(const Endpoints& endpoints) {
  std::string text = "[";
  for (const auto& [service, address] : endpoints.http) {
    JsonObject labels, group;
    labels.Add("service", service).Add("run", endpoints.run);
    group.AddJson("targets", "[" + JsonQuoted(address) + "]").AddJson("labels", labels.Text());
    text += (text.size() > 1 ? ",\n " : "\n ") + group.Text();
  }
  return text + "\n]\n";
}

std::string PreviousControlEndpoint(const RunFolder& folder) {
  try {
    return ReadEndpoints(folder.endpoints_json()).control;
  } catch (const Error&) {
    return "";
  }
}

void RefuseOpenEndpoint(const std::string& endpoint, bool insecure) {
  const std::size_t scheme = endpoint.find("://");
  const std::string host = endpoint.substr(scheme == std::string::npos ? 0 : scheme + 3);
  const bool local = endpoint.rfind("ipc://", 0) == 0 || host.rfind("127.", 0) == 0 ||
                     host.rfind("localhost:", 0) == 0 || host.rfind("[::1]:", 0) == 0;
  if (local || insecure) return;
  throw Error(ExitCode::kUsage,
              "--bind " + endpoint +
                  " is open to other machines and the control channel has no keys: bind "
                  "tcp://127.0.0.1:0, or spell out --insecure on a network you trust");
}

std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id) {
  if (!bind.empty()) return bind;
  const std::string in_folder = folder.path() + "/control.sock";
  if (in_folder.size() <= kMaxSocketPathBytes) return "ipc://" + in_folder;
  EnsureShmDir(shm_dir);
  return "ipc://" + shm_dir + "/" + std::to_string(run_id) + ".sock";
}

}  // namespace tetrion::coordinator
