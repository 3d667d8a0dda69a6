#include "framework/onnx/graph_converter.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/onnx/graph_order.h"
#include "framework/onnx/tensor_proto.h"

namespace skiff {
namespace {

constexpr size_t kMostProblems = 100;
// Of functions that call each other.
constexpr int kMostDepth = 64;
constexpr int64_t kMostInlinedNodes = 1'000'000;

bool HasGraph(const onnx::NodeProto& node) {
  return std::ranges::any_of(node.attribute(), [](const auto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

// Returns the values and what sequences among them have in them.
std::vector<OnnxValue*> TensorsOf(const std::vector<OnnxValue*>& values) {
  std::vector<OnnxValue*> tensors;
  for (OnnxValue* value : values) {
    if (!value->items) {
      tensors.push_back(value);
      continue;
    }
    for (const OnnxValuePtr& item : *value->items) tensors.push_back(item.get());
  }
  return tensors;
}

OnnxValue Poisoned() {
  OnnxValue value;
  value.is_poisoned = true;
  return value;
}

}  // namespace

bool IsReservedName(const std::string& name) {
  return name.starts_with('@') || name.find("@GRAD") != std::string::npos;
}

OnnxFrame::OnnxFrame(const onnx::GraphProto& graph, int64_t version)
    : opset(version), readers_(OnnxReaderCounts(graph)) {}

OnnxFrame::OnnxFrame(const onnx::GraphProto& graph, OnnxFrame* outer)
    : opset(outer->opset), outer_(outer), readers_(OnnxReaderCounts(graph)) {}

OnnxValuePtr OnnxFrame::Find(const std::string& name) const {
  for (const OnnxFrame* frame = this; frame != nullptr; frame = frame->outer_) {
    const auto found = frame->values_.find(name);
    if (found != frame->values_.end()) return found->second;
  }
  return nullptr;
}

OnnxValuePtr OnnxFrame::Set(const std::string& name, OnnxValue value) {
  value.name = name;
  value.readers = ReaderCount(name);
  return values_.insert_or_assign(name, std::make_shared<OnnxValue>(std::move(value)))
      .first->second;
}

void OnnxFrame::Alias(const std::string& name, OnnxValuePtr value) {
  values_.insert_or_assign(name, std::move(value));
}

int64_t OnnxFrame::ReaderCount(const std::string& name) const {
  const auto found = readers_.find(name);
  return found == readers_.end() ? 0 : found->second;
}

bool OnnxFrame::IsOuter(const std::string& name) const {
  for (const OnnxFrame* frame = outer_; frame != nullptr; frame = frame->outer_) {
    if (frame->values_.contains(name)) return true;
  }
  return false;
}

GraphConverter::GraphConverter(const onnx::ModelProto& model, const std::string& path,
                               const OnnxImportOptions& options, GraphBuilder* builder)
    : path_(path),
      folder_(ParentDirectory(path)),
      options_(options),
      builder_(builder),
      functions_(model) {}

void GraphConverter::Complain(bool is_unsupported, const std::string& problem) {
  // A function, or a body that is converted twice, may have it in each place.
  if (!known_problems_.insert(problem).second) return;
  all_are_unsupported_ = all_are_unsupported_ && is_unsupported;
  if (problems_.size() < kMostProblems) problems_.push_back(problem);
}

void GraphConverter::ThrowProblems() const {
  if (problems_.empty()) return;
  const size_t count = known_problems_.size();
  std::string text =
      StrCat(count, count == 1 ? " part" : " parts", " of the model can't be imported:");
  for (const std::string& problem : problems_) text += "\n  " + problem;
  if (count > problems_.size()) text += "\n  …";
  Throw(all_are_unsupported_ ? ErrorCode::kUnimplemented : ErrorCode::kInvalidArgument, text);
}

void GraphConverter::AddInitializers(const onnx::GraphProto& graph, OnnxFrame* frame) {
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
    if (IsReservedName(proto.name())) Complain(true, StrCat("the name \"", proto.name(), "\""));
    // The input of a body that has the name has a value already.
    if (!frame->Contains(proto.name())) frame->Set(proto.name(), std::move(value));
    if (frame->gives_names) builder_->Reserve(proto.name());
  }
}

void GraphConverter::ConvertNodes(const onnx::GraphProto& graph, OnnxFrame* frame) {
  const std::vector<int> order =
      OnnxNodeOrder(graph, [&](const std::string& name) { return frame->IsOuter(name); });
  if (frame->gives_names) {
    for (const onnx::NodeProto& node : graph.node()) {
      for (const std::string& name : node.output()) {
        if (!name.empty()) builder_->Reserve(name);
      }
    }
  }
  for (const int index : order) ConvertNode(graph.node(index), index, frame);
}

void GraphConverter::ConvertNode(const onnx::NodeProto& node, int index, OnnxFrame* frame) {
  const auto poison = [&] {
    for (const std::string& name : node.output()) {
      if (!name.empty()) frame->Set(name, Poisoned());
    }
  };
  const auto complain = [&](bool is_unsupported, const std::string& what) {
    Complain(is_unsupported, StrCat(DescribeOnnxNode(node, frame->opset), ": ", what));
    poison();
  };
  const onnx::FunctionProto* function = functions_.Find(node);
  const bool is_there = function != nullptr || (IsOnnxDomain(node.domain()) &&
                                                FindOnnxConverter(node.op_type()) != nullptr);
  if (!is_there) return complain(true, "there is no such op here");
  // What a node before has spoilt isn't a problem of this one.
  const auto is_poisoned = [&](const std::string& name) {
    const OnnxValuePtr value = name.empty() ? nullptr : frame->Find(name);
    return value != nullptr && value->is_poisoned;
  };
  if (std::ranges::any_of(node.input(), is_poisoned)) return poison();
  try {
    if (function != nullptr) {
      ConvertCall(*function, node, frame);
    } else {
      ConvertOp(node, index, frame);
    }
  } catch (const SpoiltGraph&) {
    poison();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted || error.code() == ErrorCode::kIo) throw;
    complain(error.code() == ErrorCode::kUnimplemented, error.what());
  }
}

void GraphConverter::SetOutput(const std::string& name, OnnxValue value, OnnxFrame* frame) {
  if (IsReservedName(name)) {
    Throw(ErrorCode::kUnimplemented, "the name \"", name, "\" means something else in programs");
  }
  if (value.variable.defined() && frame->gives_names) builder_->Rename(value.variable, name);
  frame->Set(name, std::move(value));
}

void GraphConverter::ConvertOp(const onnx::NodeProto& node, int index, OnnxFrame* frame) {
  std::vector<OnnxValuePtr> inputs;
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
  const OnnxNodeContext context = {
      .opset = frame->opset,
      .widen_half = options_.widen_half,
      .folder = folder_,
      .builder = builder_,
      .convert =
          [&](const onnx::GraphProto& graph, const std::vector<OnnxValuePtr>& values) {
            OnnxFrame inner(graph, frame);
            for (int i = 0; i < graph.input_size(); ++i) {
              inner.Alias(graph.input(i).name(), values[static_cast<size_t>(i)]);
            }
            AddInitializers(graph, &inner);
            ConvertNodes(graph, &inner);
            std::vector<OnnxValuePtr> results;
            for (const auto& output : graph.output()) results.push_back(inner.Find(output.name()));
            return results;
          },
      .find = [&](const std::string& name) { return frame->Find(name); }};
  const GraphBuilder::NodeStart start = builder_->BeginNode();
  const OnnxNode call(node, context, std::move(inputs), std::move(outputs));
  FindOnnxConverter(node.op_type())(call);
  for (const OnnxValue* value : wanted) {
    SKIFF_ENFORCE(value->variable.defined() || value->known != nullptr || value->items,
                  kUnimplemented, "it has an output that Skiff doesn't compute");
  }
  builder_->MarkSites(start, path_, index);
  // The nodes of graphs inside are folded on their own.
  if (!HasGraph(node)) builder_->Fold(start, TensorsOf(wanted));
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    SetOutput(node.output(i), std::move(made[static_cast<size_t>(i)]), frame);
  }
}

void GraphConverter::ConvertCall(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                 OnnxFrame* frame) {
  SKIFF_ENFORCE(depth_ < kMostDepth, kUnimplemented, "functions call each other more than ",
                kMostDepth, " deep");
  const onnx::GraphProto graph = LocalFunctions::GraphOf(function, node);
  inlined_nodes_ += OnnxNodeCount(graph);
  SKIFF_ENFORCE(inlined_nodes_ <= kMostInlinedNodes, kUnimplemented, "functions have more than ",
                kMostInlinedNodes, " nodes");
  SKIFF_ENFORCE(
      node.input_size() <= function.input_size() && node.output_size() <= function.output_size(),
      kInvalidArgument, "has ", node.input_size(), " inputs and ", node.output_size(),
      " outputs, its function has ", function.input_size(), " and ", function.output_size());
  OnnxFrame inner(graph, OnnxOpset(function.opset_import(), frame->opset));
  for (int i = 0; i < function.input_size(); ++i) {
    const bool is_given = i < node.input_size() && !node.input(i).empty();
    const std::string& name = function.input(i);
    OnnxValuePtr value = is_given ? frame->Find(node.input(i)) : nullptr;
    // The call is one of its readers.
    if (value != nullptr) value->readers += inner.ReaderCount(name) - 1;
    inner.Alias(name, std::move(value));
  }
  ++depth_;
  try {
    ConvertNodes(graph, &inner);
  } catch (...) {
    --depth_;
    throw;
  }
  --depth_;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const OnnxValuePtr value = inner.Find(function.output(i));
    SKIFF_ENFORCE(value != nullptr, kInvalidArgument, "its output ", i, " is an absent input");
    SetOutput(node.output(i), *value, frame);
  }
}

}  // namespace skiff
