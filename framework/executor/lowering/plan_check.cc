#include "framework/executor/lowering/plan_check.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/op/block_rule.h"
#include "framework/op/declared_types.h"
#include "framework/op/grad_name.h"
#include "framework/op/offset_count.h"
#include "framework/tensor/scope.h"

namespace skiff {
namespace {

// Batches of few and of many rows, images, and numbers with many divisors.
constexpr int64_t kExtents[] = {2, 1, 3, 8, 60, 64, 224, 2520};

// What the LoDs of all feeds and of what ops make take together: 128 MiB.
constexpr int64_t kMostOffsetsInAll = int64_t{1} << 24;

// What a run finds when it begins.
struct Given {
  std::vector<const Var*> feeds;
  std::vector<const Var*> persistables;
  int64_t most_offsets = 0;  // of a feed
};

Given GivenOf(const OpRegistry& registry, const Program& program) {
  const Block& root = *program.root();
  Given given;
  std::set<const Var*> seen;
  const auto add = [&](const Var* var) {
    // Arrays come neither from outside nor from an earlier run, and rank tables aren't fed.
    const bool may_be_given = var != nullptr && var->kind != VarKind::kLoDTensorArray &&
                              (var->persistable || var->kind != VarKind::kLoDRankTable);
    if (!may_be_given || !seen.insert(var).second) return;
    (var->persistable ? given.persistables : given.feeds).push_back(var);
  };
  for (size_t i = 0; i < root.ops().size(); ++i) {
    const Op& op = *root.ops()[i];
    if (op.type == "feed") {
      for (const std::string& name : op.OutputNames()) add(root.FindLocalVar(name));
      continue;
    }
    const OpDef* def = registry.Find(op.type);
    const bool takes_zeros = def != nullptr && def->block != nullptr && def->block->is_gradient;
    const std::vector<VarUse> uses = UsesOf(registry, root, i).vars;
    for (const VarUse& use : uses) {
      if (use.block != &root || !(use.reads_data || use.reads_shape)) continue;
      // To the gradient op of a block, a gradient that nobody has written is zeros.
      const bool is_gradient = !use.var->persistable && !ForwardName(use.var->name).empty();
      if (!(takes_zeros && is_gradient)) add(use.var);
    }
    // What a loop or a branch writes it may leave as it was.
    for (const VarUse& use : uses) {
      if (use.writes && (use.replaces || !use.var->persistable)) seen.insert(use.var);
    }
  }
  // An op may derive a LoD from that of a feed.
  size_t lods = given.feeds.size() + 1;
  for (size_t b = 0; b < program.block_count(); ++b) {
    lods += program.block(static_cast<int32_t>(b))->ops().size();
  }
  given.most_offsets = std::min(kMostOffsets, kMostOffsetsInAll / static_cast<int64_t>(lods));
  return given;
}

Shape ShapeOf(const Var& var, int64_t unknown) {
  std::vector<int64_t> dims = var.dims;
  for (int64_t& dim : dims) {
    if (dim < 0) dim = unknown;
  }
  return Shape(std::span<const int64_t>(dims));
}

// Returns sequences of one row each, so that feeds with a row for each sequence fit those with a
// row for each step; or one of all rows, if that takes too many offsets.
LoD LoDOfFeed(int64_t rows, int32_t levels, int64_t most_offsets) {
  const int64_t sequences = rows < most_offsets / levels ? rows : 1;
  std::vector<uint64_t> offsets(static_cast<size_t>(sequences) + 1);
  std::iota(offsets.begin(), offsets.end(), uint64_t{0});
  LoD lod(static_cast<size_t>(levels), offsets);
  lod.back().back() = static_cast<uint64_t>(rows);
  return lod;
}

TensorMeta MetaOfFeed(const Var& var, int64_t unknown, int64_t most_offsets) {
  TensorMeta meta{.shape = ShapeOf(var, unknown), .dtype = var.dtype, .lod_level = var.lod_level};
  if (var.lod_level == 0 || meta.shape.rank() == 0) return meta;
  meta.lod = std::make_shared<const LoDGroup>(
      LoDGroup{.offsets = LoDOfFeed(meta.shape[0], var.lod_level, most_offsets)});
  return meta;
}

// Returns why there is no plan; "": there is one.
std::string WhyNoPlan(const OpRegistry& registry, const Program& program, const Given& given,
                      int64_t unknown) {
  try {
    Scope scope;
    for (const Var* var : given.persistables) {
      // Plans are made without a look at the elements.
      static char nothing = 0;
      scope.Reserve(var->name, Tensor::Borrow(&nothing, ShapeOf(*var, unknown), var->dtype));
      scope.Reveal(var->name);
    }
    std::vector<std::pair<std::string, TensorMeta>> feeds;
    for (const Var* var : given.feeds) {
      feeds.emplace_back(var->name, MetaOfFeed(*var, unknown, given.most_offsets));
    }
    LowerSegment({.registry = registry, .scope = scope, .place = Place::Cpu()}, program, feeds, {});
    return "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted) throw;
    return error.what();
  }
}

bool LeavesSizesOpen(const Given& given) {
  const auto is_open = [](const Var* var) {
    return var->lod_level > 0 ||
           std::ranges::any_of(var->dims, [](int64_t dim) { return dim < 0; });
  };
  return std::ranges::any_of(given.feeds, is_open) ||
         std::ranges::any_of(given.persistables, is_open);
}

}  // namespace

std::optional<NoPlan> FindNoPlan(const OpRegistry& registry, const Program& program) {
  const std::unique_ptr<Program> typed = program.Clone();
  TakeDeclaredTypes(registry, typed.get());
  const Given given = GivenOf(registry, *typed);
  const bool is_open = LeavesSizesOpen(given);
  std::set<std::string> found;
  std::string first;
  for (const int64_t extent : kExtents) {
    const std::string why = WhyNoPlan(registry, *typed, given, extent);
    if (why.empty()) return std::nullopt;
    if (first.empty()) first = why;
    found.insert(why);
    if (!is_open) break;
  }
  if (found.size() == 1) return NoPlan{.why = first, .is_certain = true};
  return NoPlan{.why =
                    StrCat("no plan with ", Join(std::span(kExtents), ", "),
                           " for what the program leaves open; with ", kExtents[0], ": ", first)};
}

}  // namespace skiff
