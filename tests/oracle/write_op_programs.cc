// Writes a program for each case of each operator, except those of bfloat16 and of two-byte
// parameters, so that PaddlePaddle can run it and the results can be compared
// (check_ops_in_paddle.py; docs/outside_check.md):
//
//   write_op_programs --out=DIR [--op=softmax]
//
// The program runs the op and, if the case checks gradients, computes the loss
//   sum over outputs y of sum(weights(y) * y)
// and has the backward ops that AppendBackward appends. DIR/<op>.<case>.<dtype>/ holds main.pb,
// feed.npz and params.npz (variables that the op updates in place), and x.lod0, x.lod1, … for the
// offsets of a ragged x; DIR/cases.json lists the cases, and DIR/skiff_jobs.jsonl is for
// tools/run_program.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/ir/codec.h"
#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "framework/tensor/shape.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"

DEFINE_string(out, "", "folder to write to; made if it isn't there");
DEFINE_string(op, "", "op type; empty: all");

namespace skiff::oracle {
namespace {

using harness::OpCase;

// Outputs that only gradient ops read; each framework stores them in its own form.
bool IsPrivate(const std::string& slot) {
  return slot == "XShape" || slot == "InnerCache" || slot == "ReserveSpace" || slot == "Reserve" ||
         slot == "DropoutState";
}

// Returns whether the op draws numbers. One that drops nothing doesn't.
bool IsRandom(const OpCase& op_case) {
  if (!DefaultOpRegistry().Get(op_case.type).random) return false;
  const auto is = [&](const char* name, const Attribute& value) {
    const auto found = op_case.attrs.find(name);
    return found != op_case.attrs.end() && SameAttribute(found->second, value);
  };
  return !is("dropout_prob", 0.0f) && !is("is_test", true);
}

// Only passes set this attribute, so no saved program has it.
constexpr const char* kPassAttr = "skip_ignored";

bool IsMadeByPasses(const OpCase& op_case) {
  const auto found = op_case.attrs.find(kPassAttr);
  return found != op_case.attrs.end() && SameAttribute(found->second, true);
}

// Builds the program of one case in one dtype.
class CaseProgram {
 public:
  CaseProgram(const OpCase& op_case, DType dtype)
      : case_(op_case), def_(DefaultOpRegistry().Get(op_case.type)) {
    // Random ops without a seed of their own use the program's.
    program_.seed = 1;
    op_ = harness::MakeOp(op_case);
    op_.id = -1;
    if (op_.type.ends_with("_grad")) StateDefaults();
    DropPassAttrs();
    ShareStorage();
    AddInputs(dtype);
    InferOp(DefaultOpRegistry(), root(), root()->AppendOp(op_));
    ListOutputs();
    if (!op_case.gradients.empty()) AddGradients();
  }

