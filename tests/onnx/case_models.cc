#include "tests/onnx/case_models.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff::onnx_tests {
namespace {

void SetIsTest(Op* op) {
  const OpDef& def = DefaultOpRegistry().Get(op->type);
  if (def.FindAttr("is_test") != nullptr) op->SetAttr("is_test", true);
}

void DeclareFeed(const std::string& name, const Tensor& tensor, bool unknown_dims, Block* root) {
  Var var{.name = name};
  var.dtype = tensor.dtype();
  var.dims = tensor.shape().ToVector();
  var.lod_level = static_cast<int32_t>(tensor.lod().size());
  if (unknown_dims) std::ranges::fill(var.dims, -1);
  // A run decides how many rows a ragged feed has.
  if (var.lod_level > 0) var.dims[0] = -1;
  root->CreateVar(std::move(var));
}

}  // namespace

bool HasPlainInputs(const harness::OpCase& op_case) { return !harness::HasSelectedRows(op_case); }

CaseModel MakeCaseModel(const harness::OpCase& op_case, DType dtype, bool unknown_dims) {
  CaseModel model;
  Op op = harness::MakeOp(op_case);
  SetIsTest(&op);
  model.feeds = harness::MakeInputs(op_case, dtype);
  for (const auto& [name, tensor] : model.feeds) {
    DeclareFeed(name, tensor, unknown_dims, model.program.root());
    model.feed_names.push_back(name);
  }
  harness::PreparedOp prepared(DefaultOpRegistry(), op, model.feeds);
  prepared.Load(model.feeds, 0);
  prepared.Run();
  model.outputs = prepared.Outputs();
  op.id = -1;
  InferOp(DefaultOpRegistry(), model.program.root(), model.program.root()->AppendOp(op));
  return model;
}

ExportedCase ExportCase(const CaseModel& model, const OnnxExportOptions& options) {
  ExportedCase exported;
  const Scope scope;
  for (const auto& [name, tensor] : model.outputs) {
    try {
      OnnxBytes(model.feed_names, {name}, model.program, scope, options);
      exported.fetches.push_back(name);
    } catch (const Error& error) {
      if (exported.refusal.empty()) exported.refusal = error.what();
    }
  }
  if (exported.fetches.empty()) return exported;
  exported.bytes = OnnxBytes(model.feed_names, exported.fetches, model.program, scope, options);
  return exported;
}

}  // namespace skiff::onnx_tests
