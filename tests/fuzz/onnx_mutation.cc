#include "tests/fuzz/onnx_mutation.h"

#include <limits>
#include <random>
#include <utility>

#include "framework/base/str_cat.h"
#include "tests/harness/damage_bytes.h"

namespace skiff::fuzz {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;

class OnnxMutator {
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  template <typename List>
  auto Pick(List& list) -> decltype(*list.begin()) {
    return list[static_cast<decltype(list.size())>(Below(static_cast<uint64_t>(list.size())))];
  }

 public:
  OnnxMutator(const std::vector<ModelProto>& seeds, uint64_t number)
      : seeds_(seeds), random_(static_cast<std::mt19937::result_type>(number)) {
    model_ = Pick(seeds_);
  }

  OnnxMutant Make() {
    const size_t wanted = 1 + Below(Below(3) == 0 ? 4 : 2);
    // Some changes find nothing to change.
    for (int tries = 0; tries < 50 && mutant_.changes.size() < wanted; ++tries) {
      std::string change = Change();
      if (!change.empty()) mutant_.changes.push_back(std::move(change));
    }
    mutant_.bytes = model_.SerializePartialAsString();
    if (Below(10) == 0) {
      mutant_.bytes = DamageBytes(std::move(mutant_.bytes), &random_);
      mutant_.changes.emplace_back("bytes");
    }
    return std::move(mutant_);
  }

