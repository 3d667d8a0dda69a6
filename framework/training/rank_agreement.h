// Checks that all ranks make together, so that all ranks go on or all ranks end.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/communicator.h"

namespace skiff::training {

// An Error that all ranks throw, with the same message. So one rank that prints it is enough, and
// no rank has to abort.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Values that must be equal on all ranks, by name.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Returns if the facts of all ranks are equal. Otherwise throws an AgreedError
// (kFailedPrecondition) that names the first fact in which a rank differs from rank 0: "rank 3
// (host b): batch_size is 32, rank 0: 64"; of values of several lines, the first line that differs.
// Does nothing for nullptr. All ranks call it; throws what Exchange throws.
void CheckEqualOnRanks(Communicator* communicator, const RankFacts& facts);

// Does the work. Returns if no rank's work throws. Otherwise throws an AgreedError with the code
// and the message of the first rank whose work does, behind the text of that rank, unless all ranks
// have the same message. The code of an exception that isn't an Error is kResourceExhausted for
// std::bad_alloc, otherwise kFailedPrecondition. For nullptr it only does the work. All ranks call
// it; throws what Exchange throws.
void DoOnRanks(Communicator* communicator, const std::function<void()>& work);

// Ends the other ranks after a failure of this rank (Communicator::Abort), unless the failure is
// that a rank has aborted, or that the communicator has failed. Does nothing for nullptr.
void AbortRanks(Communicator* communicator, const std::string& message) noexcept;

}  // namespace skiff::training
