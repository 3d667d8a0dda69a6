// Loops and branches: Loop, Scan and If, whose bodies are graphs of the ops of a block.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/control_values.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

const GraphType kFlag = {.dtype = DType::kBool, .dims = std::vector<GraphDim>{}};
const GraphType kNumber = {.dtype = DType::kInt64, .dims = std::vector<GraphDim>{}};

// The graph of an op's block, from its beginning to Finish.
class BodyGraph {
 public:
  explicit BodyGraph(OpExport& op) : op_(op), values_(op.SubBlock(), &op.values()) {
    op.graph().BeginSubgraph();
  }

  void AddInput(const std::string& name, const GraphType& type) {
    op_.graph().AddInput(op_.graph().FreshName(name), type);
  }
  // Adds an input that is the value of a variable.
  void AddVariable(const Var& var) {
    const std::string value = op_.graph().FreshName(var.name);
    op_.graph().AddInput(value, TypeOf(var));
    values_.Set(var.name, value);
  }
  void AddOps() { op_.AddOps(&values_); }
  // Returns the value that a variable has at the end.
  std::string Find(const std::string& variable) {
    std::string value = values_.Find(variable);
    if (value.empty()) {
      Refuse("its block gives \"", variable, "\" no value: ", values_.WhyMissing(variable));
    }
    return value;
  }
  void AddOutput(const std::string& variable, const GraphType& type) {
    op_.graph().AddOutput(Find(variable), type);
  }
  Subgraph Finish() { return op_.graph().EndSubgraph(); }

 private:
  OpExport& op_;
  ExportValues values_;
};

// Refuses what ONNX's loops can't hand on.
void CheckCarried(const Var& var) {
  const bool is_ragged = var.kind == VarKind::kLoDTensor && var.lod_level > 0;
  if (is_ragged) Refuse("its block writes \"", var.name, "\", which is ragged");
}

// Returns 0s of the dims of a variable; an extent that a run decides is `unknown`, or refused if
// that is -1.
std::string Zeros(OpExport& op, const Var& var, int64_t unknown) {
  std::vector<int64_t> dims = var.dims;
  for (int64_t& dim : dims) {
    if (dim < 0 && unknown < 0) {
      Refuse("\"", var.name, "\" has no value before it, and dims that a run decides");
    }
    if (dim < 0) dim = unknown;
  }
  return op.Node("Expand", {op.Number(var.dtype, 0), op.IntVector(dims)});
}

// Returns the value that a variable has before the op: 0 if it has none.
std::string ValueBefore(OpExport& op, const Var& var, int64_t unknown) {
  if (var.kind == VarKind::kLoDTensorArray) return ArrayValue(op, var.name, var.dtype);
  const std::string value = op.values().Find(var.name);
  return value.empty() ? Zeros(op, var, unknown) : value;
}

std::string Scalar(OpExport& op, const std::string& value) { return Reshaped(op, value, {}); }

void While(OpExport& op) {
  const std::string condition = op.op().Input("Condition")[0];
  const std::vector<const Var*> carried = op.WrittenByBlock();
  op.Ignore("X");
  std::vector<std::string> inputs = {"", Scalar(op, op.In("Condition"))};
  for (const Var* var : carried) {
    CheckCarried(*var);
    inputs.push_back(ValueBefore(op, *var, /*unknown=*/-1));
  }
  BodyGraph body(op);
  body.AddInput("iteration", kNumber);
  body.AddInput("condition", kFlag);
  for (const Var* var : carried) body.AddVariable(*var);
  body.AddOps();
  op.graph().AddOutput(Scalar(op, body.Find(condition)), kFlag);
  for (const Var* var : carried) body.AddOutput(var->name, TypeOf(*var));
  const std::vector<std::string> made =
      op.Nodes("Loop", inputs, {{"body", body.Finish()}}, carried.size());
  for (size_t i = 0; i < carried.size(); ++i) op.SetVariable(carried[i]->name, made[i]);
}

const std::vector<std::string>& Names(OpExport& op, std::string_view attribute) {
  return std::get<std::vector<std::string>>(op.Attr(attribute));
}

