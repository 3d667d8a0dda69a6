#include "tools/cuda/emulation/devices.h"

#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

constinit thread_local int current_device = 0;

}  // namespace

int DeviceCount() { return static_cast<int>(TheOptions().devices); }

int CurrentDevice() { return current_device; }

bool SetCurrentDevice(int device) {
  if (device < 0 || device >= DeviceCount()) return false;
  current_device = device;
  return true;
}

}  // namespace skiff::cuda_emulation
