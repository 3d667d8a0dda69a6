// The state of a trainer, as checkpoints keep it.
#pragma once

#include <map>
#include <string>

namespace skiff {

// The trainer's own state, such as epoch, position of the reader, and random state: any names with
// any bytes.
using TrainerState = std::map<std::string, std::string>;

}  // namespace skiff
