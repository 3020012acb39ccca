#include <iostream>

#include "lib/run/program.h"
#include "tools/keygen/keygen.h"

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, [](int count, const char* const* arguments) {
    return tetrion::RunKeygen(count, arguments, std::cout);
  });
}
