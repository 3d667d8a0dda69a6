// The memory of the process, and the memory available to it, as the system counts both.
#pragma once

namespace skiff {

// Return the resident memory now and at its peak; 0 if the system doesn't report it.
double RssMegabytes();
double PeakRssMegabytes();
// Returns the memory that processes can take before the system must swap; 0 if the system doesn't
// report it.
double AvailableMegabytes();

}  // namespace skiff
