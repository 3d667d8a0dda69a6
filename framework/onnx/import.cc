#include "framework/onnx/import.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/io/file.h"
#include "framework/onnx/compositions_found.h"
#include "framework/onnx/graph_builder.h"
#include "framework/onnx/graph_order.h"
#include "framework/onnx/model_file.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/tensor_proto.h"

namespace skiff {
namespace {

constexpr int64_t kLeastIr = 3;
constexpr int64_t kMostIr = 12;
constexpr int64_t kLeastOpset = 7;
constexpr int64_t kMostOpset = 24;
constexpr size_t kMostProblems = 100;

bool IsOnnxDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// Returns the version of ONNX's own operators.
int64_t OpsetOf(const onnx::ModelProto& model) {
  SKIFF_ENFORCE(model.ir_version() >= kLeastIr && model.ir_version() <= kMostIr, kUnimplemented,
                "the file is of IR version ", model.ir_version(), ", expected ", kLeastIr, " to ",
                kMostIr);
  int64_t opset = 0;
  for (const auto& import : model.opset_import()) {
    if (IsOnnxDomain(import.domain())) opset = import.version();
  }
  SKIFF_ENFORCE(opset >= kLeastOpset && opset <= kMostOpset, kUnimplemented,
                "the file is for opset ", opset, " of ONNX's operators, expected ", kLeastOpset,
                " to ", kMostOpset);
  return opset;
}

// Names that mean something else in a program.
bool IsReserved(const std::string& name) {
  return name.starts_with('@') || name.find("@GRAD") != std::string::npos;
}

// The values that nodes of a graph see: those of the graph, then those around it.
struct Frame {
  Frame* outer = nullptr;
  std::map<std::string, OnnxValue> values = {};

  OnnxValue* Find(const std::string& name) {
    for (Frame* frame = this; frame != nullptr; frame = frame->outer) {
      const auto found = frame->values.find(name);
      if (found != frame->values.end()) return &found->second;
    }
    return nullptr;
  }
};

class Importer {
 public:
  Importer(const onnx::ModelProto& model, std::string path, const OnnxImportOptions& options)
      : model_(model),
        path_(std::move(path)),
        folder_(ParentDirectory(path_)),
        opset_(OpsetOf(model)),
        options_(options) {}

  InferenceModel Run(Scope* scope);

 private:
  void AddInitializers(const onnx::GraphProto& graph, Frame* frame);
  void AddFeeds();
  void AddFeed(const onnx::ValueInfoProto& input);
  void ConvertNodes(const onnx::GraphProto& graph, Frame* frame);
  void ConvertNode(const onnx::NodeProto& node, int index, Frame* frame);
  void Convert(const onnx::NodeProto& node, int index, Frame* frame);
  void ConvertIf(const onnx::NodeProto& node, Frame* frame);
  void AddFetches();
  void CheckOutput(const onnx::ValueInfoProto& output, const Var& var);
  void AppendFeedsAndFetches(Block* root) const;
  void Complain(bool is_unsupported, const std::string& problem);
  void ThrowProblems() const;

