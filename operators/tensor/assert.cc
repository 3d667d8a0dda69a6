// assert: throws an Error unless Cond is true.
//
// Source: Fluid's assert. Cond is one bool. The message shows name, dtype, shape and up to
// `summarize` elements of each Data.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/kernels/tensor_text.h"

namespace skiff {
namespace {

void InferAssert(OpContext& context) {
  const TensorMeta& condition = context.Input("Cond");
  SKIFF_ENFORCE(condition.dtype == DType::kBool, kInvalidArgument, "assert: Cond is ",
                condition.dtype, ", expected bool");
  CheckOneElement(context, "Cond");
}

std::unique_ptr<Kernel> PrepareAssert(PrepareContext& context) {
  std::vector<std::pair<std::string, In<>>> data;
  for (size_t i = 0; i < context.InputCount("Data"); ++i) {
    data.emplace_back(context.op().Input("Data")[i], In<>(context, "Data", i));
  }
  return MakeKernel([data = std::move(data), name = context.op().Input("Cond").front(),
                     condition = In<>(context, "Cond"),
                     summarize = context.IntAttr("summarize")](const KernelContext& run) {
    if (condition.tensor(run).Item<bool>()) return;
    std::string shown;
    for (const auto& [variable, argument] : data) {
      const Tensor& tensor = argument.tensor(run);
      shown += StrCat("\n  ", variable, ": ", tensor.dtype(), " ", tensor.shape(), " ",
                      ElementsAsText(tensor, summarize));
    }
    Throw(ErrorCode::kFailedPrecondition, "assert: \"", name, "\" is false", shown);
  });
}

}  // namespace

void RegisterAssert(OpRegistry& registry) {
  OpDef def;
  def.type = "assert";
  def.doc = "Throws an Error that shows Data, unless Cond is true.";
  def.inputs = {{.name = "Cond", .doc = "One bool.", .checks_data = true},
                {.name = "Data", .doc = "The tensors that the message shows.", .duplicable = true}};
  def.attrs = {{.name = "summarize",
                .type = AttrType::kLong,
                .default_value = int64_t{-1},
                .doc = "How many elements of each Data to show; -1: all."}};
  def.infer = InferAssert;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it has no output";
  def.kernel_dtype_slot = "Cond";
  def.has_side_effect = true;
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddKernel("assert",
                     KernelDef{.dtype = DType::kBool, .prepare = PrepareAssert, .accepts = {}});
}

}  // namespace skiff
