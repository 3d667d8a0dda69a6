#include "framework/onnx/import.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/onnx/compositions_found.h"
#include "framework/onnx/graph_builder.h"
#include "framework/onnx/graph_converter.h"
#include "framework/onnx/local_functions.h"
#include "framework/onnx/model_file.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/tensor_proto.h"

namespace skiff {
namespace {

constexpr int64_t kLeastIr = 3;
constexpr int64_t kMostIr = 12;

// Returns the version of ONNX's own operators.
int64_t OpsetOf(const onnx::ModelProto& model) {
  SKIFF_ENFORCE(model.ir_version() >= kLeastIr && model.ir_version() <= kMostIr, kUnimplemented,
                "the file is of IR version ", model.ir_version(), ", expected ", kLeastIr, " to ",
                kMostIr);
  return OnnxOpset(model.opset_import(), 0);
}

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const std::string& path, const OnnxImportOptions& options)
      : model_(model),
        options_(options),
        frame_(model.graph(), OpsetOf(model)),
        converter_(model, path, options, &builder_) {
    frame_.gives_names = true;
  }

  // Converts the graph into the default main program.
  void Convert();
  InferenceModel Finish(std::unique_ptr<Program> program, Scope* scope);

 private:
  void AppendFeedsAndFetches(Block* root) const;
  void AddFeeds();
  void AddFeed(const onnx::ValueInfoProto& input);
  // Returns the dims of an input with a shape, -1 where nobody knows them.
  std::vector<int64_t> FeedDims(const onnx::ValueInfoProto& input) const;
  void AddFetches();
  void CheckOutput(const onnx::ValueInfoProto& output, const Var& var);

  const onnx::ModelProto& model_;
  OnnxImportOptions options_;
  GraphBuilder builder_;
  OnnxFrame frame_;
  GraphConverter converter_;
  std::vector<std::string> feeds_;
  std::vector<std::string> fetches_;
};

void Importer::AddFeed(const onnx::ValueInfoProto& input) {
  OnnxValue value;
  const auto refuse = [&](const std::string& why) {
    value.is_poisoned = true;
    converter_.Complain(true, StrCat("input \"", input.name(), "\" ", why));
  };
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  const auto dtype = DTypeFromOnnx(type.elem_type());
  if (IsReservedName(input.name())) {
    refuse("has a name that means something else in programs");
  } else if (!input.type().has_tensor_type()) {
    refuse("is no tensor");
  } else if (!dtype) {
    refuse(StrCat("is of ", OnnxTypeName(type.elem_type()), ", which Skiff doesn't have"));
  } else if (!type.has_shape()) {
    refuse("has no shape in the file, expected a rank at least");
  } else if (type.shape().dim_size() > Shape::kMaxRank) {
    refuse(StrCat("has ", type.shape().dim_size(), " dims, expected at most ", Shape::kMaxRank));
  } else {
    const std::vector<int64_t> dims = FeedDims(input);
    CheckElementLimit(dims);
    const bool widen = options_.widen_half && IsHalf(*dtype);
    value.variable = layers::Data(input.name(), dims, widen ? DType::kFloat32 : *dtype);
    builder_.Rename(value.variable, input.name());
  }
  feeds_.push_back(input.name());
  frame_.Set(input.name(), std::move(value));
}

std::vector<int64_t> Importer::FeedDims(const onnx::ValueInfoProto& input) const {
  std::vector<int64_t> dims;
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    // Some writers mean an unknown dim by 0 or -1.
    const bool is_known = dim.has_dim_value() && dim.dim_value() > 0;
    dims.push_back(is_known ? dim.dim_value() : -1);
  }
  const auto wanted = options_.feed_dims.find(input.name());
  if (wanted == options_.feed_dims.end()) return dims;
  const auto fits = [](int64_t own, int64_t other) {
    return other >= 0 && (own < 0 || own == other);
  };
  SKIFF_ENFORCE(std::ranges::equal(dims, wanted->second, fits), kInvalidArgument, "input \"",
                input.name(), "\" is of shape ", Shape(dims), ", but its dims are to be [",
                Join(wanted->second, ", "), "]");
  return wanted->second;
}

void Importer::AddFeeds() {
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    // What has an initializer has a default, and isn't fed.
    if (!frame_.Contains(input.name())) AddFeed(input);
  }
  for (const auto& [name, dims] : options_.feed_dims) {
    SKIFF_ENFORCE(std::ranges::count(feeds_, name) > 0, kNotFound, "no input \"", name,
                  "\" has dims; there are: ", Join(feeds_, ", "));
  }
}

