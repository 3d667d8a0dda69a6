// Averages of parameters beside a training: train with the raw values, evaluate and save models
// with the averaged ones.
//
//   optimizer::Momentum({…}).Minimize(loss);            // any optimizer
//   const optimizer::ModelAverage average({…});         // or ExponentialMovingAverage
//   …                                                   // train
//   {
//     const ReplacedValues averaged = average.Apply(&executor);
//     …                                                 // evaluate, SaveInferenceModel
//   }                                                   // the raw values again, bit for bit
//
// Made behind Minimize on the default programs. It appends ops with the role Optimize, so that
// CloneForTest leaves them out, and keeps its states as persistables of both programs under Fluid's
// names: checkpoints hold them, and a resumed training has the same averages.
//
// With the option on_host the states are CPU tensors of the scope even where the executor runs on a
// device: parameters are copied there in each step, and the CPU averages them beside the device.
// Whoever looks a state up in the scope waits until that is done. On a CPU it changes nothing.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/replaced_values.h"
#include "framework/tensor/scope.h"

namespace skiff::optimizer {

// Which variables take part in an average.
struct AveragedVariables {
  // Empty: all parameters that the program's ops write, but those whose ParamAttr says
  // do_model_average = false.
  std::vector<std::string> parameters = {};
  // Whether running means and variances do, which no optimizer moves.
  bool batch_norm_statistics = true;
};

class ParameterAverage;

// An average compiled for an executor. Executor and average outlive it. From the first Apply on it
// keeps a plan, memory for temporaries included.
class CompiledAverage {
 public:
  // As ParameterAverage::Apply.
  ReplacedValues Apply();

 private:
  friend class ParameterAverage;
  CompiledAverage(const ParameterAverage* average, Executor* executor, const Program& program);

  const ParameterAverage* average_;
  Executor* executor_;
  // Averages are reckoned on the CPU, as states needn't lie where the executor runs: where that is
  // another place, by this one. nullptr: by the executor itself.
  std::unique_ptr<Executor> host_;
  CompiledProgram program_;
  std::vector<std::string> states_;  // that the program reads
};

class ParameterAverage {
 public:
  virtual ~ParameterAverage() = default;

  // Names of the variables that take part, in ascending order.
  std::vector<std::string> variables() const;

  // Puts the averages in the place of the values, reckoned in float64 and rounded once, until the
  // returned object is restored or destroyed. Meanwhile nothing trains and no checkpoint is saved:
  // see ReplacedValues. Error: kFailedPrecondition if that scope has replaced values, or if no step
  // was averaged yet; kNotFound if it lacks a variable. Compiles, and keeps nothing of it.
  ReplacedValues Apply(Executor* executor) const;
  CompiledAverage Compile(Executor* executor) const;

 protected:
  // Errors (kInvalidArgument) name `type` and `site`: none takes part, a name in the list isn't a
  // parameter that an op writes, one of a two-byte dtype has no master weights, their updates are
  // skipped by different variables, a sub-block is open.
  ParameterAverage(const std::string& type, const AveragedVariables& chosen,
                   const std::source_location& site);

  // A variable that takes part.
  struct Averaged {
    Var var;
    Var weights;  // what is averaged: the variable, or the master weights of a two-byte parameter
  };
  // In ascending order of the names.
  const std::vector<Averaged>& vars() const { return vars_; }
  // Connects the variable by which their updates are skipped (gradient accumulation), if they are:
  // then nothing is averaged, either.
  void ConnectSkipUpdate(Op* op) const;
  // <variable>_<kind>_<n>, filled with `value`; its name. Averages have the dtype of `weights`.
  static std::string NewState(const Var& var, const std::string& kind,
                              const std::vector<int64_t>& dims, DType dtype, double value,
                              const std::source_location& site);
  // In the default main program, which isn't the one of NewState: a state, as float64.
  static Variable State(const std::string& name, const std::vector<int64_t>& dims, DType dtype);

 private:
  // Whether the average of variable i is one of at least one value.
  virtual bool HasValues(const Scope& scope, size_t i) const = 0;
  // Appends to the default main program what computes the average of variable i in float64.
  virtual Variable AppendAverage(size_t i) const = 0;
  void AppendApplication() const;
  void CheckHasValues(const Scope& scope) const;

  friend class CompiledAverage;
  std::string type_;
  std::vector<Averaged> vars_;
  std::string skip_update_;  // empty: no update is skipped
};

}  // namespace skiff::optimizer
