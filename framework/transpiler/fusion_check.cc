#include "framework/transpiler/fusion_check.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {
namespace {

using Names = std::set<std::string>;

Names OutputsOf(const std::vector<Op>& ops) {
  Names names;
  for (const Op& op : ops) {
    for (const std::string& name : op.OutputNames()) names.insert(name);
  }
  return names;
}

Names ValuesOf(const std::vector<Op>& ops) {
  Names names = OutputsOf(ops);
  for (const Op& op : ops) {
    for (const std::string& name : op.InputNames()) names.insert(name);
  }
  return names;
}

void CheckName(const Names& names, std::string_view name, std::string_view use) {
  SKIFF_ENFORCE(
      names.contains(std::string(name)), kInvalidArgument, use, ": there is no \"", name,
      "\"; there are: ", Join(std::vector<std::string>(names.begin(), names.end()), ", "));
}

void CheckNames(const Names& names, const std::vector<std::string>& used, std::string_view use) {
  for (const std::string& name : used) CheckName(names, name, use);
}

// Checks what CheckOp leaves to whoever writes an op: a pattern has only some slots of an op.
void CheckDefinition(const OpRegistry& registry, const Op& op) {
  const OpDef* def = registry.Find(op.type);
  if (def == nullptr) return;
  const auto has = [&](bool is_there, std::string_view kind, std::string_view name) {
    SKIFF_ENFORCE(is_there, kInvalidArgument, op.type, " has no ", kind, " \"", name, "\"");
  };
  for (const SlotArguments& in : op.inputs) has(def->FindInput(in.slot), "input", in.slot);
  for (const SlotArguments& out : op.outputs) has(def->FindOutput(out.slot), "output", out.slot);
  for (const auto& attr : op.attrs) has(def->FindAttr(attr.first), "attribute", attr.first);
}

// Checks gradient_of, and adds to `values` the names in the earlier fusions that have this name.
void AddForward(const std::vector<Fusion>& fusions, const Fusion& gradient, Names* values) {
  CheckName(*values, gradient.gradient_of, "gradient_of");
  Names forward;
  for (const Fusion& earlier : fusions) {
    if (&earlier == &gradient) break;
    const Names names = ValuesOf(earlier.before.ops);
    if (names.contains(gradient.gradient_of)) forward.insert(names.begin(), names.end());
  }
  CheckName(forward, gradient.gradient_of, "gradient_of, in the fusions before");
  values->merge(forward);
}

void CheckFusedOp(const OpRegistry& registry, const FusedOp& fused, const Names& values,
                  const Names& outputs) {
  SKIFF_ENFORCE(fused.op.ops.size() == 1, kInvalidArgument, "expected one op to make, got ",
                fused.op.ops.size());
  const Op& op = fused.op.ops[0];
  CheckDefinition(registry, op);
  CheckNames(values, op.InputNames(), op.type);
  CheckNames(values, op.OutputNames(), op.type);
  CheckName(outputs, fused.at, "at");
  if (!fused.origin.empty()) CheckName(outputs, fused.origin, "origin");
  if (!fused.arguments_of.empty()) CheckName(outputs, fused.arguments_of, "arguments_of");
  CheckNames(outputs, fused.attributes_of, "attributes_of");
  CheckNames(OutputsOf({op}), fused.if_read, "if_read");
}

void CheckFusion(const OpRegistry& registry, const std::vector<Fusion>& fusions,
                 const Fusion& fusion) {
  for (const Op& op : fusion.before.ops) CheckDefinition(registry, op);
  const Names outputs = OutputsOf(fusion.before.ops);
  Names values = ValuesOf(fusion.before.ops);
  if (!fusion.gradient_of.empty()) AddForward(fusions, fusion, &values);
  Names made;
  for (const FusedOp& fused : fusion.after) {
    CheckFusedOp(registry, fused, values, outputs);
    made.merge(OutputsOf(fused.op.ops));
  }
  for (const auto& [value, other] : fusion.instead) {
    CheckName(outputs, value, "instead");
    CheckName(made, other, "instead");
  }
}

}  // namespace

void CheckFusions(const OpRegistry& registry, const std::vector<Fusion>& fusions) {
  for (size_t i = 0; i < fusions.size(); ++i) {
    try {
      CheckFusion(registry, fusions, fusions[i]);
    } catch (const Error& error) {
      throw error.WithContext(StrCat("fusion ", i));
    }
  }
}

}  // namespace skiff
