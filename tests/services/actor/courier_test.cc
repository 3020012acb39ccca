#include "services/actor/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "lib/core/error.h"
#include "lib/weights/weights_slot.h"
#include "lib/wire/rows_socket.h"
#include "tests/lib/wire/key_folder_for_test.h"
#include "tests/services/actor/rows_world.h"

namespace tetrion::actor {
namespace {

using testing::CountingRing;
using ::testing::HasSubstr;
using testing::PlainLearner;
using testing::Sent;

constexpr std::uint64_t kRun = 7;
constexpr const char* kPath = "remote:0000000000000005.0";

// A learner behind a real socket, which releases at once what it receives, and publishes weights.
class SocketLearner {
 public:
  explicit SocketLearner(std::uint64_t incarnation, std::uint64_t run = kRun,
                         const wire::ServerSecurity& security = {},
                         const std::string& endpoint = "tcp://127.0.0.1:0")
      : server_({.endpoint = endpoint, .run_id = run, .security = security}),
        plain_(incarnation, 64) {}
  std::string host_port() const { return server_.endpoint().substr(6); }
  const std::string& endpoint() const { return server_.endpoint(); }
  std::uint64_t next() const { return plain_.streams.empty() ? 0 : Stream().next; }
  const PlainLearner::Stream& Stream() const { return plain_.streams.begin()->second; }
  void Cycle() {
    static_cast<void>(server_.Poll(1));
    for (wire::RowsReceived in = server_.Receive(); in.status != wire::ReceiveStatus::kTimeout;
         in = server_.Receive()) {
      if (const auto* get = std::get_if<wire::WeightsGet>(&in.message)) {
        static_cast<void>(server_.Send(in.peer,
                                       wire::WeightsChunk{get->version, get->chunk, blob.size(),
                                                          WeightsHash(blob, get->version)},
                                       blob));
        continue;
      }
      const auto bytes = in.payload.bytes();
      for (wire::RowsMessage& answer : plain_.On({in.message, {bytes.begin(), bytes.end()}})) {
        if (auto* ack = std::get_if<wire::RowsAck>(&answer)) ack->weights_version = version;
        static_cast<void>(server_.Send(in.peer, answer));
      }
      for (auto& [number, stream] : plain_.streams) stream.released = stream.next;
    }
  }

  std::vector<std::byte> blob = std::vector<std::byte>(100, std::byte{3});
  std::uint32_t version = 4;

 private:
  wire::RowsServer server_;
  PlainLearner plain_;
};

class CourierTest : public ::testing::Test {
 protected:
  CourierTest() {
    courier_.Add(RowStream({.path = kPath, .spec_hash = testing::kSpecHash}, ring_.Consumer(),
                           MonotonicClock::Get()));
  }
  // Runs both ends until `done`; false after 20 s.
  bool Until(SocketLearner& learner, const std::function<bool()>& done) {
    const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
    while (!done() && !deadline.Passed()) {
      courier_.DoWork();
      learner.Cycle();
    }
    return done();
  }

