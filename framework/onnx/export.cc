#include "framework/onnx/export.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "framework/io/file.h"
#include "framework/ir/used_names.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/graph_writer.h"
#include "framework/op/declared_types.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/registry.h"
#include "framework/op/var_meta.h"

namespace skiff {
namespace onnx_export {
namespace {

const Var& CheckedVar(const Block& root, const std::string& name, std::string_view what) {
  const Var* var = root.FindLocalVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, what, " \"", name,
                "\" is no variable of the program's root block");
  SKIFF_ENFORCE(var->kind == VarKind::kLoDTensor, kInvalidArgument, what, " \"", name, "\" is a ",
                VarKindName(var->kind), ", expected a lod_tensor");
  return *var;
}

void CheckNames(const Block& root, const std::vector<std::string>& names, std::string_view what) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    CheckedVar(root, name, what);
    SKIFF_ENFORCE(seen.insert(name).second, kInvalidArgument, what, " \"", name,
                  "\" is named twice");
  }
}

bool IsFeedOrFetch(const Op& op) { return op.type == "feed" || op.type == "fetch"; }

void RemoveFeedsAndFetches(Block* root) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < root->ops().size(); ++i) {
    if (!IsFeedOrFetch(*root->ops()[i])) kept.push_back(i);
  }
  root->ReorderOps(kept);
}

// Returns the part of the program to export.
std::unique_ptr<Program> PartToExport(const Program& program, const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches) {
  CheckNames(*program.root(), feeds, "feed");
  CheckNames(*program.root(), fetches, "fetch");
  SKIFF_ENFORCE(!fetches.empty(), kInvalidArgument, "there is no fetch, expected one at least");
  const std::unique_ptr<Program> test = program.CloneForTest();
  RemoveFeedsAndFetches(test->root());
  std::unique_ptr<Program> part = test->Prune(feeds, fetches);
  std::set<std::string> needed = NamesRead(*part);
  needed.insert(fetches.begin(), fetches.end());
  for (const std::string& feed : feeds) {
    SKIFF_ENFORCE(needed.contains(feed), kInvalidArgument, "feed \"", feed,
                  "\" isn't needed to compute the fetches: leave it out");
  }
  return part;
}

std::vector<TensorMeta> MetasOf(const Block& block, const std::vector<std::string>& names) {
  std::vector<TensorMeta> metas;
  for (const std::string& name : names) {
    const Var* var = block.FindVar(name);
    metas.push_back(var == nullptr ? TensorMeta{} : MetaOf(*var));
  }
  return metas;
}

}  // namespace

// Exports the ops of a program's root block and of the blocks inside it. Their variables get the
// shapes that follow from the feeds.
class ProgramExport {
 public:
  ProgramExport(Program* program, const Scope& scope, const OnnxExportOptions& options)
      : root_(program->root()), options_(options), values_(*root_, scope, &graph_) {}

  void AddFeed(const std::string& name) {
    feeds_.insert(name);
    const Var& var = *root_->GetVar(name);
    std::vector<GraphDim> dims;
    for (const int64_t dim : var.dims) {
      dims.push_back({.size = dim, .symbol = StrCat(name, ".", dims.size())});
    }
    graph_.AddInput(name, {.dtype = var.dtype, .dims = dims});
    LoDValues lod;
    for (int32_t level = 0; level < var.lod_level; ++level) {
      lod.push_back(graph_.FreshName(LevelName(name, level)));
      const GraphDim offsets = {.symbol = StrCat(lod.back(), ".0")};
      graph_.AddInput(lod.back(), {.dtype = DType::kInt64, .dims = {{offsets}}});
    }
    values_.Set(name, name, std::move(lod));
  }

  void AddOps() { AddOps(root_, &values_); }

  void AddFetch(const std::string& name) {
    const std::string value = values_.Find(name);
    const Var& var = *root_->GetVar(name);
    if (value.empty()) {
      if (refusals_.empty()) {
        refusals_.push_back(StrCat("fetch \"", name, "\": ", values_.WhyMissing(name)));
      }
      return;
    }
    std::vector<GraphDim> dims;
    for (const int64_t dim : var.dims) dims.push_back({.size = dim});
    const std::string output =
        graph_.AddOutput(OutputOf(name, value), {.dtype = var.dtype, .dims = dims});
    const LoDValues lod = values_.FindLoD(name);
    if (static_cast<int32_t>(lod.size()) < var.lod_level && refusals_.empty()) {
      refusals_.push_back(StrCat("fetch \"", name, "\": its offsets are unknown"));
    }
    for (int32_t level = 0; level < std::ssize(lod) && level < var.lod_level; ++level) {
      AddOffsets(LevelName(output, level), lod[static_cast<size_t>(level)]);
    }
  }

  std::string Finish() {
    SKIFF_ENFORCE(refusals_.empty(), kUnimplemented, "the program has no form in ONNX (opset ",
                  options_.opset, "):\n", Join(refusals_, "\n"));
    return graph_.Finish(options_.graph_name, options_.opset);
  }

