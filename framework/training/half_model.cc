#include "framework/training/half_model.h"

#include <set>

#include "framework/io/parameters.h"
#include "framework/ir/master_name.h"
#include "framework/op/registry.h"
#include "framework/precision/half_rewrite.h"
#include "framework/training/float_casts.h"

namespace skiff::training {

std::unique_ptr<Program> MakeHalfModel(const Program& model, const PrecisionOptions& precision,
                                       const std::vector<std::string>& outputs) {
  std::unique_ptr<Program> half = model.CloneForTest();
  RewriteForInference(DefaultOpRegistry(), precision,
                      std::set<std::string>(outputs.begin(), outputs.end()), half.get());
  return half;
}

std::unique_ptr<Executor> ValuesFor(const Program& program, const Scope& scope) {
  auto executor = std::make_unique<Executor>(Place::Cpu());
  Scope& values = executor->scope();
  std::vector<FloatCast> casts;
  for (const std::string& name : PersistableNames(program)) {
    const DType dtype = PersistableOf(program, name).dtype;
    const Tensor* value = &scope.Get(name);
    if (value->dtype() == dtype) {
      values.Set(name, CopyToCpu(*value));
      continue;
    }
    const Tensor* master = scope.Find(MasterName(name));
    if (IsHalf(value->dtype()) && master != nullptr) value = master;
    casts.push_back({.from = name + "@unrounded", .to = name, .dtype = dtype});
    values.Set(casts.back().from, CopyToCpu(*value));
  }
  CastFloats(casts, executor.get());
  return executor;
}

}  // namespace skiff::training