  MetricsRegistry metrics_;
  WeightsInbox inbox_;
  CountingRing ring_{32};
  Courier courier_{
      {.run_id = kRun, .process = 5, .delivery = {.weights_bytes = 100}}, inbox_, metrics_};
};

TEST_F(CourierTest, CarriesRowsAndWeightsOnceItKnowsWhereTheLearnerIs) {
  SocketLearner learner(1);
  ring_.Write(20);
  EXPECT_EQ(courier_.DoWork(), 0) << "no address yet";
  courier_.SetLearner("");
  EXPECT_EQ(courier_.DoWork(), 0);
  courier_.SetLearner(learner.host_port());
  ASSERT_TRUE(Until(learner, [&] { return ring_.released() == 20; }));
  ASSERT_TRUE(Until(learner, [&] { return inbox_.version() == 4; }));
  EXPECT_EQ(inbox_.Newest()->bytes, learner.blob);
  EXPECT_FALSE(courier_.Done());
  ring_.Write(5);
  ring_.Close();
  ASSERT_TRUE(Until(learner, [&] { return courier_.Done(); }));
  EXPECT_EQ(learner.next(), 25U);
  EXPECT_TRUE(Until(learner, [&] {
    const std::string text = metrics_.SerializeText();
    return text.find("tetrion_courier_rows_total 25\n") != std::string::npos &&
           text.find("tetrion_courier_unacknowledged_rows 0\n") != std::string::npos &&
           text.find("tetrion_link_messages_total{peer=\"learner\",direction=\"in\"}") !=
               std::string::npos;
  })) << metrics_.SerializeText();
}

TEST_F(CourierTest, FollowsALearnerThatHasMoved) {
  std::optional<SocketLearner> first(1);
  ring_.Write(8);
  courier_.SetLearner(first->host_port());
  ASSERT_TRUE(Until(*first, [&] { return ring_.released() == 8; }));
  first.reset();
  SocketLearner second(2);
  ring_.Write(4);
  courier_.SetLearner(second.host_port());
  ASSERT_TRUE(Until(second, [&] { return ring_.released() == 12; }));
  EXPECT_EQ(second.Stream().first, 8U);
}

TEST_F(CourierTest, LearnerOfAnotherRunIsNotListenedTo) {
  SocketLearner other(1, kRun + 1);
  ring_.Write(8);
  courier_.SetLearner(other.host_port());
  ASSERT_TRUE(Until(other, [&] {
    return !other.host_port().empty() && other.next() == 0 &&
           metrics_.SerializeText().find(
               "tetrion_link_messages_total{peer=\"learner\","
               "direction=\"in\"} 1") != std::string::npos;
  }));
  EXPECT_EQ(ring_.released(), 0U);
}
TEST(CourierProblemTest, LearnerThatDoesNotAnswerIsOneUntilItDoes) {
  FakeClock clock;
  MetricsRegistry metrics;
  WeightsInbox inbox;
  Courier courier({.run_id = kRun, .process = 5}, inbox, metrics, clock);
  SocketLearner learner(1);
  clock.AdvanceMs(60'000);
  courier.SetLearner(learner.host_port());
  courier.DoWork();
  EXPECT_EQ(courier.Problem(), "") << "it has had no time to answer";
  clock.AdvanceMs(4'000);
  courier.DoWork();
  EXPECT_EQ(courier.Problem(),
            "the learner at " + learner.endpoint() + " has not answered this actor's rows for 4 s");
  const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
  while (!courier.Problem().empty() && !deadline.Passed()) {
    clock.AdvanceMs(1);
    courier.DoWork();
    learner.Cycle();
  }
  EXPECT_EQ(courier.Problem(), "");
}

class EncryptedCourierTest : public CourierTest {
 protected:
  EncryptedCourierTest() { folder_.Allow("actor", own_); }
  wire::ServerSecurity Security(const wire::CurveKeys& keys) const {
    return wire::ServerSecurity::Make(keys, folder_.path());
  }
  // The code and the sentence that a courier, with keys or without, ends with.
  std::pair<ExitCode, std::string> EndOf(const wire::CurveKeys& own, const std::string& told) {
    MetricsRegistry metrics;
    Courier courier({.run_id = kRun, .process = 5, .keys = own}, inbox_, metrics);
    courier.SetLearner("127.0.0.1:9", told);
    try {
      courier.DoWork();
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {ExitCode::kOk, ""};
  }

  const wire::KeyFolder folder_;
  const wire::CurveKeys own_ = wire::CurveKeys::Make(), first_ = wire::CurveKeys::Make(),
                        second_ = wire::CurveKeys::Make();
};

TEST_F(EncryptedCourierTest, FollowsALearnerWithAnotherKeyBehindTheSameAddress) {
  MetricsRegistry metrics;
  CountingRing ring{32};
  Courier courier({.run_id = kRun, .process = 5, .keys = own_, .delivery = {.weights_bytes = 100}},
                  inbox_, metrics);
  courier.Add(RowStream({.path = kPath, .spec_hash = testing::kSpecHash}, ring.Consumer(),
                        MonotonicClock::Get()));
  std::optional<SocketLearner> learner(std::in_place, 1, kRun, Security(first_));
  const std::string address = learner->host_port(), endpoint = learner->endpoint();
  const auto released = [&](std::uint64_t rows) {
    const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
    while (ring.released() < rows && !deadline.Passed()) {
      courier.DoWork();
      learner->Cycle();
    }
    return ring.released();
  };
  ring.Write(8);
  courier.SetLearner(address, first_.public_key);
  ASSERT_EQ(released(8), 8U);
  learner.reset();
  learner.emplace(2, kRun, Security(second_), endpoint);
  ring.Write(4);
  courier.SetLearner(address, second_.public_key);
  ASSERT_EQ(released(12), 12U);
  EXPECT_EQ(learner->Stream().first, 8U);
}

TEST_F(EncryptedCourierTest, LearnerThatRefusesItsKeyIsTheProblemAndAskedAgainEveryThreeSeconds) {
  FakeClock clock;
  MetricsRegistry metrics;
  SocketLearner learner(1, kRun, Security(first_));
  Courier courier({.run_id = kRun, .process = 5, .keys = second_}, inbox_, metrics, clock);
  courier.SetLearner(learner.host_port(), first_.public_key);
  const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
  while (courier.Problem().empty() && !deadline.Passed()) {
    courier.DoWork();
    learner.Cycle();
    clock.AdvanceMs(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_THAT(courier.Problem(), HasSubstr("does not allow our key"));
  for (const char* reconnects : {"1\n", "2\n"}) {
    clock.AdvanceMs(3'000);
    courier.DoWork();
    EXPECT_THAT(
        metrics.SerializeText(),
        HasSubstr("tetrion_link_reconnects_total{peer=\"learner\"} " + std::string(reconnects)));
  }
}

TEST_F(EncryptedCourierTest, RowsAreNotSentWhenOneEndAloneHasKeys) {
  const auto [plain_learner, why] = EndOf(own_, "");
  EXPECT_EQ(plain_learner, ExitCode::kTryAgain);
  EXPECT_THAT(why, HasSubstr("Give the learner --curve-key and --curve-allow"));
  const auto [plain_actor, and_why] = EndOf({}, first_.public_key);
  EXPECT_EQ(plain_actor, ExitCode::kConfig);
  EXPECT_THAT(and_why, HasSubstr("give this actor --curve-key and --curve-server"));
  const auto [odd_key, why_odd] = EndOf(own_, "a key");
  EXPECT_EQ(odd_key, ExitCode::kTryAgain);
  EXPECT_THAT(why_odd, HasSubstr("40 characters"));
}

}  // namespace
}  // namespace tetrion::actor
