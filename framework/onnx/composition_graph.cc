#include "framework/onnx/composition_graph.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "framework/analysis/op_uses.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

// Returns the numbers of a list attribute; nothing if it has other elements.
std::optional<std::vector<double>> NumbersIn(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::optional<std::vector<double>> {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::vector<float>> ||
                      std::is_same_v<Value, std::vector<double>> ||
                      std::is_same_v<Value, std::vector<int32_t>> ||
                      std::is_same_v<Value, std::vector<int64_t>>) {
          return std::vector<double>(value.begin(), value.end());
        } else {
          return std::nullopt;
        }
      },
      static_cast<const AttributeVariant&>(attribute));
}

}  // namespace

CompositionGraph::CompositionGraph(Block* block, const std::vector<std::string>& fetches)
    : block_(block), kept_(fetches.begin(), fetches.end()), original_count_(block->ops().size()) {
  for (const auto& op : block->ops()) Link(op.get());
  for (size_t i = 0; i < original_count_; ++i) {
    if (!block->ops()[i]->SubBlocks().empty()) KeepUsesOf(i);
  }
  for (const std::string& name : kept_) Need(name);
}

void CompositionGraph::KeepUsesOf(size_t position) {
  std::unordered_set<std::string> written;
  for (const VarUse& use : UsesOf(DefaultOpRegistry(), *block_, position).vars) {
    if (use.block != block_) continue;
    kept_.insert(use.var->name);
    if (use.writes) written.insert(use.var->name);
  }
  const Op* loop = block_->ops()[position].get();
  needed_.insert(loop);
  // Each of several writers counts.
  for (const auto& op : block_->ops()) {
    const std::vector<std::string> outputs = op->OutputNames();
    const auto is_written = [&](const std::string& name) { return written.contains(name); };
    if (op.get() != loop && std::ranges::none_of(outputs, is_written)) continue;
    needed_.insert(op.get());
    const std::vector<std::string> inputs = op->InputNames();
    kept_.insert(inputs.begin(), inputs.end());
  }
  for (const std::string& name : written) writers_.erase(name);
}

std::vector<int64_t> IntsOf(const Op& op, std::string_view name) {
  const auto found = op.attrs.find(std::string(name));
  const auto numbers = found == op.attrs.end() ? std::nullopt : NumbersIn(found->second);
  return numbers ? std::vector<int64_t>(numbers->begin(), numbers->end()) : std::vector<int64_t>();
}

void CompositionGraph::Link(Op* op) {
  for (const std::string& name : op->OutputNames()) writers_[name] = op;
  for (const std::string& name : op->InputNames()) {
    std::vector<Op*>& readers = readers_[name];
    if (std::ranges::count(readers, op) == 0) readers.push_back(op);
  }
}

void CompositionGraph::Need(const std::string& name) {
  std::vector<std::string> wanted = {name};
  while (!wanted.empty()) {
    const std::string next = std::move(wanted.back());
    wanted.pop_back();
    ++uses_[next];
    const auto writer = writers_.find(next);
    if (writer == writers_.end() || !needed_.insert(writer->second).second) continue;
    for (std::string& input : writer->second->InputNames()) wanted.push_back(std::move(input));
  }
}

void CompositionGraph::Release(const std::string& name) {
  std::vector<std::string> released = {name};
  while (!released.empty()) {
    const std::string next = std::move(released.back());
    released.pop_back();
    if (--uses_[next] > 0) continue;
    const auto writer = writers_.find(next);
    if (writer == writers_.end() || !needed_.contains(writer->second)) continue;
    const std::vector<std::string> outputs = writer->second->OutputNames();
    const auto is_used = [&](const std::string& output) { return uses_[output] > 0; };
    if (std::ranges::any_of(outputs, is_used)) continue;
    needed_.erase(writer->second);
    for (std::string& input : writer->second->InputNames()) released.push_back(std::move(input));
  }
}

std::vector<Op*> CompositionGraph::OpsOf(const std::vector<std::string_view>& types) const {
  std::vector<Op*> found;
  for (const auto& op : block_->ops()) {
    if (needed_.contains(op.get()) && std::ranges::count(types, op->type) > 0)
      found.push_back(op.get());
  }
  return found;
}

const Op* CompositionGraph::Writer(const std::string& name) const {
  const auto found = writers_.find(name);
  return found == writers_.end() ? nullptr : found->second;
}

const Op* CompositionGraph::Writer(const std::string& name, std::string_view type) const {
  const Op* writer = Writer(name);
  return writer != nullptr && writer->type == type ? writer : nullptr;
}

std::vector<Op*> CompositionGraph::ReadersOf(const std::string& name) const {
  const auto found = readers_.find(name);
  if (found == readers_.end()) return {};
  std::vector<Op*> readers = found->second;
  std::erase_if(readers, [&](const Op* op) { return !needed_.contains(op); });
  return readers;
}

