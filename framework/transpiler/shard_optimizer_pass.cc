// First finds the updates to share, and the sums over the ranks that nothing but these updates
// reads. Then rewrites from the last op to the first, so that positions stay valid.
#include "framework/transpiler/shard_optimizer_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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
#include "framework/transpiler/update_groups.h"

namespace skiff {
namespace {

// Parameters of an update that are updated together, in this order.
struct Group {
  std::vector<size_t> members;  // places in the lists of the update
  std::vector<int64_t> parts;   // of the ranks, as CutIntoParts gives them
  bool takes_part_of_sum = false;
};

class Sharding {
 public:
  Sharding(const ProgramPassContext& context, Program* program)
      : registry_(context.registry),
        world_(context.data_parallel.communicator->world()),
        root_(*program->root()) {}

  PassReport Run() {
    CountUses();
    for (size_t i = 0; i < root_.ops().size(); ++i) FindUpdate(i);
    for (size_t i = 0; i < root_.ops().size(); ++i) FindSum(i);
    for (size_t i = root_.ops().size(); i-- > 0;) {
      if (scattered_.contains(i)) ScatterSum(i);
      if (shared_.contains(i)) Share(i);
    }
    return {.pass = {}, .changes = states_, .summary = Summary()};
  }

 private:
  struct List {
    StaticText input;
    StaticText output;
  };
  // A parameter of an update.
  struct Member {
    size_t update = 0;
    size_t index = 0;
  };

  void CountUses() {
    for (size_t i = 0; i < root_.ops().size(); ++i) {
      for (const VarUse& use : UsesOf(registry_, root_, i).vars) ++uses_[use.var];
    }
  }

  const OpDef& DefOf(const Op& op) const { return registry_.Get(op.type); }

  bool NeedsWhole(size_t update) const {
    return DefOf(*root_.ops()[update]).FindAttr(kPartAttr) == nullptr;
  }

  void FindUpdate(size_t position) {
    const Op& op = *root_.ops()[position];
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || def->FindAttr(kShardedAttr) == nullptr) return;
    const std::vector<std::string>& parameters = op.Input("Param");
    const std::string reason = WhyWhole(*def, op);
    if (!reason.empty()) {
      left_[reason].insert(left_[reason].end(), parameters.begin(), parameters.end());
      return;
    }
    shared_.insert(position);
    if (!MaySplit(*def, op)) return;
    for (size_t i = 0; i < parameters.size(); ++i) {
      members_[op.Input("Grad")[i]] = {.update = position, .index = i};
    }
  }

