#include "framework/builder/data.h"

#include "framework/builder/layer_call.h"
#include "framework/builder/program_guard.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {

Variable Data(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
              const DataOptions& options, std::source_location site) {
  const LayerCall call("data", name, site);
  Block* root = DefaultMainProgram().root();
  call.Enforce(!name.empty(), "a feed needs a name");
  call.Enforce(root->FindLocalVar(name) == nullptr, "variable \"", name, "\" exists already");
  for (const int64_t dim : dims) {
    call.Enforce(dim >= -1, "\"", name, "\" of shape ", Shape(dims),
                 " has a dim below -1 (which means any extent)");
  }
  Var var{.name = name};
  var.dtype = dtype;
  var.dims = dims;
  var.lod_level = options.lod_level;
  var.stop_gradient = options.stop_gradient;
  // As in Fluid, for programs that PaddlePaddle runs.
  var.need_check_feed = true;
  root->CreateVar(std::move(var));
  return {root, name};
}

Variable CreateParameter(const std::vector<int64_t>& dims, DType dtype, const ParamAttr& attr,
                         std::source_location site) {
  const LayerCall call("create_parameter", attr.name, site);
  return call.CreateParameter(attr, "w", dims, dtype, initializer::Xavier());
}

}  // namespace skiff::layers
