#include "framework/training/float_casts.h"

#include <utility>

#include "framework/builder/layer_call.h"

namespace skiff::training {
namespace {

const Var& Declare(const std::string& name, DType dtype, const Shape& shape, Program* program) {
  const Var* declared = program->root()->FindVar(name);
  if (declared != nullptr) return *declared;
  Var var;
  var.name = name;
  var.dtype = dtype;
  var.dims.assign(shape.dims().begin(), shape.dims().end());
  var.persistable = true;
  return *program->root()->CreateVar(std::move(var));
}

}  // namespace

void CastFloats(const std::vector<FloatCast>& casts, Executor* executor) {
  if (casts.empty()) return;
  Program program;
  for (const FloatCast& cast : casts) {
    const Tensor& value = executor->scope().Get(cast.from);
    const Var& from = Declare(cast.from, value.dtype(), value.shape(), &program);
    const Var& to = Declare(cast.to, cast.dtype, value.shape(), &program);
    program.root()->AppendOp(CastOp(from, to));
  }
  executor->Run(program);
}

}  // namespace skiff::training
