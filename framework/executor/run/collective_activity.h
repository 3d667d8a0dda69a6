// Tells the communicator of a collective kernel what runs, for its Errors
// (Communicator::set_activity): the op, the output and the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "framework/comm/activity_scope.h"
#include "framework/comm/communicator.h"
#include "framework/plan/plan.h"

namespace skiff {

class CollectiveActivity {
 public:
  // The communicator must outlive the object.
  CollectiveActivity(const Plan& plan, const Instruction& instruction, Communicator* communicator);

  // Calls work(), and tells that it runs in this step meanwhile. `step` is counted from 0; messages
  // count from 1.
  template <typename Work>
  void During(uint64_t step, const Work& work) {
    const ActivityScope scope(&communicator_, TextAt(step + 1));
    work();
  }

 private:
  const std::string* TextAt(uint64_t step);

  Communicator& communicator_;
  std::string text_;
  const size_t without_step_;  // characters
};

}  // namespace skiff
