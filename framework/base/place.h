// Where a tensor lives and a kernel runs.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace skiff {

enum class PlaceKind : uint8_t { kCpu, kCuda };

struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  int32_t index = 0;  // the device number; 0 for the CPU

  static Place Cpu() { return {}; }
  static Place Cuda(int32_t index = 0) { return {PlaceKind::kCuda, index}; }

  // Where programs run unless told otherwise: the CPU, since not every op has a CUDA kernel yet.
  static Place Default() { return Cpu(); }

  // "cpu", "cuda" (device 0) or "cuda:1". Error for anything else.
  static Place FromName(const std::string& name);

  bool is_cpu() const { return kind == PlaceKind::kCpu; }
  friend bool operator==(const Place&, const Place&) = default;
};

// "cpu" or "cuda:N".
std::string PlaceName(Place place);
std::ostream& operator<<(std::ostream& stream, Place place);

}  // namespace skiff
