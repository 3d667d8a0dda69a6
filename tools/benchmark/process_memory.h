// Memory of this process, as the system counts it.
#pragma once

namespace skiff {

// What is resident now, and the most that ever was; 0 where the system doesn't tell.
double RssMegabytes();
double PeakRssMegabytes();

}  // namespace skiff
