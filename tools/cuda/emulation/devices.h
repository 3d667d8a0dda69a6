// The devices, and which of them is current: calls that name neither a device nor a stream concern
// the thread's current device, and work may only be given to streams of that device.
#pragma once

namespace skiff::cuda_emulation {

// Returns how many devices there are: Options::devices.
int DeviceCount();

// Returns the calling thread's current device; 0 until SetCurrentDevice.
int CurrentDevice();
// Returns false, and changes nothing, if there is no such device.
bool SetCurrentDevice(int device);

}  // namespace skiff::cuda_emulation
