// Evaluates with averaged parameters.
//
//   const optimizer::ModelAverage average({…});           // after Minimize; then train
//   {
//     const ReplacedValues averaged = training::ApplyAverage(average, &executor);
//     …                                                   // evaluate, SaveInferenceModel
//   }                                                     // the raw values again, bit for bit
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/builder/optimizer/parameter_average.h"
#include "framework/executor/executor.h"
#include "framework/tensor/replaced_values.h"

namespace skiff::training {

// An average compiled for an executor; for callers that apply it often. The executor and the
// average outlive it. From the first Apply on it keeps a plan, memory for temporaries included.
class CompiledAverage {
 public:
  CompiledAverage(const optimizer::ParameterAverage* average, Executor* executor);

  // Replaces the parameters' values by their averages until the returned object is restored or
  // destroyed. Until then nothing trains and no checkpoint is saved: see ReplacedValues. Throws an
  // Error: kFailedPrecondition if the executor's scope has replaced values already, or if no step
  // was averaged yet; kNotFound if the scope lacks a variable.
  ReplacedValues Apply();

 private:
  CompiledAverage(const optimizer::ParameterAverage* average, Executor* executor,
                  const Program& program);

  const optimizer::ParameterAverage* average_;
  Executor* executor_;
  // Computes the averages if `executor_` runs on a device, since the states may be in host memory.
  // nullptr: `executor_` itself computes them.
  std::unique_ptr<Executor> host_;
  CompiledProgram program_;
  std::vector<std::string> states_;  // that the program reads
};

// Compiles the average, applies it as CompiledAverage::Apply does, and keeps nothing of it.
ReplacedValues ApplyAverage(const optimizer::ParameterAverage& average, Executor* executor);

}  // namespace skiff::training
