#include "framework/training/average.h"

#include <algorithm>

#include "framework/ir/program.h"

namespace skiff::training {

CompiledAverage::CompiledAverage(const optimizer::ParameterAverage* average, Executor* executor)
    : CompiledAverage(average, executor, *average->ApplicationProgram()) {}

CompiledAverage::CompiledAverage(const optimizer::ParameterAverage* average, Executor* executor,
                                 const Program& program)
    : average_(average),
      executor_(executor),
      host_(executor->place().is_cpu() ? nullptr : std::make_unique<Executor>(Place::Cpu())),
      program_((host_ == nullptr ? executor : host_.get())->Compile(program)) {
  const std::vector<std::string> written = average->written();
  for (const auto& var : program.root()->vars()) {
    const bool is_state = var->persistable && std::ranges::count(written, var->name) == 0;
    if (is_state) states_.push_back(var->name);
  }
}

ReplacedValues CompiledAverage::Apply() {
  Scope& scope = executor_->scope();
  // Before anything is replaced: without a value, the formula would give 0 / 0.
  average_->CheckHasValues(scope);
  const std::vector<std::string> written = average_->written();
  // ReplacedValues keeps copies of the raw values and puts them back bit for bit, so the program
  // may write over the parameters.
  return ReplacedValues(&scope, written, [&] {
    if (host_ == nullptr) {
      program_.Run({}, {});
      return;
    }
    Scope& on_host = host_->scope();
    // scope.Get waits for a kernel that still averages in the background.
    for (const std::string& name : states_) on_host.Assign(name, scope.Get(name));
    program_.Run({}, {});
    for (const std::string& name : written) scope.Assign(name, on_host.Get(name));
  });
}

ReplacedValues ApplyAverage(const optimizer::ParameterAverage& average, Executor* executor) {
  return CompiledAverage(&average, executor).Apply();
}

}  // namespace skiff::training
