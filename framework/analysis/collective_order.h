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
// with dtypes and dims. The first dim is left out, since ranks may have other rows.
std::vector<std::string> CollectiveOrder(const Plan& plan);

// What the ranks of a communicator have compared so far.
class CollectiveAgreement {
 public:
  // The communicator has memory on the CPU, and must outlive the object.
  explicit CollectiveAgreement(Communicator* communicator) : communicator_(*communicator) {}

<<<<<<< HEAD
  // Compares the order with those of all ranks, which must call it, too, unless an equal order was
  // checked before. Throws an Error (kFailedPrecondition) on all ranks that names the first
  // instruction that differs, of rank 0 and of the first rank that differs from it. Throws the
=======
  // Exchanges a hash of the order with all ranks, which must call it, too, unless an equal order
  // was checked before. Throws an Error (kFailedPrecondition) on all ranks that names the first
  // different instruction, as rank 0 and the first rank with another order have it. Throws the
>>>>>>> main
  // Errors of Communicator::Exchange.
  void Check(const std::vector<std::string>& order);

 private:
  void Compare(const std::string& order);

  Communicator& communicator_;
  std::set<std::string> agreed_;
};

}  // namespace skiff
