// Which collective instructions a plan runs, in order: ranks that differ there would wait for each
// other forever, or take one variable's bytes for another's.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns a line for each collective instruction: the op with its attributes, and the variables
// with dtypes and dims. The first dim is left out, since ranks may have other rows.
std::vector<std::string> CollectiveOrder(const Plan& plan);

// What the ranks of a communicator have compared so far.
class CollectiveAgreement {
 public:
  // The communicator must outlive the object.
  explicit CollectiveAgreement(Communicator* communicator) : communicator_(*communicator) {}

  // Exchanges a hash of the order with all ranks, which must call it, too, unless an equal order
  // was checked before. Throws an Error (kFailedPrecondition) on all ranks that names the first
  // different instruction, as rank 0 and the first rank with another order have it. Throws the
  // Errors of Communicator::Exchange.
  void Check(const std::vector<std::string>& order);

 private:
  std::vector<uint64_t> HashesOfAll(uint64_t own);
  // Returns the text of the rank `root`, which gives it as `own`.
  std::string TextOf(int32_t root, const std::string& own);
  void Broadcast(int32_t root, void* data, int64_t bytes);
  [[noreturn]] void ThrowDifference(const std::vector<std::string>& order, int32_t other);

  Communicator& communicator_;
  std::set<uint64_t> agreed_;
};

}  // namespace skiff
