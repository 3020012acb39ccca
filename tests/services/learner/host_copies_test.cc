#include "services/learner/host_copies.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/lib/cuda/device_fixture.h"

namespace tetrion::learner {
namespace {

class HostCopiesTest : public cuda::DeviceFixture {
 protected:
  double Scraped(const std::string& labels) {
    const std::string text = registry_.SerializeText();
    const std::string series = "\ntetrion_cuda_host_copies_total{" + labels + "} ";
    const std::size_t at = text.find(series);
    EXPECT_NE(at, std::string::npos) << series << " is not in\n" << text;
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + series.size()));
  }

  MetricsRegistry registry_;
};

TEST_F(HostCopiesTest, EachDirectionAndPurposeIsCounted) {
  const std::string up = R"(direction="host_to_device",purpose=")",
                    down = R"(direction="device_to_host",purpose=")";
  ServeHostCopies(registry_);
  const double set_up = Scraped(up + "set-up\""), read = Scraped(down + "set-up\"");
  const double ingested = Scraped(up + "ingest\"");
  const cuda::DeviceBuffer buffer = Upload(std::vector<std::int32_t>{1, 2, 3});
  ASSERT_EQ(Download<std::int32_t>(buffer), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(Scraped(up + "set-up\""), set_up + 1);
  EXPECT_EQ(Scraped(down + "set-up\""), read + 1);
  EXPECT_EQ(Scraped(up + "ingest\""), ingested);
  const std::vector<std::int32_t> rows = {4, 5};
  cuda::CopyToDevice(buffer.data<void>(), rows.data(), 8, cuda::CopyPurpose::kIngest, *stream);
  stream->Synchronize();
  EXPECT_EQ(Scraped(up + "ingest\""), ingested + 1);
  EXPECT_EQ(Scraped(down + "ingest\""), 0.0);
}

}  // namespace
}  // namespace tetrion::learner
