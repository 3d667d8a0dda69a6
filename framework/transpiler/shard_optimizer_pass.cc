#include "framework/transpiler/shard_optimizer_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/analysis/op_uses.h"
#include "framework/base/dtype.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/io/byte_stream.h"
#include "framework/ir/op_role.h"
#include "framework/ir/shard_name.h"
#include "framework/op/update_part.h"
#include "framework/transpiler/name_list.h"

namespace skiff {
namespace {

// Returns where the part of each rank begins, as an index in `begins`, and at the end the number of
// parameters. `begins`: the elements before each parameter, and at the end all of them.
std::vector<int64_t> CutAtParameters(const std::vector<int64_t>& begins, int64_t ranks) {
  std::vector<int64_t> cuts;
  for (int64_t rank = 0; rank <= ranks; ++rank) {
    const int64_t ideal = begins.back() * rank / ranks;
    const auto nearest = std::ranges::min_element(
        begins, {}, [&](int64_t begin) { return std::max(begin - ideal, ideal - begin); });
    cuts.push_back(nearest - begins.begin());
  }
  return cuts;
}

// Returns where the part of each rank begins, as an element, and at the end the number of elements.
std::vector<int64_t> CutAtElements(const std::vector<int64_t>& begins, int64_t ranks) {
  std::vector<int64_t> cuts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t ideal = begins.back() * rank / ranks;
    const int64_t begin = *(std::ranges::upper_bound(begins, ideal) - 1);
    cuts.push_back(ideal - (ideal - begin) % kPieceAlignment);
  }
  cuts.push_back(begins.back());
  return cuts;
}

class Sharding {
 public:
  Sharding(const ProgramPassContext& context, Program* program)
      : registry_(context.registry),
        world_(context.data_parallel.communicator->world()),
        root_(*program->root()) {}

  PassReport Run() {
    CountUses();
    for (size_t i = root_.ops().size(); i-- > 0;) Share(i);
    return {.pass = {}, .changes = states_, .summary = Summary()};
  }

 private:
  struct List {
    StaticText input;
    StaticText output;
  };

  void CountUses() {
    for (size_t i = 0; i < root_.ops().size(); ++i) {
      for (const VarUse& use : UsesOf(registry_, root_, i).vars) ++uses_[use.var];
    }
  }

  // Shares the op, if it is an update that can be shared, and inserts the ops after it.
  void Share(size_t position) {
    Op& op = *root_.ops()[position];
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || def->FindAttr(kShardedAttr) == nullptr) return;
    const std::string reason = WhyWhole(*def, op);
    if (!reason.empty()) {
      const std::vector<std::string>& names = op.Input("Param");
      left_[reason].insert(left_[reason].end(), names.begin(), names.end());
      return;
    }
    const std::vector<int64_t> parts = SetPart(*def, &op);
    std::vector<List> whole;
    for (const List& list : WrittenLists(*def, op)) {
      if (IsOwn(op, list)) {
        MakeShard(list, parts, &op);
      } else {
        whole.push_back(list);
      }
    }
    for (const List& list : whole) {
      root_.InsertOp(position + 1, GatherOf(op, op.Output(list.output), parts));
    }
  }

  // Returns why the update stays whole, or "".
  std::string WhyWhole(const OpDef& def, const Op& op) const {
    if (HasPart(op)) return "has a part";
    for (const std::string& name : op.Input("Grad")) {
      const Var* var = root_.FindVar(name);
      if (var == nullptr || var->kind == VarKind::kSelectedRows) return "sparse gradient";
    }
    const std::vector<List> lists = WrittenLists(def, op);
    if (!std::ranges::all_of(lists, [&](const List& list) { return IsInPlace(op, list); })) {
      return "not in place";
    }
    if (std::ranges::none_of(lists, [&](const List& list) { return IsOwn(op, list); })) {
      return "no states";
    }
    return "";
  }

  // Returns whether the op updates persistables of known shapes where they are.
  bool IsInPlace(const Op& op, const List& list) const {
    if (op.Input(list.input) != op.Output(list.output)) return false;
    return std::ranges::all_of(op.Input(list.input), [&](const std::string& name) {
      const Var* var = root_.FindVar(name);
      return var != nullptr && var->persistable && std::ranges::count(var->dims, -1) == 0;
    });
  }

  // Returns the lists of arrays of the parameters' shapes that the op updates.
  static std::vector<List> WrittenLists(const OpDef& def, const Op& op) {
    std::vector<List> lists;
    for (const auto& [input, output] : def.in_place) {
      const bool is_list = IsOneOf(input, def.update->lists) && !IsOneOf(input, def.update->scalars);
      if (is_list && !op.Input(input).empty()) lists.push_back({input, output});
    }
    return lists;
  }

