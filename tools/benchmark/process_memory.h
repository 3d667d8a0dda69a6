// Memory of this process, and what is left for it, as the system counts it.
#pragma once

namespace skiff {

// What is resident now, and the most that ever was; 0 where the system doesn't tell.
double RssMegabytes();
double PeakRssMegabytes();
// What processes can take before the system must swap; 0 where it doesn't tell.
double AvailableMegabytes();

}  // namespace skiff
