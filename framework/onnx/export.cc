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

// Exports the ops of a program's root block, whose variables get the shapes that follow from the
// feeds.
class ProgramExport {
 public:
  ProgramExport(Program* program, const Scope& scope, const OnnxExportOptions& options)
      : block_(program->root()), options_(options), values_(*block_, scope, &graph_) {}

  void AddFeed(const std::string& name) {
    const Var& var = *block_->GetVar(name);
    if (var.lod_level > 0) {
      refusals_.push_back(StrCat("feed \"", name, "\": ragged feeds have no form in ONNX"));
    }
    std::vector<GraphDim> dims;
    for (const int64_t dim : var.dims) {
      dims.push_back({.size = dim, .symbol = StrCat(name, ".", dims.size())});
    }
    graph_.AddInput(name, var.dtype, dims);
    values_.Set(name, name);
    feeds_.insert(name);
  }

  void AddOps() {
    for (size_t i = 0; i < block_->ops().size(); ++i) AddOp(block_->ops()[i].get(), i);
  }

  void AddFetch(const std::string& name) {
    std::string value = values_.Find(name);
    const Var& var = *block_->GetVar(name);
    if (value.empty()) {
      if (refusals_.empty()) {
        refusals_.push_back(StrCat("fetch \"", name, "\": ", values_.WhyMissing(name)));
      }
      return;
    }
    if (var.lod_level > 0 && refusals_.empty()) {
      refusals_.push_back(StrCat("fetch \"", name, "\": ragged tensors have no form in ONNX"));
    }
    // An output that no node makes isn't one for every reader.
    const bool is_made = !feeds_.contains(value) && !(var.persistable && value == name);
    if (!is_made) value = graph_.AddNode("Identity", {value}, {})[0];
    std::vector<GraphDim> dims;
    for (const int64_t dim : var.dims) dims.push_back({.size = dim});
    graph_.AddOutput(value, var.dtype, dims);
  }

  std::string Finish() {
    SKIFF_ENFORCE(refusals_.empty(), kUnimplemented, "the program has no form in ONNX (opset ",
                  options_.opset, "):\n", Join(refusals_, "\n"));
    return graph_.Finish(options_.graph_name, options_.opset);
  }

 private:
  void AddOp(Op* op, size_t position) {
    const OpDef* def = DefaultOpRegistry().Find(op->type);
    const std::string where = DescribeOp(*op, block_->index(), position);
    const size_t first_node = graph_.node_count();
    try {
      const ExporterEntry* entry = ExporterTable::All().Find(op->type);
      if (entry == nullptr || def == nullptr) Refuse("the op has no form in ONNX");
      TakeDeclaredTypes(*def, op);
      CheckOp(*def, *op);
      OpContext context = InferredContext(*op, *def);
      OpExport exported(context, options_.opset, entry->keeps_half, &values_, &graph_);
      entry->run(exported);
      exported.CheckAllRead();
      Publish(*op, exported);
    } catch (const Refusal& refusal) {
      graph_.RemoveNodesAfter(first_node);
      refusals_.push_back(StrCat(where, ": ", refusal.reason));
      // One refusal is enough: what reads the outputs isn't to blame.
      for (const std::string& name : op->OutputNames()) values_.Set(name, name);
    } catch (const Error& error) {
      throw error.WithContext(where);
    }
  }

  OpContext InferredContext(const Op& op, const OpDef& def) {
    const std::vector<std::string> outputs = OutputOrder(def, op);
    OpContext context(op, def, MetasOf(*block_, InputOrder(def, op)), MetasOf(*block_, outputs));
    InferOutputs(&context);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Var* var = block_->FindVar(outputs[i]);
      if (var != nullptr) SetMeta(context.outputs()[i], var);
    }
    return context;
  }

  void Publish(const Op& op, const OpExport& exported) {
    for (const std::string& name : op.OutputNames()) {
      const auto value = exported.new_values_.find(name);
      if (value != exported.new_values_.end()) {
        values_.Set(name, value->second);
      } else {
        values_.SetMissing(name, StrCat("this output of ", op.type, " has no form in ONNX"));
      }
    }
  }

  Block* block_;
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