// A shape that lies would surprise whoever relies on it.
void Importer::CheckOutput(const onnx::ValueInfoProto& output, const Var& var) {
  const onnx::TypeProto::Tensor& type = output.type().tensor_type();
  const auto complain = [&](const std::string& found, const std::string& expected) {
    converter_.Complain(false, StrCat("output \"", output.name(), "\" is ", found,
                                      ", but the file says ", expected));
  };
  if (!output.type().has_tensor_type()) return;
  const auto dtype = DTypeFromOnnx(type.elem_type());
  const bool is_widened = options_.widen_half && dtype && IsHalf(*dtype);
  if (type.elem_type() != 0 && dtype != var.dtype && !is_widened) {
    complain(std::string(DTypeName(var.dtype)), OnnxTypeName(type.elem_type()));
  }
  if (!type.has_shape()) return;
  const auto rank = static_cast<size_t>(type.shape().dim_size());
  bool fits = rank == var.dims.size();
  std::string said;
  for (size_t i = 0; i < rank; ++i) {
    const auto& dim = type.shape().dim(static_cast<int>(i));
    const int64_t expected = dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1;
    said += StrCat(i == 0 ? "" : ", ", expected);
    fits = fits && (expected < 0 || var.dims[i] < 0 || var.dims[i] == expected);
  }
  if (!fits) complain(StrCat("of shape ", Shape(var.dims)), StrCat("[", said, "]"));
}

void Importer::AddFetches() {
  std::set<std::string> seen;
  for (const onnx::ValueInfoProto& output : model_.graph().output()) {
    SKIFF_ENFORCE(seen.insert(output.name()).second, kInvalidArgument, "output \"", output.name(),
                  "\" is there twice");
    const OnnxValuePtr value = frame_.Find(output.name());
    if (value->is_poisoned) continue;
    if (value->items) {
      converter_.Complain(true, StrCat("output \"", output.name(), "\" is a sequence"));
      continue;
    }
    builder_.BeginNode();
    Variable variable = builder_.Materialise(value.get());
    if (!builder_.Rename(variable, output.name())) {
      variable = layers::Assign(variable);
      SKIFF_ENFORCE(builder_.Rename(variable, output.name()), kInvalidArgument, "output \"",
                    output.name(), "\" is another name, too");
    }
    CheckOutput(output, variable.var());
    fetches_.push_back(output.name());
  }
  SKIFF_ENFORCE(model_.graph().output_size() > 0, kInvalidArgument, "the graph has no output");
}

void Importer::AppendFeedsAndFetches(Block* root) const {
  const auto holder = [&](const char* wanted, VarKind kind) {
    const bool is_free = root->FindVar(wanted) == nullptr;
    Var var{.name = is_free ? std::string(wanted) : root->program()->UniqueName(wanted)};
    var.kind = kind;
    var.persistable = true;
    return root->CreateVar(std::move(var))->name;
  };
  const std::string feed = holder("feed", VarKind::kFeedMinibatch);
  const std::string fetch = holder("fetch", VarKind::kFetchList);
  for (size_t i = 0; i < feeds_.size(); ++i) {
    Op op("feed");
    op.SetInput("X", {feed}).SetOutput("Out", {feeds_[i]});
    op.SetAttr("col", static_cast<int32_t>(i));
    root->InsertOp(0, std::move(op));
  }
  for (size_t i = 0; i < fetches_.size(); ++i) {
    Op op("fetch");
    op.SetInput("X", {fetches_[i]}).SetOutput("Out", {fetch});
    op.SetAttr("col", static_cast<int32_t>(i));
    root->AppendOp(std::move(op));
  }
}

void Importer::Convert() {
  converter_.AddInitializers(model_.graph(), &frame_);
  AddFeeds();
  converter_.ConvertNodes(model_.graph(), &frame_);
  AddFetches();
  converter_.ThrowProblems();
  builder_.ApplyNames();
}

InferenceModel Importer::Finish(std::unique_ptr<Program> program, Scope* scope) {
  ReplaceCompositions(program->root(), fetches_);
  AppendFeedsAndFetches(program->root());
  builder_.MoveWeightsTo(scope);
  return {.program = std::move(program), .feed_names = feeds_, .fetch_names = fetches_};
}

}  // namespace

InferenceModel ImportOnnx(const std::string& path, Scope* scope, const OnnxImportOptions& options) {
  const onnx::ModelProto model = ReadOnnxModel(path);
  try {
    auto program = std::make_unique<Program>();
    Program startup;
    const ProgramGuard guard(program.get(), &startup);
    Importer importer(model, path, options);
    importer.Convert();
    return importer.Finish(std::move(program), scope);
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

}  // namespace skiff