  const onnx::ModelProto& model_;
  std::string path_;
  std::string folder_;
  int64_t opset_;
  OnnxImportOptions options_;
  std::unique_ptr<GraphBuilder> builder_;
  Frame frame_;
  std::vector<std::string> feeds_;
  std::vector<std::string> fetches_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
  bool all_are_unsupported_ = true;
};

void Importer::Complain(bool is_unsupported, const std::string& problem) {
  ++problem_count_;
  all_are_unsupported_ = all_are_unsupported_ && is_unsupported;
  if (problems_.size() < kMostProblems) problems_.push_back(problem);
}

void Importer::ThrowProblems() const {
  if (problems_.empty()) return;
  std::string text = StrCat(problem_count_, problem_count_ == 1 ? " part" : " parts",
                            " of the model can't be imported:");
  for (const std::string& problem : problems_) text += "\n  " + problem;
  if (problem_count_ > problems_.size()) text += "\n  …";
  Throw(all_are_unsupported_ ? ErrorCode::kUnimplemented : ErrorCode::kInvalidArgument, text);
}

void Importer::AddInitializers(const onnx::GraphProto& graph, Frame* frame) {
  if (graph.sparse_initializer_size() > 0) {
    Complain(true, StrCat(graph.sparse_initializer_size(), " sparse initializers"));
  }
  for (const onnx::TensorProto& proto : graph.initializer()) {
    OnnxValue value;
    value.is_weight = true;
    try {
      const Tensor tensor = TensorFromOnnx(proto, folder_);
      value.known =
          std::make_shared<const Tensor>(options_.widen_half ? WidenedHalf(tensor) : tensor);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnimplemented) throw;
      value.is_poisoned = true;
      Complain(true, error.what());
    }
    if (IsReserved(proto.name())) Complain(true, StrCat("the name \"", proto.name(), "\""));
    frame->values.emplace(proto.name(), std::move(value));
  }
}

void Importer::AddFeed(const onnx::ValueInfoProto& input) {
  OnnxValue value;
  const auto refuse = [&](const std::string& why) {
    value.is_poisoned = true;
    Complain(true, StrCat("input \"", input.name(), "\" ", why));
  };
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  const auto dtype = DTypeFromOnnx(type.elem_type());
  if (IsReserved(input.name())) {
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
    std::vector<int64_t> dims;
    for (const auto& dim : type.shape().dim()) {
      // Some writers mean an unknown dim by 0 or -1.
      const bool is_known = dim.has_dim_value() && dim.dim_value() >= 0;
      dims.push_back(is_known ? dim.dim_value() : -1);
    }
    CheckElementLimit(dims);
    const bool widen = options_.widen_half && IsHalf(*dtype);
    value.variable = layers::Data(input.name(), dims, widen ? DType::kFloat32 : *dtype);
    builder_->Rename(value.variable, input.name());
  }
  feeds_.push_back(input.name());
  frame_.values.emplace(input.name(), std::move(value));
}

void Importer::AddFeeds() {
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    // What has an initializer has a default, and isn't fed.
    if (!frame_.values.contains(input.name())) AddFeed(input);
  }
}

void Importer::ConvertNodes(const onnx::GraphProto& graph, Frame* frame) {
  std::set<std::string> outer;
  for (const Frame* around = frame->outer; around != nullptr; around = around->outer) {
    for (const auto& [name, value] : around->values) outer.insert(name);
  }
  for (const int index : OnnxNodeOrder(graph, outer)) {
    ConvertNode(graph.node(index), index, frame);
  }
}

void Importer::ConvertNode(const onnx::NodeProto& node, int index, Frame* frame) {
  const auto poison = [&] {
    for (const std::string& name : node.output()) {
      OnnxValue value;
      value.is_poisoned = true;
      if (!name.empty()) frame->values.insert_or_assign(name, value);
    }
  };
  const bool is_if = IsOnnxDomain(node.domain()) && node.op_type() == "If";
  const bool is_there =
      is_if || (IsOnnxDomain(node.domain()) && FindOnnxConverter(node.op_type()) != nullptr);
  if (!is_there) {
    Complain(true, StrCat(DescribeOnnxNode(node, opset_), ": there is no such op here"));
    return poison();
  }
  // What a node before has spoilt isn't a problem of this one.
  const auto is_poisoned = [&](const std::string& name) {
    const OnnxValue* value = name.empty() ? nullptr : frame->Find(name);
    return value != nullptr && value->is_poisoned;
  };
  if (std::ranges::any_of(node.input(), is_poisoned)) return poison();
  try {
    if (is_if) {
      ConvertIf(node, frame);
    } else {
      Convert(node, index, frame);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted || error.code() == ErrorCode::kIo) throw;
    Complain(error.code() == ErrorCode::kUnimplemented,
             StrCat(DescribeOnnxNode(node, opset_), ": ", error.what()));
    poison();
  }
}