Op* CompositionGraph::OnlyReader(const std::string& name) const {
  const std::vector<Op*> readers = ReadersOf(name);
  return readers.size() == 1 && !kept_.contains(name) ? readers[0] : nullptr;
}

Op* CompositionGraph::OnlyReader(const std::string& name, std::string_view type) const {
  Op* reader = OnlyReader(name);
  return reader != nullptr && reader->type == type ? reader : nullptr;
}

std::optional<std::vector<double>> CompositionGraph::ConstantsOf(const std::string& name) const {
  const Op* op = Writer(name, "assign_value");
  if (op == nullptr) return std::nullopt;
  for (const char* list : {"fp32_values", "fp64_values", "int32_values", "int64_values"}) {
    if (!op->HasAttr(list)) continue;
    const auto values = NumbersIn(op->attrs.at(list));
    if (values && !values->empty()) return values;
  }
  return std::nullopt;
}

std::optional<double> CompositionGraph::UniformOf(const std::string& name) const {
  const Op* op = Writer(name);
  if (op == nullptr) return std::nullopt;
  // Constants of half are casts.
  if (op->type == "cast")
    return IsHalf(VarOf(name).dtype) ? UniformOf(op->Input("X")[0]) : std::nullopt;
  if (op->type == "fill_any_like") return op->Attr<float>("value", 0.0f);
  if (op->type == "elementwise_mul") {
    const auto x = UniformOf(op->Input("X")[0]);
    const auto y = x ? UniformOf(op->Input("Y")[0]) : std::nullopt;
    return y ? std::optional(*x * *y) : std::nullopt;
  }
  const auto values = ConstantsOf(name);
  if (!values) return std::nullopt;
  const auto differs = [&](double value) { return value != values->front(); };
  return std::ranges::any_of(*values, differs) ? std::nullopt : std::optional(values->front());
}

std::optional<double> CompositionGraph::NumberOf(const std::string& name) const {
  const bool is_one = std::ranges::all_of(VarOf(name).dims, [](int64_t dim) { return dim == 1; });
  return is_one ? UniformOf(name) : std::nullopt;
}

bool CompositionGraph::IsFiniteConstant(const std::string& name) const {
  if (const auto number = UniformOf(name)) return std::isfinite(*number);
  const auto values = ConstantsOf(name);
  return values && std::ranges::all_of(*values, [](double value) { return std::isfinite(value); });
}

std::string CompositionGraph::Unbroadcast(const std::string& name) const {
  const Op* op = Writer(name);
  if (op == nullptr || (op->type != "logical_and" && op->type != "elementwise_mul")) return name;
  const std::string& y = op->Input("Y")[0];
  const bool is_one = Writer(y, "fill_any_like") != nullptr && UniformOf(y) == 1.0;
  return is_one ? op->Input("X")[0] : name;
}

Variable CompositionGraph::Insert(Op* op, const std::function<Variable()>& make) {
  const size_t first = block_->ops().size();
  Variable made = make();
  for (size_t i = first; i < block_->ops().size(); ++i) {
    Op* added = block_->ops()[i].get();
    added->site = op->site;
    before_[op].push_back(added);
    Link(added);
  }
  return made;
}

void CompositionGraph::Replace(Op* op, std::string_view slot,
                               const std::function<Variable()>& make) {
  const Variable made = Insert(op, make);
  const std::string name = op->Output(slot)[0];
  std::vector<std::string> unused = {made.name()};
  for (const std::string& output : op->OutputNames()) {
    if (output != name) unused.push_back(output);
  }
  Op* writer = writers_.at(made.name());
  for (SlotArguments& outputs : writer->outputs) {
    std::ranges::replace(outputs.arguments, made.name(), name);
  }
  for (const std::string& gone : unused) writers_.erase(gone);
  block_->RemoveVars(unused);
  replaced_.insert(op);
  writers_[name] = writer;
  needed_.insert(writer);
  for (const std::string& input : writer->InputNames()) Need(input);
  needed_.erase(op);
  for (const std::string& input : op->InputNames()) Release(input);
}

void CompositionGraph::ReadInstead(Op* op, std::string_view slot,
                                   const std::function<Variable()>& make) {
  const std::string old = op->Input(slot)[0];
  const std::string made = Insert(op, make).name();
  op->SetInput(slot, {made});
  if (std::ranges::count(op->InputNames(), old) == 0) std::erase(readers_[old], op);
  Link(op);
  Need(made);
  Release(old);
}

void CompositionGraph::Finish() {
  std::unordered_map<const Op*, size_t> indices;
  for (const auto& op : block_->ops()) indices.emplace(op.get(), indices.size());
  std::vector<size_t> order;
  const std::function<void(const Op*)> place = [&](const Op* op) {
    const auto before = before_.find(op);
    if (before != before_.end()) std::ranges::for_each(before->second, place);
    if (!replaced_.contains(op)) order.push_back(indices.at(op));
  };
  for (size_t i = 0; i < original_count_; ++i) place(block_->ops()[i].get());
  block_->ReorderOps(order);
}

}  // namespace skiff