  const Program& program() const { return program_; }
  const TensorMap& feeds() const { return feeds_; }
  const TensorMap& params() const { return params_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  // The outputs that not only gradient ops read.
  const std::vector<std::string>& results() const { return results_; }
  const std::vector<std::string>& gradients() const { return gradients_; }
  bool has_empty_input() const { return has_empty_input_; }
  // Returns whether an input or output has a dtype that NumPy archives don't have.
  bool has_bfloat16() const {
    const auto& vars = root()->vars();
    return std::any_of(vars.begin(), vars.end(),
                       [](const auto& var) { return var->dtype == DType::kBFloat16; });
  }

 private:
  Block* root() const { return program_.root(); }

  // PaddlePaddle has defaults for forward ops only.
  void StateDefaults() {
    for (const AttrDef& attr : def_.attrs) {
      if (attr.default_value && !op_.HasAttr(attr.name))
        op_.SetAttr(attr.name, *attr.default_value);
    }
  }

  void DropPassAttrs() {
    if (!IsMadeByPasses(case_)) op_.attrs.erase(kPassAttr);
  }

  // Returns the output that is the next value of an input: MeanOut for Mean; for an op that updates
  // parameters, the one in its definition.
  std::string UpdatedSlot(const std::string& input) const {
    if (!def_.update.has_value()) return input + "Out";
    for (const auto& [before, after] : def_.in_place) {
      if (before == input) return after;
    }
    return "";
  }

  // PaddlePaddle requires one variable for both slots of what an op updates: Mean and MeanOut,
  // Param and ParamOut.
  void ShareStorage() {
    for (const SlotArguments& input : op_.inputs) {
      const std::string slot = UpdatedSlot(input.slot);
      if (op_.Output(slot).size() != input.arguments.size()) continue;
      op_.SetOutput(slot, input.arguments);
      updated_.insert(input.arguments.begin(), input.arguments.end());
    }
    // PaddlePaddle's training kernel writes this output without checking that it exists.
    const bool lacks_space = case_.type == "batch_norm" && op_.Output("ReserveSpace").empty();
    if (lacks_space) op_.SetOutput("ReserveSpace", {"ReserveSpace.0"});
  }

  void AddInputs(DType dtype) {
    std::vector<std::string> wanted;
    if (!case_.gradients.empty()) wanted = harness::GradientVariables(case_);
    // PaddlePaddle's update ops require rates and powers in the parameter's dtype; ours take
    // float32.
    const bool is_update = case_.inputs.contains("LearningRate");
    for (auto& [name, tensor] : harness::MakeInputs(case_, dtype)) {
      const bool is_updated = updated_.contains(name);
      const bool wants = std::count(wanted.begin(), wanted.end(), name) > 0;
      const bool cast = is_update && IsFloat(tensor.dtype());
      has_empty_input_ = has_empty_input_ || tensor.element_count() == 0;
      AddVariable(name, cast ? harness::Cast(tensor, dtype) : tensor, is_updated, !wants);
    }
  }

  void AddVariable(const std::string& name, const Tensor& tensor, bool persistable,
                   bool stop_gradient) {
    Var var{.name = name};
    var.dtype = tensor.dtype();
    var.dims = tensor.shape().ToVector();
    var.persistable = persistable;
    var.stop_gradient = stop_gradient;
    var.need_check_feed = !persistable;
    var.lod_level = static_cast<int32_t>(tensor.lod().size());
    root()->CreateVar(std::move(var));
    (persistable ? params_ : feeds_)[name] = tensor;
  }

  void ListOutputs() {
    for (const SlotArguments& slot : op_.outputs) {
      if (IsPrivate(slot.slot)) continue;
      for (const std::string& name : slot.arguments) {
        if (name == kEmptyVarName) continue;
        outputs_.push_back(name);
        if (!def_.FindOutput(slot.slot)->intermediate) results_.push_back(name);
      }
    }
  }

  bool IsLossSlot(const std::string& slot) const {
    const std::vector<std::string>& listed = case_.loss_outputs;
    if (!listed.empty()) return std::count(listed.begin(), listed.end(), slot) > 0;
    const SlotDef* slot_def = def_.FindOutput(slot);
    return slot_def != nullptr && !slot_def->intermediate && !IsPrivate(slot);
  }

  void AddGradients() {
    std::vector<std::string> terms;
    for (const auto& [slot, count] : case_.outputs) {
      if (!IsLossSlot(slot)) continue;
      for (const std::string& name : op_.Output(slot)) {
        if (IsFloat(root()->GetVar(name)->dtype)) terms.push_back(WeightedSum(name));
      }
    }
    SKIFF_ENFORCE(!terms.empty(), kInvalidArgument, harness::CaseName(case_),
                  ": gradients are to be checked, but no float output can be a loss");
    Op sum("sum");
    sum.SetInput("X", terms).SetOutput("Out", {"loss"});
    InferOp(DefaultOpRegistry(), root(), root()->AppendOp(std::move(sum)));
    const BackwardResult result = AppendBackward(DefaultOpRegistry(), &program_, "loss");
    for (const std::string& name : harness::GradientVariables(case_)) {
      gradients_.push_back(result.gradients.at(name));
    }
  }

  // Returns the shape of an output, which a program may not know: with rows that depend on LoDs or
  // on data.
  Shape ShapeOf(const Var& var) const {
    if (std::ranges::count(var.dims, -1) == 0) return Shape(var.dims);
    harness::NamedTensors inputs;
    for (const std::string& name : op_.InputNames()) inputs[name] = feeds_.at(name);
    harness::PreparedOp prepared(DefaultOpRegistry(), op_, inputs);
    prepared.Run();
    return prepared.Outputs().at(var.name).shape();
  }

  // Appends sum(weights * y) and returns its name.
  std::string WeightedSum(const std::string& y) {
    const std::string weights = y + ".weights";
    const Var& var = *root()->GetVar(y);
    const harness::Array values = harness::Uniform(ShapeOf(var), 1000 + feeds_.size());
    AddVariable(weights, harness::ToTensor(values, var.dtype), false, true);
    Op product("elementwise_mul");
    product.SetInput("X", {y}).SetInput("Y", {weights}).SetOutput("Out", {y + ".weighted"});
    InferOp(DefaultOpRegistry(), root(), root()->AppendOp(std::move(product)));
    Op sum("reduce_sum");
    sum.SetInput("X", {y + ".weighted"}).SetOutput("Out", {y + ".sum"}).SetAttr("reduce_all", true);
    InferOp(DefaultOpRegistry(), root(), root()->AppendOp(std::move(sum)));
    return y + ".sum";
  }

  const OpCase& case_;
  const OpDef& def_;
  Program program_;
  Op op_;
  std::set<std::string> updated_;  // inputs that are outputs as well
  TensorMap feeds_;
  TensorMap params_;
  std::vector<std::string> outputs_;
  std::vector<std::string> results_;
  std::vector<std::string> gradients_;
  bool has_empty_input_ = false;
};

// Returns whether the dtype of a run makes a difference.
bool FollowsRun(const OpCase& op_case) {
  if (op_case.inputs.empty()) return true;
  for (const auto& [slot, arrays] : op_case.inputs) {
    for (const harness::Array& array : arrays) {
      if (!array.fixed_dtype) return true;
    }
  }
  return false;
}

class CaseWriter {
 public:
  explicit CaseWriter(std::string out) : out_(std::move(out)) {}

