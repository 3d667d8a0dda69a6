#include "framework/builder/build_state.h"

namespace skiff::internal {

BuildState& TheBuildState() {
  // Per thread, so that threads can build programs at the same time without locks.
  thread_local BuildState state;
  return state;
}

}  // namespace skiff::internal