 private:
  // Returns what a node makes of a fetch's value, under the fetch's name if that can be had.
  std::string OutputOf(const std::string& fetch, const std::string& value) {
    if (value == fetch && graph_.ProducerOf(value)) return value;
    std::string source = value;
    std::string name = fetch;
    if (!TakeName(fetch, &source)) name = graph_.FreshName(StrCat(fetch, ".out"));
    if (!graph_.Rename(source, name, 0)) AddCopy(source, name);
    return name;
  }

  // Gives the parameter, or the first of a variable's several values, that has a fetch's name
  // another one. `value` follows if it is that. Returns false if the name is a feed's, or must
  // stay.
  bool TakeName(const std::string& fetch, std::string* value) {
    if (feeds_.contains(fetch)) return false;
    const std::string other = graph_.FreshName(fetch);
    if (!graph_.Rename(fetch, other, 0) && !graph_.RenameInitializer(fetch, other)) {
      return !graph_.ProducerOf(fetch);
    }
    if (*value == fetch) *value = other;
    return true;
  }

  void AddCopy(const std::string& value, const std::string& name) {
    const size_t first_node = graph_.position().nodes;
    graph_.Rename(graph_.AddNode("Identity", {value}, {})[0], name, first_node);
  }

  static std::string LevelName(const std::string& name, int32_t level) {
    return StrCat(name, ".lod", level);
  }

  void AddOffsets(const std::string& name, const std::string& offsets) {
    const std::string output = graph_.FreshName(name);
    AddCopy(offsets, output);
    graph_.AddOutput(output, {.dtype = DType::kInt64, .dims = {{GraphDim{}}}});
  }

  void AddOps(Block* block, ExportValues* values) {
    for (size_t i = 0; i < block->ops().size(); ++i) AddOp(block, i, values);
  }

  void AddOp(Block* block, size_t position, ExportValues* values) {
    Op* op = block->ops()[position].get();
    const OpDef* def = DefaultOpRegistry().Find(op->type);
    const std::string where = DescribeOp(*op, block->index(), position);
    const GraphPosition begin = graph_.position();
    try {
      const ExporterEntry* entry = ExporterTable::All().Find(op->type);
      if (entry == nullptr || def == nullptr) Refuse("the op has no form in ONNX");
      TakeDeclaredTypes(*def, op);
      CheckOp(*def, *op);
      const OpContext context = InferredContext(*block, *op, *def);
      OpExport exported(context,
                        {.block = block,
                         .position = position,
                         .opset = options_.opset,
                         .keeps_half = entry->keeps_half,
                         .values = values,
                         .graph = &graph_,
                         .add_ops = [this](Block* inner, ExportValues* of) { AddOps(inner, of); }});
      entry->run(exported);
      exported.Finish();
    } catch (const Refusal& refusal) {
      graph_.ReturnTo(begin);
      refusals_.push_back(StrCat(where, ": ", refusal.reason));
      // One refusal is enough: what reads the outputs isn't to blame.
      for (const std::string& name : op->OutputNames()) {
        const Var* var = block->FindVar(name);
        const int32_t levels = var == nullptr ? 0 : var->lod_level;
        values->Set(name, name, LoDValues(static_cast<size_t>(levels), name));
      }
    } catch (const Error& error) {
      throw error.WithContext(where);
    }
  }

  static OpContext InferredContext(const Block& block, const Op& op, const OpDef& def) {
    const std::vector<std::string> outputs = OutputOrder(def, op);
    OpContext context(op, def, MetasOf(block, InputOrder(def, op)), MetasOf(block, outputs));
    InferOutputs(&context);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Var* var = block.FindVar(outputs[i]);
      if (var != nullptr) SetMeta(context.outputs()[i], var);
    }
    return context;
  }

  Block* root_;
  const OnnxExportOptions& options_;
  GraphWriter graph_;
  ExportValues values_;
  std::set<std::string> feeds_;
  std::vector<std::string> refusals_;
};

}  // namespace onnx_export

std::string OnnxBytes(const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches, const Program& program,
                      const Scope& scope, const OnnxExportOptions& options) {
  using onnx_export::kLargestOpset;
  using onnx_export::kLeastOpset;
  SKIFF_ENFORCE(options.opset >= kLeastOpset && options.opset <= kLargestOpset, kInvalidArgument,
                "opset ", options.opset, ", expected ", kLeastOpset, " to ", kLargestOpset);
  const std::unique_ptr<Program> part = onnx_export::PartToExport(program, feeds, fetches);
  onnx_export::ProgramExport exported(part.get(), scope, options);
  for (const std::string& feed : feeds) exported.AddFeed(feed);
  exported.AddOps();
  for (const std::string& fetch : fetches) exported.AddFetch(fetch);
  return exported.Finish();
}

void ExportOnnx(const std::string& path, const std::vector<std::string>& feeds,
                const std::vector<std::string>& fetches, const Program& program, const Scope& scope,
                const OnnxExportOptions& options) {
  AtomicWriteFile(path, OnnxBytes(feeds, fetches, program, scope, options));
}

void ExportOnnx(const std::string& path, const InferenceModel& model, const Scope& scope,
                const OnnxExportOptions& options) {
  ExportOnnx(path, model.feed_names, model.fetch_names, *model.program, scope, options);
}

}  // namespace skiff