  void Write(const OpCase& op_case) {
    // PaddlePaddle neither feeds nor fetches them.
    if (harness::HasSelectedRows(op_case)) return;
    // PaddlePaddle's CPU kernels have no master weights.
    const auto masters = op_case.attrs.find("multi_precision");
    if (masters != op_case.attrs.end() && SameAttribute(masters->second, true)) {
      ++left_out_;
      return;
    }
    for (const DType dtype : op_case.dtypes) {
      WriteOne(op_case, dtype);
      if (!FollowsRun(op_case)) return;
    }
  }

  void WriteLists() const {
    AtomicWriteFile(JoinPath(out_, "cases.json"), descriptions_.dump(1) + "\n");
    AtomicWriteFile(JoinPath(out_, "skiff_jobs.jsonl"), jobs_);
    std::printf("%zu op programs written to %s, %d of two-byte numbers left out\n",
                descriptions_.size(), out_.c_str(), left_out_);
  }

 private:
  void WriteOne(const OpCase& op_case, DType dtype) {
    const std::string name = StrCat(op_case.type, ".", op_case.name, ".", dtype);
    const std::string folder = JoinPath(out_, name);
    const CaseProgram made(op_case, dtype);
    if (made.has_bfloat16()) {
      ++left_out_;
      return;
    }
    CreateDirectories(folder);
    AtomicWriteFile(JoinPath(folder, "main.pb"), SerializeProgram(made.program()));
    WriteNpz(JoinPath(folder, "feed.npz"), made.feeds());
    WriteNpz(JoinPath(folder, "params.npz"), made.params());
    descriptions_.push_back({{"name", name},
                             {"op", op_case.type},
                             {"dtype", StrCat(dtype)},
                             {"outputs", made.outputs()},
                             {"results", made.results()},
                             {"gradients", made.gradients()},
                             {"empty", made.has_empty_input()},
                             {"random", IsRandom(op_case)}});
    std::vector<std::string> fetch = made.outputs();
    fetch.insert(fetch.end(), made.gradients().begin(), made.gradients().end());
    const nlohmann::json job = {{"program", JoinPath(folder, "main.pb")},
                                {"feed", JoinPath(folder, "feed.npz")},
                                {"params", JoinPath(folder, "params.npz")},
                                {"fetch", Join(fetch, ",")},
                                {"out", JoinPath(folder, "skiff.npz")}};
    jobs_ += job.dump() + "\n";
  }

  std::string out_;
  nlohmann::json descriptions_ = nlohmann::json::array();
  std::string jobs_;
  int left_out_ = 0;
};

void WriteAll(const std::string& out) {
  harness::CaseList cases;
  harness::AddAllCases(cases);
  CreateDirectories(out);
  CaseWriter writer(out);
  for (const OpCase& op_case : cases) {
    const bool chosen = FLAGS_op.empty() || op_case.type == FLAGS_op;
    if (chosen && !op_case.benchmark_only && !IsMadeByPasses(op_case)) writer.Write(op_case);
  }
  writer.WriteLists();
}

int Main() {
  SKIFF_ENFORCE(!FLAGS_out.empty(), kInvalidArgument, "no folder given: --out=DIR");
  WriteAll(FLAGS_out);
  return 0;
}

}  // namespace
}  // namespace skiff::oracle

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "write_op_programs --out=DIR [--op=TYPE]",
                             .summary = "Writes a program for each case of each op.",
                             .run = skiff::oracle::Main});
}