  // Returns why the update stays whole, or "".
  std::string WhyWhole(const OpDef& def, const Op& op) const {
    if (HasPart(op)) return "has a part";
    if (def.FindAttr(kPartAttr) == nullptr) return "needs norms of whole parameters";
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

  // Returns whether the update of some of the parameters needs no other inputs than the lists and
  // what all parameters share.
  static bool MaySplit(const OpDef& def, const Op& op) {
    return std::ranges::all_of(def.inputs, [&](const SlotDef& slot) {
      return IsOneOf(slot.name, def.update->lists) || op.Input(slot.name).size() < 2;
    });
  }

  // Returns the lists of arrays of the parameters' shapes that the op updates.
  static std::vector<List> WrittenLists(const OpDef& def, const Op& op) {
    std::vector<List> lists;
    for (const auto& [input, output] : def.in_place) {
      const bool is_list =
          IsOneOf(input, def.update->lists) && !IsOneOf(input, def.update->scalars);
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

  // Notes the op if it sums gradients over the ranks that nothing reads but shared updates. Their
  // parameters are then cut where the sum is cut, so that each rank needs only its part of the sum.
  void FindSum(size_t position) {
    const Op& op = *root_.ops()[position];
    const bool is_sum = op.type == "c_allreduce_sum" || op.type == "c_allreduce_list";
    if (!is_sum || !op.Input("Skip").empty()) return;
    const std::vector<std::string>& sums = op.Output("Out");
    bool whole = false;
    for (const std::string& name : sums) {
      const auto member = members_.find(name);
      const Var& var = *root_.GetVar(name);
      if (member == members_.end() || var.persistable || uses_.at(&var) != 2) return;
      whole = whole || NeedsWhole(member->second.update);
    }
    const std::vector<int64_t> begins = BeginsOf(sums);
    const std::vector<int64_t>& parts = scattered_[position] =
        CutIntoParts(begins, whole, world_.size);
    std::map<size_t, Group> groups;  // by update
    for (size_t i = 0; i < sums.size(); ++i) {
      const Member& member = members_.at(sums[i]);
      Group& group = groups[member.update];
      group.takes_part_of_sum = true;
      group.parts.resize(parts.size());
      group.members.push_back(member.index);
      for (size_t rank = 0; rank < parts.size(); ++rank) {
        group.parts[rank] += std::clamp(parts[rank], begins[i], begins[i + 1]) - begins[i];
      }
    }
    for (auto& [update, group] : groups) groups_[update].push_back(std::move(group));
  }

  // Returns the elements before each tensor, and at the end all of them.
  std::vector<int64_t> BeginsOf(const std::vector<std::string>& names) const {
    std::vector<int64_t> begins = {0};
    for (const std::string& name : names) {
      begins.push_back(begins.back() + ElementCount(root_.GetVar(name)->dims));
    }
    return begins;
  }

  // Makes the sum one that gives each rank its part. Its results get other names: nobody is to take
  // them for whole sums.
  void ScatterSum(size_t position) {
    Op& op = *root_.ops()[position];
    op.type = "c_reduce_scatter_list";
    op.attrs.erase("order");
    op.SetAttr("parts", scattered_.at(position));
    std::vector<std::string> parts;
    for (const std::string& name : op.Output("Out")) {
      parts.push_back(PartName(name));
      Var part = *root_.GetVar(name);
      part.name = parts.back();
      root_.RemoveVar(name);
      root_.CreateVar(std::move(part));
    }
    op.SetOutput("Out", std::move(parts));
    ++sums_;
  }

  static std::string PartName(const std::string& sum) { return sum + "@PART"; }

  // Replaces an update by one for each group, and the gathers of what other ranks need.
  void Share(size_t position) {
    const Op update = *root_.ops()[position];
    root_.RemoveOps(position, position + 1);
    size_t next = position;
    for (const Group& group : GroupsOf(position, update)) {
      Op part = PartOf(update, group);
      if (next > position) part.id = -1;
      std::vector<Op> gathers;
      for (const List& list : WrittenLists(DefOf(part), part)) {
        if (IsOwn(part, list)) {
          MakeShard(list, group.parts, &part);
        } else {
          gathers.push_back(GatherOf(part, list, group.parts));
        }
      }
      root_.InsertOp(next++, std::move(part));
      for (Op& gather : gathers) root_.InsertOp(next++, std::move(gather));
    }
  }

  // Returns the groups of the sums, and a group of the other parameters.
  std::vector<Group> GroupsOf(size_t position, const Op& update) {
    std::vector<Group> groups = groups_[position];
    std::vector<bool> is_member(update.Input("Param").size(), false);
    for (const Group& group : groups) {
      for (const size_t member : group.members) is_member[member] = true;
    }
    Group others;
    std::vector<std::string> names;
    for (size_t i = 0; i < is_member.size(); ++i) {
      if (is_member[i]) continue;
      others.members.push_back(i);
      names.push_back(update.Input("Param")[i]);
    }
    if (names.empty()) return groups;
    const std::vector<int64_t> begins = BeginsOf(names);
    others.parts = CutIntoParts(begins, DefOf(update).FindAttr(kPartAttr) == nullptr, world_.size);
    groups.push_back(std::move(others));
    return groups;
  }

  // Returns the update of this rank's part of the group.
  Op PartOf(const Op& update, const Group& group) const {
    const OpDef& def = DefOf(update);
    Op part = UpdateOfSome(def, update, group.members);
    if (group.takes_part_of_sum) {
      std::vector<std::string> gradients = part.Input("Grad");
      for (std::string& name : gradients) name = PartName(name);
      part.SetInput("Grad", std::move(gradients));
    }
    SetPart(def, group.parts, &part);
    return part;
  }

  void SetPart(const OpDef& def, const std::vector<int64_t>& parts, Op* op) const {
    const auto rank = static_cast<size_t>(world_.rank);
    if (def.FindAttr(kPartAttr) != nullptr) {
      op->SetAttr(kPartAttr, std::vector<int64_t>{parts[rank], parts[rank + 1]});
      return;
    }
    const std::vector<int64_t> begins = BeginsOf(op->Input("Param"));
    const auto place = [&](int64_t element) {
      return std::ranges::lower_bound(begins, element) - begins.begin();
    };
    op->SetAttr(kParameterPartAttr,
                std::vector<int64_t>{place(parts[rank]), place(parts[rank + 1])});
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

  static Op GatherOf(const Op& update, const List& list, const std::vector<int64_t>& parts) {
    const std::vector<std::string>& names = update.Output(list.output);
    Op gather("c_all_gather_list");
    gather.SetInput("X", names).SetOutput("Out", names);
    gather.SetAttr("parts", parts).SetAttr(kOpRoleAttr, kRoleOptimize);
    gather.site = update.site;
    return gather;
  }

  std::string Summary() const {
    std::string summary = StrCat(states_, " states in shards, ", shard_bytes_, " of ", whole_bytes_,
                                 " bytes; parts of ", sums_, " sums");
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
  std::unordered_map<const Var*, int64_t> uses_;      // how many ops use a variable
  std::set<size_t> shared_;                           // the updates that are shared
  std::map<std::string, Member> members_;             // of updates that may be split, by gradient
  std::map<size_t, std::vector<int64_t>> scattered_;  // sums, with their parts
  std::map<size_t, std::vector<Group>> groups_;       // of updates, by sums
  std::map<std::string, std::vector<std::string>> left_;  // parameters, by what keeps them whole
  int64_t states_ = 0;
  int64_t sums_ = 0;
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
