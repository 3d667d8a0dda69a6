#include "tools/benchmark/process_memory.h"

#include <fstream>
#include <string>

namespace skiff {
namespace {

// A line of /proc/self/status, which counts in kB.
double StatusMegabytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size())) / 1024;
  }
  return 0;
}

}  // namespace

double RssMegabytes() { return StatusMegabytes("VmRSS:"); }
double PeakRssMegabytes() { return StatusMegabytes("VmHWM:"); }

}  // namespace skiff
