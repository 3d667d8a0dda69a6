#include "operators/common/all_dtypes.h"

namespace skiff {

void AddKernelsForAllDTypes(OpRegistry& registry, std::string_view type,
                            const KernelFactory& prepare,
                            const std::function<bool(const OpContext&)>& accepts) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    registry.AddKernel(type, KernelDef{.dtype = dtype, .prepare = prepare, .accepts = accepts});
  }
}

}  // namespace skiff