 private:
  int64_t Number(int64_t before) {
    const int64_t choices[] = {before == std::numeric_limits<int64_t>::max() ? 0 : before + 1,
                               0,
                               -1,
                               1,
                               2,
                               7,
                               int64_t{1} << 20,
                               int64_t{1} << 40,
                               std::numeric_limits<int32_t>::max(),
                               int64_t{1} << 31,
                               int64_t{1} << 32,
                               (int64_t{1} << 32) + 1,
                               std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()};
    return choices[Below(std::size(choices))];
  }
  float Float() {
    const float choices[] = {0,
                             -1,
                             0.5f,
                             1e-30f,
                             1e30f,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
    return choices[Below(std::size(choices))];
  }

  GraphProto& graph() { return *model_.mutable_graph(); }

  // A node of this model or, rarely, a graph inside one of its nodes.
  NodeProto* Node() {
    if (graph().node_size() == 0) return nullptr;
    NodeProto* node = graph().mutable_node(static_cast<int>(Below(graph().node_size())));
    for (AttributeProto& attribute : *node->mutable_attribute()) {
      if (attribute.has_g() && attribute.g().node_size() > 0 && Below(2) == 0) {
        return attribute.mutable_g()->mutable_node(
            static_cast<int>(Below(attribute.g().node_size())));
      }
    }
    return node;
  }
  // A node of any model.
  const NodeProto* AnyNode() {
    const GraphProto& other = Pick(seeds_).graph();
    return other.node_size() == 0 ? nullptr
                                  : &other.node(static_cast<int>(Below(other.node_size())));
  }
  // A name that the model has somewhere.
  std::string Name() {
    std::vector<std::string> names = {"", "nobody"};
    for (const NodeProto& node : graph().node()) {
      names.insert(names.end(), node.output().begin(), node.output().end());
    }
    for (const ValueInfoProto& value : graph().input()) names.push_back(value.name());
    for (const TensorProto& tensor : graph().initializer()) names.push_back(tensor.name());
    return Pick(names);
  }

  // Each returns what it has changed, or an empty string.
  std::string Change() {
    switch (Below(12)) {
      case 0:
        return ChangeOp();
      case 1:
        return ChangeArgument(true);
      case 2:
        return ChangeArgument(false);
      case 3:
      case 4:
      case 5:
        return ChangeAttribute();
      case 6:
        return ChangeNodes();
      case 7:
        return ChangeValue(graph().mutable_input());
      case 8:
        return ChangeValue(graph().mutable_output());
      case 9:
      case 10:
        return ChangeInitializer();
      default:
        return ChangeVersion();
    }
  }

  std::string ChangeOp() {
    NodeProto* node = Node();
    const NodeProto* other = AnyNode();
    if (node == nullptr || other == nullptr) return "";
    node->set_op_type(other->op_type());
    return StrCat("op ", other->op_type());
  }

  std::string ChangeArgument(bool is_input) {
    NodeProto* node = Node();
    if (node == nullptr) return "";
    auto* names = is_input ? node->mutable_input() : node->mutable_output();
    const std::string name = Name();
    switch (names->empty() ? 2 : Below(3)) {
      case 0:
        names->RemoveLast();
        return StrCat(node->op_type(), ": without an argument");
      case 1:
        Pick(*names) = name;
        return StrCat(node->op_type(), ": another argument ", name);
      default:
        names->Add(std::string(name));
        return StrCat(node->op_type(), ": one more argument ", name);
    }
  }

  std::string ChangeAttribute() {
    NodeProto* node = Node();
    if (node == nullptr) return "";
    const NodeProto* other = AnyNode();
    if (node->attribute_size() == 0 || Below(6) == 0) {
      if (other == nullptr || other->attribute_size() == 0) return "";
      *node->add_attribute() = other->attribute(static_cast<int>(Below(other->attribute_size())));
      return StrCat(node->op_type(), ": the attribute ", node->attribute().rbegin()->name());
    }
    AttributeProto& attribute = Pick(*node->mutable_attribute());
    ChangeContents(&attribute);
    return StrCat(node->op_type(), ": contents of ", attribute.name());
  }

  void ChangeContents(AttributeProto* attribute) {
    const uint64_t kind = Below(8);
    if (kind == 0) {
      attribute->set_type(static_cast<AttributeProto::AttributeType>(Below(6)));
    } else if (attribute->ints_size() > 0) {
      auto* ints = attribute->mutable_ints();
      if (kind == 1) {
        ints->RemoveLast();
      } else if (kind == 2) {
        ints->Add(Number(0));
      } else {
        int64_t& number = Pick(*ints);
        number = Number(number);
      }
    } else if (attribute->floats_size() > 0) {
      Pick(*attribute->mutable_floats()) = Float();
    } else if (attribute->has_t()) {
      ChangeTensor(attribute->mutable_t());
    } else if (attribute->has_s()) {
      const char* texts[] = {"", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "bidirectional"};
      attribute->set_s(texts[Below(std::size(texts))]);
    } else if (attribute->has_f()) {
      attribute->set_f(Float());
    } else {
      attribute->set_i(Number(attribute->i()));
    }
  }

  std::string ChangeNodes() {
    auto* nodes = graph().mutable_node();
    if (nodes->empty()) return "";
    const int at = static_cast<int>(Below(static_cast<uint64_t>(nodes->size())));
    switch (Below(3)) {
      case 0:
        nodes->DeleteSubrange(at, 1);
        return StrCat("without node ", at);
      case 1:
        nodes->SwapElements(0, at);
        return StrCat("another order of node ", at);
      default: {
        const NodeProto* other = AnyNode();
        if (other == nullptr) return "";
        *nodes->Add() = *other;
        return StrCat("a node ", other->op_type());
      }
    }
  }

  std::string ChangeValue(google::protobuf::RepeatedPtrField<ValueInfoProto>* values) {
    if (values->empty()) return "";
    ValueInfoProto& value = Pick(*values);
    auto* tensor = value.mutable_type()->mutable_tensor_type();
    switch (Below(4)) {
      case 0:
        tensor->set_elem_type(static_cast<int32_t>(Below(18)));
        break;
      case 1:
        value.set_name(Name());
        break;
      case 2:
        tensor->mutable_shape()->add_dim()->set_dim_value(Number(0));
        break;
      default: {
        auto* dims = tensor->mutable_shape()->mutable_dim();
        if (dims->empty()) return "";
        auto& dim = Pick(*dims);
        if (Below(2) == 0) {
          dim.set_dim_param("n");
        } else {
          dim.set_dim_value(Number(dim.dim_value()));
        }
      }
    }
    return StrCat("the value ", value.name());
  }

  void ChangeTensor(TensorProto* tensor) {
    switch (Below(4)) {
      case 0:
        tensor->set_data_type(static_cast<int32_t>(Below(18)));
        break;
      case 1:
        tensor->add_dims(Number(0));
        break;
      case 2:
        if (tensor->dims_size() > 0) {
          int64_t& dim = Pick(*tensor->mutable_dims());
          dim = Number(dim);
        }
        break;
      default:
        if (!tensor->raw_data().empty()) {
          tensor->set_raw_data(DamageBytes(tensor->raw_data(), &random_));
        } else if (tensor->int64_data_size() > 0) {
          int64_t& number = Pick(*tensor->mutable_int64_data());
          number = Number(number);
        } else if (tensor->float_data_size() > 0) {
          Pick(*tensor->mutable_float_data()) = Float();
        }
    }
  }

  std::string ChangeInitializer() {
    auto* tensors = graph().mutable_initializer();
    if (tensors->empty()) return "";
    TensorProto& tensor = Pick(*tensors);
    ChangeTensor(&tensor);
    return StrCat("the initializer ", tensor.name());
  }

  std::string ChangeVersion() {
    const auto version = static_cast<int64_t>(Below(26));
    if (Below(2) == 0 || model_.opset_import_size() == 0) {
      model_.set_ir_version(version);
    } else {
      model_.mutable_opset_import(0)->set_version(version);
    }
    return StrCat("version ", version);
  }

  const std::vector<ModelProto>& seeds_;
  std::mt19937 random_;
  ModelProto model_;
  OnnxMutant mutant_;
};

}  // namespace

OnnxMutant MakeOnnxMutant(const std::vector<ModelProto>& seeds, uint64_t number) {
  return OnnxMutator(seeds, number).Make();
}

}  // namespace skiff::fuzz
