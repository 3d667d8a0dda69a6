#include "tools/benchmark/process_memory.h"

#include <fstream>
#include <string>

namespace skiff {
namespace {

// A line of a file below /proc, which counts in kB.
double MegabytesIn(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size())) / 1024;
  }
  return 0;
}

}  // namespace

double RssMegabytes() { return MegabytesIn("/proc/self/status", "VmRSS:"); }
double PeakRssMegabytes() { return MegabytesIn("/proc/self/status", "VmHWM:"); }
double AvailableMegabytes() { return MegabytesIn("/proc/meminfo", "MemAvailable:"); }

}  // namespace skiff
