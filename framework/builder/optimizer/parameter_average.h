// Averages of parameters: train with the raw values, evaluate and save models with the averages.
//
//   optimizer::Momentum({…}).Minimize(loss);            // any optimizer
//   const optimizer::ModelAverage average({…});         // or ExponentialMovingAverage
//   …                                                   // train, then evaluate with the averages:
//                                                       // framework/training/average.h
//
// Construct an average after Minimize. It appends ops to the default programs with the role
// Optimize, so CloneForTest leaves them out. Its states are persistables of both programs under
// Fluid's names: checkpoints hold them, and a resumed training has the same averages.
//
// With the option on_host, the states are CPU tensors of the scope even if the executor runs on a
// device: each step copies the parameters to the host, and the CPU averages them while the device
// continues. A look-up of such a state in the scope waits until that is done. On a CPU the option
// changes nothing.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"

namespace skiff::internal {
struct AveragedVariable;
}  // namespace skiff::internal

namespace skiff::optimizer {

// The variables that take part in an average.
struct AveragedVariables {
  // Empty: all parameters that the program's ops write, except parameters with
  // do_model_average = false (ParamAttr).
  std::vector<std::string> parameters = {};
  // Whether running means and variances, which no optimizer updates, take part.
  bool batch_norm_statistics = true;
};

class ParameterAverage {
 public:
  virtual ~ParameterAverage();

  // Returns the names of the variables that take part, in ascending order.
  std::vector<std::string> variables() const;

  // Returns the names of the variables that ApplicationProgram writes: the variables that take
  // part, and the master weights of two-byte parameters.
  std::vector<std::string> written() const;

  // Returns a program that writes each variable's average, computed in float64 and rounded once,
  // into the variable. The average of a two-byte parameter also goes to the master weights, and the
  // parameter is the rounding of the master weights, as after an update.
  std::unique_ptr<Program> ApplicationProgram() const;
  // Throws an Error (kFailedPrecondition) unless the scope holds an average of at least one value
  // for each variable.
  void CheckHasValues(const Scope& scope) const;

 protected:
  // Throws an Error (kInvalidArgument) that names `type` and `site` if no variable takes part, a
  // name in the list isn't a parameter that an op writes, a two-byte parameter has no master
  // weights, different variables skip the updates of the parameters, or a sub-block is open.
  ParameterAverage(const std::string& type, const AveragedVariables& chosen,
                   const std::source_location& site);

  using Averaged = internal::AveragedVariable;
  // In ascending order of the names.
  const std::vector<Averaged>& vars() const { return vars_; }
  // If a variable skips the updates of the parameters (gradient accumulation), connects the
  // variable, so that a run without an update doesn't count in the average.
  void ConnectSkipUpdate(ir::Op* op) const;
  // <variable>_<kind>_<n>, filled with `value`; its name. Averages have the dtype of `weights`.
  static std::string NewState(const ir::Var& var, const std::string& kind,
                              const std::vector<int64_t>& dims, DType dtype, double value,
                              const std::source_location& site);
  // In the default main program, another one than at NewState: a state, as float64.
  static Variable State(const std::string& name, const std::vector<int64_t>& dims, DType dtype);

 private:
  // Returns whether the average of variable i is over at least one value.
  virtual bool HasValues(const Scope& scope, size_t i) const = 0;
  // Appends ops to the default main program that compute the average of variable i in float64.
  virtual Variable AppendAverage(size_t i) const = 0;
  void AppendApplication() const;

  std::string type_;
  std::vector<Averaged> vars_;
  std::string skip_update_;  // empty: no update is skipped
};

}  // namespace skiff::optimizer
