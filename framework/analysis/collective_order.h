// Which collective instructions a plan runs, in order: ranks that differ there would wait for each
// other forever, or take one variable's bytes for another's.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns a line for each collective instruction: the op with its attributes, and the variables
// with dtypes and dims. The first dim is left out, since ranks may have other rows; all dims are
// left out of an op that works on a batch of the rank (WorksOnBatch), whose images may have other
// sizes: the op itself checks what must be equal.
std::vector<std::string> CollectiveOrder(const Plan& plan);

// What the ranks of a communicator have compared so far.
class CollectiveAgreement {
 public:
  // The communicator has memory on the CPU, and must outlive the object.
  explicit CollectiveAgreement(Communicator* communicator) : communicator_(*communicator) {}

  // Compares the order with the orders of all ranks, which must call it, too, unless an equal order
  // was checked before. If two differ, throws an Error (kFailedPrecondition) on all ranks. It names
  // rank 0, the first rank with another order, and the first line in which the two differ. Throws
  // the Errors of Communicator::Exchange.
  void Check(const std::vector<std::string>& order);

 private:
  Communicator& communicator_;
  std::set<std::string> agreed_;
};

}  // namespace skiff
