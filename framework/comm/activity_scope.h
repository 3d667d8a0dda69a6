// Tells a communicator what its rank does (Communicator::set_activity), for a block of code.
#pragma once

#include <string>

#include "framework/comm/communicator.h"

namespace skiff {

class ActivityScope {
 public:
  // From now on until the end of the block, Errors of the communicator say " in ACTIVITY"; then
  // they say again what they said before. The text must live as long as the block. Does nothing for
  // nullptr.
  ActivityScope(Communicator* communicator, const std::string* activity)
      : communicator_(communicator),
        before_(communicator == nullptr ? nullptr : communicator->activity()) {
    if (communicator_ != nullptr) communicator_->set_activity(activity);
  }
  ~ActivityScope() {
    if (communicator_ != nullptr) communicator_->set_activity(before_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Communicator* const communicator_;
  const std::string* const before_;
};

}  // namespace skiff