  // Returns whether only this op uses the list.
  bool IsOwn(const Op& op, const List& list) const {
    if (list.input == "Param") return false;
    return std::ranges::all_of(op.Input(list.input), [&](const std::string& name) {
      return uses_.at(root_.GetVar(name)) == 1;
    });
  }

  // Sets the part of this rank. Returns the elements at which the parts of all ranks begin, and
  // their number.
  std::vector<int64_t> SetPart(const OpDef& def, Op* op) const {
    std::vector<int64_t> begins = {0};
    for (const std::string& name : op->Input("Param")) {
      begins.push_back(begins.back() + ElementCount(root_.GetVar(name)->dims));
    }
    const auto rank = static_cast<size_t>(world_.rank);
    const auto set = [&](const char* attr, const std::vector<int64_t>& cuts) {
      op->SetAttr(attr, std::vector<int64_t>{cuts[rank], cuts[rank + 1]});
    };
    if (def.FindAttr(kPartAttr) != nullptr) {
      const std::vector<int64_t> cuts = CutAtElements(begins, world_.size);
      set(kPartAttr, cuts);
      return cuts;
    }
    std::vector<int64_t> cuts = CutAtParameters(begins, world_.size);
    set(kParameterPartAttr, cuts);
    for (int64_t& cut : cuts) cut = begins[static_cast<size_t>(cut)];
    return cuts;
  }

  // Replaces the list by this rank's shard.
  void MakeShard(const List& list, const std::vector<int64_t>& parts, Op* op) {
    const std::vector<std::string> names = op->Input(list.input);
    std::vector<int64_t> counts;
    for (const std::string& name : names) {
      counts.push_back(ElementCount(root_.GetVar(name)->dims));
    }
    Var shard;
    shard.name = ShardName(names, parts);
    shard.dtype = root_.GetVar(names[0])->dtype;
    shard.dims = {ShardElements(PiecesOf(*op, counts))};
    shard.persistable = true;
    shard_bytes_ += shard.dims[0] * SizeOf(shard.dtype);
    whole_bytes_ += parts.back() * SizeOf(shard.dtype);
    states_ += std::ssize(names);
    op->SetInput(list.input, {shard.name}).SetOutput(list.output, {shard.name});
    Append(kShardedAttr, {std::string(list.input)}, op);
    Append(kShardOfAttr, names, op);
    root_.CreateVar(std::move(shard));
  }

  static void Append(const char* attr, const std::vector<std::string>& names, Op* op) {
    auto all = op->Attr<std::vector<std::string>>(attr, {});
    all.insert(all.end(), names.begin(), names.end());
    op->SetAttr(attr, std::move(all));
  }

  // Returns a name that no other list and no other parts have: programs that share a scope mustn't
  // take each other's shards.
  static std::string ShardName(const std::vector<std::string>& names,
                               const std::vector<int64_t>& parts) {
    const std::string text = StrCat(Join(names, " "), " ", Join(parts, " "));
    return StrCat(names[0], kShardMark, Crc32Text(Crc32(0, text.data(), std::ssize(text))));
  }

  static Op GatherOf(const Op& update, const std::vector<std::string>& names,
                     const std::vector<int64_t>& parts) {
    Op gather("c_all_gather_list");
    gather.SetInput("X", names).SetOutput("Out", names);
    gather.SetAttr("parts", parts).SetAttr(kOpRoleAttr, kRoleOptimize);
    gather.site = update.site;
    return gather;
  }

  std::string Summary() const {
    std::string summary =
        StrCat(states_, " states in shards, ", shard_bytes_, " of ", whole_bytes_, " bytes");
    std::vector<std::string> left;
    for (const auto& [reason, names] : left_) {
      left.push_back(StrCat(FewNames(names), " (", reason, ")"));
    }
    if (!left.empty()) summary += StrCat("; left whole: ", Join(left, ", "));
    return summary;
  }

  const OpRegistry& registry_;
  const World& world_;
  Block& root_;
  std::unordered_map<const Var*, int64_t> uses_;  // how many ops use a variable
  std::map<std::string, std::vector<std::string>> left_;  // parameters, by what keeps them whole
  int64_t states_ = 0;
  int64_t shard_bytes_ = 0;
  int64_t whole_bytes_ = 0;
};

}  // namespace

PassReport ShardOptimizerPass::Apply(const ProgramPassContext& context, Program* program) const {
  if (RankCount(context.data_parallel.communicator.get()) < 2) {
    return {.pass = {}, .changes = 0, .summary = "one rank"};
  }
  return Sharding(context, program).Run();
}

}  // namespace skiff