// Returns the variables around the block that it writes and that aren't outputs: running statistics
// and the like.
std::vector<const Var*> OtherResults(OpExport& op) {
  const std::vector<std::string>& outputs = op.op().Output("outputs");
  std::vector<const Var*> written = op.WrittenByBlock();
  std::erase_if(written,
                [&](const Var* var) { return std::ranges::count(outputs, var->name) > 0; });
  return written;
}

// What a Scan hands on from step to step, and the parts that it reads and makes.
struct ScanVariables {
  std::vector<const Var*> before;
  std::vector<const Var*> after;
  std::vector<const Var*> parts;
  std::vector<const Var*> outputs;
};

ScanVariables ScanVariablesOf(OpExport& op, const std::vector<const Var*>& others) {
  const Block& block = op.SubBlock();
  const auto find = [&](const std::vector<std::string>& names) {
    std::vector<const Var*> vars;
    for (const std::string& name : names) vars.push_back(block.GetVar(name));
    return vars;
  };
  ScanVariables variables = {.before = find(Names(op, "ex_states")),
                             .after = find(Names(op, "states")),
                             .parts = find(op.op().Input("inputs")),
                             .outputs = find(op.op().Output("outputs"))};
  for (std::vector<const Var*>* states : {&variables.before, &variables.after}) {
    states->insert(states->end(), others.begin(), others.end());
  }
  return variables;
}

Subgraph ScanBody(OpExport& op, const ScanVariables& variables) {
  BodyGraph body(op);
  for (const std::vector<const Var*>* vars : {&variables.before, &variables.parts}) {
    for (const Var* var : *vars) body.AddVariable(*var);
  }
  body.AddOps();
  for (const std::vector<const Var*>* vars : {&variables.after, &variables.outputs}) {
    for (const Var* var : *vars) body.AddOutput(var->name, TypeOf(*var));
  }
  return body.Finish();
}

void Recurrent(OpExport& op) {
  const std::vector<const Var*> others = OtherResults(op);
  const ScanVariables variables = ScanVariablesOf(op, others);
  const int64_t is_reverse = op.Bool("reverse") ? 1 : 0;
  for (const char* name : {"parameters", "has_states", "skip_eager_deletion_vars"}) op.Ignore(name);
  if (variables.parts.empty()) Refuse("it has no inputs");
  std::vector<std::string> inputs = op.Ins("initial_states");
  for (const Var* var : others) inputs.push_back(ValueBefore(op, *var, /*unknown=*/-1));
  for (const std::string& value : op.Ins("inputs")) inputs.push_back(value);
  const std::vector<int64_t> in_directions(variables.parts.size(), is_reverse);
  const std::vector<int64_t> out_directions(variables.outputs.size(), is_reverse);
  const size_t states = variables.before.size();
  const std::vector<std::string> made =
      op.Nodes("Scan", inputs,
               {{"body", ScanBody(op, variables)},
                {"num_scan_inputs", static_cast<int64_t>(variables.parts.size())},
                {"scan_input_directions", in_directions},
                {"scan_output_directions", out_directions}},
               states + variables.outputs.size());
  for (size_t i = 0; i < others.size(); ++i) {
    op.SetVariable(others[i]->name, made[states - others.size() + i]);
  }
  for (size_t i = 0; i < variables.outputs.size(); ++i) op.Set("outputs", made[states + i], i);
}

// Returns whether the block runs, of rank 0.
std::string BlockCondition(OpExport& op) {
  if (op.Bool("is_scalar_condition")) return Scalar(op, op.In("Cond"));
  std::string runs;
  for (const std::string& condition : op.Ins("Cond")) {
    const std::string has_any = op.Node("Greater", {op.Node("Size", {condition}), op.IntNumber(0)});
    runs = runs.empty() ? has_any : op.Node("And", {runs, has_any});
  }
  return runs;
}

// Returns whether nothing needs the rows of a variable where the block that writes it doesn't run:
// all that reads it selects the result of the branch that has run, or puts the rows of branches
// together, of which there are none then.
bool OnlyMergesRead(OpExport& op, const Var& var) {
  return std::ranges::all_of(op.block().ops(), [&](const auto& reader) {
    const std::vector<std::string> names = reader->InputNames();
    return std::ranges::count(names, var.name) == 0 || reader->type == "select_input" ||
           reader->type == "merge_lod_tensor";
  });
}

