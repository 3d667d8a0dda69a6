#include "tools/benchmark/process_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "framework/base/number_text.h"

namespace skiff {
namespace {

// Returns the number in the line that starts with `key`, of a file below /proc that counts in kB; 0
// if there is none.
double MegabytesIn(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = std::min(line.find_first_of("0123456789"), line.size());
    const size_t end = line.find(' ', begin);
    return ParseNumber<double>(line.substr(begin, end - begin)).value_or(0) / 1024;
  }
  return 0;
}

}  // namespace

double RssMegabytes() { return MegabytesIn("/proc/self/status", "VmRSS:"); }
double PeakRssMegabytes() { return MegabytesIn("/proc/self/status", "VmHWM:"); }
double AvailableMegabytes() { return MegabytesIn("/proc/meminfo", "MemAvailable:"); }

}  // namespace skiff