void Importer::Convert(const onnx::NodeProto& node, int index, Frame* frame) {
  std::vector<OnnxValue*> inputs;
  for (const std::string& name : node.input()) {
    inputs.push_back(name.empty() ? nullptr : frame->Find(name));
  }
  std::vector<OnnxValue> made(static_cast<size_t>(node.output_size()));
  std::vector<OnnxValue*> outputs;
  std::vector<OnnxValue*> wanted;
  for (int i = 0; i < node.output_size(); ++i) {
    OnnxValue* value = node.output(i).empty() ? nullptr : &made[static_cast<size_t>(i)];
    outputs.push_back(value);
    if (value != nullptr) wanted.push_back(value);
  }
  builder_->BeginNode();
  const OnnxNode call(node, opset_, options_.widen_half, folder_, std::move(inputs),
                      std::move(outputs), builder_.get());
  FindOnnxConverter(node.op_type())(call);
  for (const OnnxValue* value : wanted) {
    SKIFF_ENFORCE(value->variable.defined() || value->known != nullptr, kUnimplemented,
                  "it has an output that Skiff doesn't compute");
  }
  builder_->MarkSites(path_, index);
  builder_->Fold(wanted);
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty()) continue;
    OnnxValue& value = made[static_cast<size_t>(i)];
    if (IsReserved(name)) {
      Throw(ErrorCode::kUnimplemented, "the name \"", name, "\" means something else in programs");
    }
    if (value.variable.defined() && frame == &frame_) builder_->Rename(value.variable, name);
    frame->values.insert_or_assign(name, std::move(value));
  }
}

void Importer::ConvertIf(const onnx::NodeProto& node, Frame* frame) {
  SKIFF_ENFORCE(node.input_size() == 1 && !node.input(0).empty(), kInvalidArgument, "has ",
                node.input_size(), " inputs, expected a condition");
  const OnnxValue* condition = frame->Find(node.input(0));
  SKIFF_ENFORCE(condition->known != nullptr, kUnimplemented, "its condition depends on data");
  SKIFF_ENFORCE(condition->known->dtype() == DType::kBool && condition->known->element_count() == 1,
                kInvalidArgument, "its condition isn't one bool");
  const std::string_view wanted = condition->known->Item<bool>() ? "then_branch" : "else_branch";
  const auto attribute = std::ranges::find_if(
      node.attribute(), [&](const auto& candidate) { return candidate.name() == wanted; });
  SKIFF_ENFORCE(attribute != node.attribute().end() && attribute->has_g(), kInvalidArgument,
                "has no ", wanted);
  const onnx::GraphProto& graph = attribute->g();
  SKIFF_ENFORCE(graph.output_size() == node.output_size(), kInvalidArgument, "its ", wanted,
                " has ", graph.output_size(), " outputs, expected ", node.output_size());
  Frame inner{.outer = frame};
  AddInitializers(graph, &inner);
  ConvertNodes(graph, &inner);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const OnnxValue value = *inner.Find(graph.output(i).name());
    if (value.variable.defined() && frame == &frame_) {
      builder_->Rename(value.variable, node.output(i));
    }
    frame->values.insert_or_assign(node.output(i), value);
  }
}

// A shape that lies would surprise whoever relies on it.
void Importer::CheckOutput(const onnx::ValueInfoProto& output, const Var& var) {
  const onnx::TypeProto::Tensor& type = output.type().tensor_type();
  const auto complain = [&](const std::string& found, const std::string& expected) {
    Complain(false,
             StrCat("output \"", output.name(), "\" is ", found, ", but the file says ", expected));
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
    const int64_t expected = dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1;
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
    OnnxValue* value = &frame_.values.at(output.name());
    if (value->is_poisoned) continue;
    builder_->BeginNode();
    Variable variable = builder_->Materialise(output.name(), value);
    if (!builder_->Rename(variable, output.name())) {
      variable = layers::Assign(variable);
      SKIFF_ENFORCE(builder_->Rename(variable, output.name()), kInvalidArgument, "output \"",
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

InferenceModel Importer::Run(Scope* scope) {
  InferenceModel model;
  model.program = std::make_unique<Program>();
  Program startup;
  {
    const ProgramGuard guard(model.program.get(), &startup);
    builder_ = std::make_unique<GraphBuilder>();
    AddInitializers(model_.graph(), &frame_);
    AddFeeds();
    ConvertNodes(model_.graph(), &frame_);
    AddFetches();
    ThrowProblems();
    builder_->ApplyNames();
    ReplaceCompositions(model.program->root(), fetches_);
  }
  AppendFeedsAndFetches(model.program->root());
  builder_->MoveWeightsTo(scope);
  model.feed_names = feeds_;
  model.fetch_names = fetches_;
  return model;
}

}  // namespace

InferenceModel ImportOnnx(const std::string& path, Scope* scope, const OnnxImportOptions& options) {
  const onnx::ModelProto model = ReadOnnxModel(path);
  try {
    return Importer(model, path, options).Run(scope);
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

}  // namespace skiff
