#include "operators/optimizer/kernels/register_update_op.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "operators/common/half.h"
#include "operators/optimizer/kernels/dense_update.h"
#include "operators/optimizer/kernels/norm_update.h"
#include "operators/optimizer/kernels/sparse_update.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> MakeUpdateKernel(PrepareContext& context, UpdateLoops<T> loops,
                                         const CoefficientRule& rule) {
  if (rule.needs_norms) return std::make_unique<NormUpdate<T>>(context, loops, rule);
  if (context.Input("Grad").is_selected_rows()) {
    return std::make_unique<SparseUpdate<T>>(context, loops.update, rule);
  }
  return std::make_unique<DenseUpdate<T>>(context, loops.update, rule);
}

}  // namespace

void RegisterUpdateOp(OpRegistry& registry, const UpdateOp& op,
                      std::function<UpdateLoopSet(const OpContext&)> loops,
                      std::function<CoefficientRule(const OpContext&)> rule) {
  registry.Add(MakeUpdateOpDef(op));
  const auto prepare = [loops = std::move(loops), rule = std::move(rule)]<typename T>(
                           PrepareContext& context) -> std::unique_ptr<Kernel> {
    const UpdateLoopSet set = loops(context);
    if constexpr (std::is_same_v<T, double>) {
      return MakeUpdateKernel<double>(context, set.of_double, rule(context));
    } else {
      return MakeUpdateKernel<float>(context, set.of_float, rule(context));
    }
  };
  registry.AddCpuKernels<float, double, Float16, BFloat16>(op.type, prepare);
  registry.AddSelectedRowsKernels<float, double, Float16, BFloat16>(op.type, prepare);
}

}  // namespace skiff
