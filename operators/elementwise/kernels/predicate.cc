#include "operators/elementwise/kernels/predicate.h"

#include <utility>

namespace skiff {

void AddPredicateOp(OpRegistry& registry, const PredicateFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "Bools, of X's shape."}};
  def.infer = [](OpContext& context) {
    context.SetOutputLike("Out", "X");
    context.SetOutput("Out", context.Input("X").shape, DType::kBool);
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "a bool has no gradient";
  def.elementwise = true;
  registry.Add(std::move(def));
}

}  // namespace skiff
