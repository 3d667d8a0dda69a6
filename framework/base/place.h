// A place: the device that holds a tensor or runs a kernel.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace skiff {

enum class PlaceKind : uint8_t { kCpu, kCuda };

struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  int32_t index = 0;  // the device number; 0 for the CPU

  static Place Cpu() { return {}; }
  static Place Cuda(int32_t index = 0) { return {PlaceKind::kCuda, index}; }

  // The place where programs run by default: the CPU, which every machine has.
  static Place Default() { return Cpu(); }

  // Parses "cpu", "cuda" (device 0) or "cuda:1". Throws Error for any other name.
  static Place FromName(const std::string& name);

  bool is_cpu() const { return kind == PlaceKind::kCpu; }
  friend bool operator==(const Place&, const Place&) = default;
  friend std::string TextOf(Place place);
  friend std::ostream& operator<<(std::ostream& stream, Place place);
};

// Returns "cpu" or "cuda:N".
std::string PlaceName(Place place);

}  // namespace skiff
