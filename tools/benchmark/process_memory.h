// The memory of this process, and what is available to it, as the system counts it.
#pragma once

namespace skiff {

// Return the resident memory now and at its peak; 0 if the system doesn't report it.
double RssMegabytes();
double PeakRssMegabytes();
// Returns the memory that processes can take before the system must swap; 0 if it doesn't report
// it.
double AvailableMegabytes();

}  // namespace skiff
