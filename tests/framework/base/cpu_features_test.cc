#include "framework/base/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace skiff {
namespace {

TEST(CpuModelName, IsTheOneThatTheSystemTells) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name\t: ")) names.insert(line.substr(13));
  }
  if (names.empty()) GTEST_SKIP() << "the system doesn't tell";
  EXPECT_TRUE(names.contains(CpuModelName())) << CpuModelName() << " instead of " << *names.begin();
}

}  // namespace
}  // namespace skiff
