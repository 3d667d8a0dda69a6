// A kernel that takes fewer rows than it was prepared for computes on them what a kernel prepared
// for them does.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "operators/sequence/sequence_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/op_case.h"
#include "tests/harness/prepared_op.h"
#include "tests/operators/sequence/sequence_case_list.h"

namespace skiff::harness {
namespace {

struct OpRun {
  Op op;
  NamedTensors inputs;
};

// A case and its gradient op in float64.
std::vector<OpRun> RunsOf(const OpRegistry& registry, const OpCase& op_case) {
  std::vector<OpRun> runs = {{MakeOp(op_case), MakeInputs(op_case, DType::kFloat64)}};
  if (op_case.gradients.empty()) return runs;
  const ForwardRun forward = RunForward(registry, op_case, runs[0].op, runs[0].inputs);
  const auto wants = [](const std::string&) { return true; };
  for (const Op& op : GradientOps(registry, op_case, runs[0].op, wants))
    runs.push_back({op, forward.values});
  return runs;
}

bool HasFewerRows(std::span<const TensorMeta> large, std::span<const TensorMeta> small) {
  for (size_t i = 0; i < large.size(); ++i) {
    Shape rows_of_large = small[i].shape;
    if (rows_of_large.rank() > 0 && large[i].shape.rank() > 0) {
      if (small[i].shape[0] > large[i].shape[0]) return false;
      rows_of_large[0] = large[i].shape[0];
    }
    if (!(rows_of_large == large[i].shape) || small[i].dtype != large[i].dtype ||
        small[i].lod_level != large[i].lod_level)
      return false;
  }
  return true;
}

bool SameOp(const Op& a, const Op& b) {
  return a.type == b.type && SameAttributes(a.attrs, b.attrs) && a.inputs == b.inputs &&
         a.outputs == b.outputs;
}

// The arguments of a run, and workspaces of the sizes that a kernel prepared for more rows wants.
class FewerRows {
 public:
  FewerRows(const OpDef& def, const OpRun& run, const PrepareContext& prepared) {
    const OpContext context = ContextOf(def, run.op, run.inputs);
    for (const std::string& name : InputOrder(def, run.op)) {
      const bool is_absent = name == kEmptyVarName;
      tensors_.push_back(is_absent ? Tensor() : run.inputs.at(name));
      run_.inputs.push_back(is_absent ? nullptr : &tensors_.back());
    }
    for (const std::string& name : OutputOrder(def, run.op)) {
      const TensorMeta& meta = context.outputs()[names_.size()];
      const bool is_known = meta.shape.is_known() && name != kEmptyVarName;
      tensors_.push_back(is_known ? Tensor(meta.shape, meta.dtype) : Tensor());
      if (is_known && meta.lod != nullptr) tensors_.back().set_lod(meta.lod->offsets);
      run_.outputs.push_back(name == kEmptyVarName ? nullptr : &tensors_.back());
      names_.push_back(name);
    }
    for (const int64_t bytes : prepared.workspace_bytes()) {
      workspaces_.emplace_back(static_cast<size_t>(bytes) + 1);
      run_.workspaces.push_back(workspaces_.back().data());
    }
    run_.device_context = &device_;
    run_.seed = &zero_;
    run_.step = &zero_;
  }

  NamedTensors Run(Kernel* kernel) {
    kernel->Bind(run_);
    kernel->Run(run_);
    NamedTensors outputs;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (run_.outputs[i] != nullptr) outputs[names_[i]] = *run_.outputs[i];
    }
    return outputs;
  }

 private:
  std::deque<Tensor> tensors_;
  std::vector<std::string> names_;  // of the outputs
  std::deque<std::vector<char>> workspaces_;
  KernelContext run_;
  DeviceContext device_;
  uint64_t zero_ = 0;
};

class FewerRowsTest : public ::testing::Test {
 protected:
  FewerRowsTest() {
    RegisterSequenceOps(registry_);
    CaseList cases;
    AddSequenceCases(cases);
    for (const OpCase& op_case : cases) {
      if (op_case.benchmark_only) continue;
      for (OpRun& run : RunsOf(registry_, op_case)) runs_[run.op.type].push_back(std::move(run));
    }
  }

  // Prepares a kernel for the first run and compares it on the second one with its own. Returns
  // whether it can be compared.
  bool Compare(const OpRun& large, const OpRun& small) {
    const OpDef& def = registry_.Get(large.op.type);
    if (!SameOp(large.op, small.op)) return false;
    const OpContext large_context = ContextOf(def, large.op, large.inputs);
    const OpContext small_context = ContextOf(def, small.op, small.inputs);
    if (!HasFewerRows(large_context.inputs(), small_context.inputs()) ||
        !HasFewerRows(large_context.outputs(), small_context.outputs()))
      return false;
    PrepareContext prepare(large.op, def,
                           {large_context.inputs().begin(), large_context.inputs().end()},
                           {large_context.outputs().begin(), large_context.outputs().end()});
    const std::unique_ptr<Kernel> kernel = registry_.SelectKernel(large_context).prepare(prepare);
    if (!kernel->TakesFewerRows()) return false;
    const NamedTensors found = FewerRows(def, small, prepare).Run(kernel.get());
    PreparedOp exact(registry_, small.op, small.inputs);
    exact.Run();
    for (const auto& [name, expected] : exact.Outputs()) {
      EXPECT_TRUE(SameBits(found.at(name), expected))
          << large.op.type << " " << name << " of " << expected.shape();
      EXPECT_EQ(found.at(name).lod(), expected.lod()) << large.op.type << " " << name;
    }
    return true;
  }

  OpRegistry registry_;
  std::map<std::string, std::vector<OpRun>> runs_;
};

TEST_F(FewerRowsTest, KernelsTakeThem) {
  std::map<std::string, int> compared;
  for (const auto& [type, runs] : runs_) {
    for (const OpRun& large : runs) {
      for (const OpRun& small : runs) {
        if (&large != &small && Compare(large, small)) ++compared[type];
      }
    }
  }
  for (const char* type :
       {"im2sequence", "im2sequence_grad", "lod_reset", "lod_reset_grad", "sequence_concat",
        "sequence_concat_grad", "sequence_erase", "sequence_expand", "sequence_expand_as",
        "sequence_expand_as_grad", "sequence_expand_grad", "sequence_pad", "sequence_pad_grad",
        "sequence_scatter", "sequence_scatter_grad", "sequence_slice", "sequence_slice_grad",
        "sequence_unpad", "sequence_unpad_grad"}) {
    EXPECT_GT(compared[type], 0) << type;
  }
}

}  // namespace
}  // namespace skiff::harness
