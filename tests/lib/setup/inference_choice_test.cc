#include "lib/setup/inference_choice.h"

#include <gmock/gmock.h>

#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

InferenceChoice ChoiceOf(std::vector<const char*> argv) {
  argv.insert(argv.begin(), "program");
  InferenceChoice choice;
  ServiceOptions parser("program", "", "A program.");
  AddInference(parser, choice);
  AddGroups(parser, choice);
  EXPECT_EQ(parser.Parse(static_cast<int>(argv.size()), argv.data()), std::nullopt);
  return choice;
}

TEST(InferenceChoiceTest, WorkersDecideByThemselvesUnlessToldOtherwise) {
  const InferenceChoice choice = ChoiceOf({});
  EXPECT_FALSE(choice.Streamed());
  EXPECT_EQ(choice.GroupsOfWorker(), 1);
}

TEST(InferenceChoiceTest, GroupsAreOfStreamedWorkersAlone) {
  EXPECT_EQ(ChoiceOf({"--inference", "streamed"}).GroupsOfWorker(), 2);
  EXPECT_EQ(ChoiceOf({"--inference", "streamed", "--groups", "16"}).GroupsOfWorker(), 16);
  EXPECT_EQ(ChoiceOf({"--inference", "local", "--groups", "16"}).GroupsOfWorker(), 1);
}

TEST(InferenceChoiceTest, WhatIsNoChoiceIsRefused) {
  EXPECT_THROW(ChoiceOf({"--inference", "remote"}), Error);
  EXPECT_THROW(ChoiceOf({"--groups", "0"}), Error);
  EXPECT_THROW(ChoiceOf({"--groups", "17"}), Error);
}

}  // namespace
}  // namespace tetrion
