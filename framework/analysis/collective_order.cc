#include "framework/analysis/collective_order.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"
#include "framework/base/fnv_hash.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

uint64_t HashOf(const std::vector<std::string>& lines) {
  FnvHash hash;
  hash.Add(Join(lines, "\n"));
  return hash.state();
}

std::string VariableText(const PlanValue& value) {
  const std::span<const int64_t> dims = value.meta.shape.dims();
  std::string text = StrCat(value.name, " ", value.meta.dtype, " [");
  if (!dims.empty()) text += "rows";
  for (size_t i = 1; i < dims.size(); ++i) text += StrCat(", ", dims[i]);
  return text + "]";
}

std::string ValuesText(const Plan& plan, const std::vector<ValueId>& values) {
  std::vector<std::string> texts;
  for (const ValueId value : values) texts.push_back(value ? VariableText(plan[value]) : "none");
  return Join(texts, ", ");
}

std::string InstructionText(const Plan& plan, const Instruction& instruction) {
  // Only what the definition lists: marks such as the name scope change nothing.
  AttributeMap attrs;
  for (const AttrDef& attr : instruction.def->attrs) {
    const Attribute* value = EffectiveAttr(*instruction.op, attr);
    if (value != nullptr) attrs.emplace(attr.name, *value);
  }
  return StrCat(ValuesText(plan, instruction.outputs), " = ", instruction.op->type, "(",
                ValuesText(plan, instruction.inputs), ") ", PrintAttributes(attrs));
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string LineText(const std::vector<std::string>& lines, size_t i) {
  return i < lines.size() ? StrCat("\"", lines[i], "\"") : "nothing";
}

}  // namespace

std::vector<std::string> CollectiveOrder(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Instruction& instruction : plan.instructions) {
    if (IsCollective(instruction)) lines.push_back(InstructionText(plan, instruction));
  }
  return lines;
}

void CollectiveAgreement::Check(const std::vector<std::string>& order) {
  const uint64_t hash = HashOf(order);
  if (agreed_.contains(hash)) return;
  static const auto& activity = *new std::string("the comparison of collective ops");
  communicator_.set_activity(&activity);
  const std::vector<uint64_t> hashes = HashesOfAll(hash);
  const auto other = std::ranges::find_if(hashes, [&](uint64_t of) { return of != hashes[0]; });
  if (other != hashes.end()) ThrowDifference(order, static_cast<int32_t>(other - hashes.begin()));
  communicator_.set_activity(nullptr);
  agreed_.insert(hash);
}

std::vector<uint64_t> CollectiveAgreement::HashesOfAll(uint64_t own) {
  const World& world = communicator_.world();
  std::vector<uint64_t> hashes(static_cast<size_t>(world.size), own);
  std::vector<OutMessage> out;
  std::vector<InMessage> in;
  for (int32_t rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank) continue;
    out.push_back({.to = rank, .data = &own, .bytes = sizeof(own)});
    in.push_back({.from = rank, .data = &hashes[static_cast<size_t>(rank)], .bytes = sizeof(own)});
  }
  communicator_.Exchange(out, in, nullptr);
  return hashes;
}

void CollectiveAgreement::Broadcast(int32_t root, void* data, int64_t bytes) {
  const World& world = communicator_.world();
  std::vector<OutMessage> out;
  std::vector<InMessage> in;
  if (world.rank != root) in.push_back({.from = root, .data = data, .bytes = bytes});
  for (int32_t rank = 0; world.rank == root && rank < world.size; ++rank) {
    if (rank != root) out.push_back({.to = rank, .data = data, .bytes = bytes});
  }
  communicator_.Exchange(out, in, nullptr);
}

std::string CollectiveAgreement::TextOf(int32_t root, const std::string& own) {
  auto bytes = static_cast<int64_t>(own.size());
  Broadcast(root, &bytes, sizeof(bytes));
  std::string text = own;
  text.resize(static_cast<size_t>(bytes));
  Broadcast(root, text.data(), bytes);
  return text;
}

void CollectiveAgreement::ThrowDifference(const std::vector<std::string>& order, int32_t other) {
  const std::string own = Join(order, "\n");
  const std::vector<std::string> first = LinesOf(TextOf(0, own));
  const std::vector<std::string> second = LinesOf(TextOf(other, own));
  size_t i = 0;
  while (i < first.size() && i < second.size() && first[i] == second[i]) ++i;
  Throw(ErrorCode::kFailedPrecondition, "ranks would run different collective ops: op ", i,
        " of them is ", LineText(first, i), " on rank 0, and ", LineText(second, i), " on rank ",
        other);
}

}  // namespace skiff
