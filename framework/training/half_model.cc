#include "framework/training/half_model.h"

#include <set>
#include <vector>

#include "framework/io/parameters.h"
#include "framework/ir/master_name.h"
#include "framework/op/registry.h"
#include "framework/precision/half_rewrite.h"
#include "framework/training/float_casts.h"

namespace skiff::training {

std::unique_ptr<Program> MakeHalfModel(const Program& model, const PrecisionOptions& precision,
                                       const std::vector<std::string>& outputs) {
  std::unique_ptr<Program> half = model.Clone();
  RewriteForInference(DefaultOpRegistry(), precision,
                      std::set<std::string>(outputs.begin(), outputs.end()), half.get());
  return half;
}

void CastToDeclared(const Program& program, Executor* executor) {
  Scope& scope = executor->scope();
  const auto name_of_cast = [](const std::string& name) { return name + "@cast"; };
  std::vector<FloatCast> casts;
  for (const std::string& name : PersistableNames(program)) {
    const DType declared = PersistableOf(program, name).dtype;
    const Tensor* value = scope.Find(name);
    if (value == nullptr || value->dtype() == declared) continue;
    if (!IsFloat32OrHalf(value->dtype()) || !IsFloat32OrHalf(declared)) continue;
    casts.push_back({.from = name, .to = name_of_cast(name), .dtype = declared});
  }
  CastFloats(casts, executor);
  for (const FloatCast& cast : casts) {
    scope.Set(cast.from, scope.Get(cast.to));
    scope.Erase(cast.to);
  }
}

std::unique_ptr<Executor> ValuesFor(const Program& program, const Scope& scope) {
  auto executor = std::make_unique<Executor>(Place::Cpu());
  for (const std::string& name : PersistableNames(program)) {
    const Tensor* value = &scope.Get(name);
    const Tensor* master = IsHalf(value->dtype()) ? scope.Find(MasterName(name)) : nullptr;
    const bool fits = value->dtype() == PersistableOf(program, name).dtype;
    executor->scope().Set(name, CopyToCpu(fits || master == nullptr ? *value : *master));
  }
  CastToDeclared(program, executor.get());
  return executor;
}

}  // namespace skiff::training