// Returns the type of a variable that two branches make.
GraphType BranchType(const Var& var) {
  GraphType type = TypeOf(var);
  type.dims.reset();
  return type;
}

void ConditionalBlock(OpExport& op) {
  const std::vector<const Var*> written = op.WrittenByBlock();
  op.Ignore("Input");
  const std::string condition = BlockCondition(op);
  if (written.empty()) return;
  BodyGraph taken(op);
  taken.AddOps();
  for (const Var* var : written) {
    CheckCarried(*var);
    taken.AddOutput(var->name, BranchType(*var));
  }
  const Subgraph then_branch = taken.Finish();
  op.graph().BeginSubgraph();
  for (const Var* var : written) {
    const int64_t unknown = OnlyMergesRead(op, *var) ? 0 : -1;
    op.graph().AddOutput(ValueBefore(op, *var, unknown), BranchType(*var));
  }
  const Subgraph else_branch = op.graph().EndSubgraph();
  const std::vector<std::string> made =
      op.Nodes("If", {condition}, {{"then_branch", then_branch}, {"else_branch", else_branch}},
               written.size());
  for (size_t i = 0; i < written.size(); ++i) op.SetVariable(written[i]->name, made[i]);
}

// Returns x[mask], or one of those from `first` on.
std::string Selected(OpExport& op, const std::vector<std::string>& x, const std::string& mask,
                     size_t first) {
  if (first + 1 == x.size()) return x[first];
  const GraphType type = {.dtype = op.OutDType("Out"), .dims = {}};
  const std::string is_first =
      op.Node("Equal", {mask, op.Number(DType::kInt32, static_cast<double>(first))});
  op.graph().BeginSubgraph();
  op.graph().AddOutput(x[first], type);
  const Subgraph then_branch = op.graph().EndSubgraph();
  op.graph().BeginSubgraph();
  op.graph().AddOutput(Selected(op, x, mask, first + 1), type);
  const Subgraph else_branch = op.graph().EndSubgraph();
  return op.Node("If", {is_first}, {{"then_branch", then_branch}, {"else_branch", else_branch}});
}

void SelectInput(OpExport& op) {
  op.Set("Out", Selected(op, op.Ins("X"), Scalar(op, op.In("Mask")), 0));
}

std::string FlatMask(OpExport& op) { return Reshaped(op, op.In("Mask"), {-1}); }

void SplitLodTensor(OpExport& op) {
  op.Ignore("level");
  const std::string x = op.In("X");
  const std::string mask = FlatMask(op);
  const auto rows = [&](const std::string& chosen) {
    return op.Node("Compress", {x, chosen}, {{"axis", int64_t{0}}});
  };
  op.Set("OutTrue", rows(mask));
  op.Set("OutFalse", rows(op.Node("Not", {mask})));
}

void MergeLodTensor(OpExport& op) {
  op.Ignore("level");
  op.Ignore("X");
  const std::string mask = FlatMask(op);
  const std::string zero = op.IntNumber(0);
  // How many rows before each one are true (false).
  const auto before = [&](const std::string& chosen) {
    return op.Node("CumSum", {op.Cast(chosen, DType::kInt64), zero}, {{"exclusive", int64_t{1}}});
  };
  const std::string in_true = op.In("InTrue");
  const std::string of_false =
      op.Node("Add", {before(op.Node("Not", {mask})), DimsOf(op, in_true, 0, 1)});
  const std::string rows = op.Node("Where", {mask, before(mask), of_false});
  op.Set("Out", op.Node("Gather", {Joined(op, {in_true, op.In("InFalse")}), rows}));
}

void Copy(OpExport& op) {
  op.Ignore("dtype");
  op.Set("Out", op.Node("Identity", {op.In("X")}));
}

}  // namespace

void AddControlExporters(ExporterTable* table) {
  table->AddMover("while", While);
  table->AddMover("recurrent", Recurrent);
  table->AddMover("conditional_block", ConditionalBlock);
  table->AddMover("select_input", SelectInput);
  table->AddMover("split_lod_tensor", SplitLodTensor);
  table->AddMover("merge_lod_tensor", MergeLodTensor);
  table->AddMover("rnn_memory_helper", Copy);
}

}  // namespace skiff::onnx_export
