// A network of the builder's layers, bound with all passes or without some, for tests that look at
// its plan.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/plan/plan.h"

namespace skiff {

class BoundNetwork {
 public:
  struct Options {
    Shape image = {2, 3, 4, 4};
    bool trains = true;
    std::vector<std::string> skip = {};               // passes
    std::vector<std::string> also = {};               // passes that run only when asked for
    std::vector<std::string> fetches = {};            // besides the loss
    std::function<void(Program*)> edit = {};          // of the program, before it is compiled
    std::map<std::string, std::string> kernels = {};  // forced
    MemoryOptions memory = {};
  };

  // `network` builds the layers on an image that wants a gradient; the loss is the mean of the
  // result, and SGD trains.
  BoundNetwork(const std::function<Variable(const Variable&)>& network, const Options& options);
  explicit BoundNetwork(const std::function<Variable(const Variable&)>& network)
      : BoundNetwork(network, {}) {}

  // How many instructions of the plan are of this op.
  int64_t Count(std::string_view type) const;
  // The names of its instructions that are fused of several ops.
  std::vector<std::string> Fused() const;
  // The values of the loss and the other fetches after one more step.
  std::vector<std::vector<float>> Step();
  const Plan& plan() const { return bound_.back().plan(); }
  PlanStatistics statistics() const { return bound_.back().statistics(); }

 private:
  Program main_;
  Program startup_;
  Executor executor_{Place::Cpu()};
  std::vector<CompiledProgram> compiled_;  // one; made last
  std::vector<BoundProgram> bound_;        // one
};

// For programs that are edited: an op that doubles a variable in place, and an edit for the first
// relu_grad: the output of its relu is kept in the scope, and doubled right after the relu_grad.
Op Doubled(const std::string& name);
void DoubleOutputAfterReluGrad(Program* program);

}  // namespace skiff
