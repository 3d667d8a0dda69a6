// A program with an optimizer, and a training of it on the CPU.
#pragma once

#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff {

struct Net {
  Program main;
  Program startup;
  std::string loss;
};

// Starts with initial parameters. The net must live longer.
class NetTraining {
 public:
  explicit NetTraining(const Net& net, const CompileOptions& options = {})
      : net_(net), compiled_(Start(net, options)) {}

  // One step. Returns the loss.
  Tensor Run(const FeedList& feeds) { return compiled_.Run(feeds, {net_.loss})[0]; }
  BoundProgram Bind(const FeedList& feeds) { return compiled_.Bind(feeds, {net_.loss}); }

  // Of all that the net keeps.
  std::string Hash() const { return WeightsHash(executor_.scope(), PersistableNames(net_.main)); }
  std::vector<float> Floats(const std::string& name) { return scope().Get(name).ToVector<float>(); }
  const Program& program() const { return net_.main; }
  Scope& scope() { return executor_.scope(); }
  Executor& executor() { return executor_; }
  CompiledProgram& compiled() { return compiled_; }  // of program(), after its passes

 private:
  CompiledProgram Start(const Net& net, const CompileOptions& options) {
    executor_.Run(net.startup);
    return executor_.Compile(net.main, options);
  }

  const Net& net_;
  Executor executor_{Place::Cpu()};
  CompiledProgram compiled_;
};

}  // namespace skiff
