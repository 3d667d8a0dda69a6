// Checks definitions and lives in random programs with nested blocks against runs of the programs
// in which each value is forgotten right after its last use, and against a textbook liveness
// analysis: by variable and position, from the end to the start.
#include "tests/framework/analysis/random_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/analysis/definitions.h"
#include "framework/base/error.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

constexpr uint32_t kPrograms = 3000;

const OpRegistry& BlockOps() {
  static const OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    RegisterBlockOps(*made);
    return made;
  }();
  return registry;
}

// The variable whose elements survive a write.
constexpr const char* kArray = "f";

BlockDefinitions DefinitionsOf(const RandomBlocks& blocks, int32_t block) {
  DefinitionOptions options;
  if (block == 0) options = {.feeds = blocks.feeds, .fetches = blocks.fetches};
  return FindDefinitions(BlockOps(), *blocks.program->block(block), options);
}

// ---- Runs that forget

struct Cell {
  bool is_forgotten = false;
};

// One run of a block.
struct Frame {
  const Block* block = nullptr;
  Frame* parent = nullptr;
  Frame* forward = nullptr;  // of a gradient block: the run that it belongs to
  std::map<std::string, Cell> cells;
  std::map<int32_t, std::vector<std::unique_ptr<Frame>>> runs;  // by sub-block
};

class ForgetfulRun {
 public:
  ForgetfulRun(const RandomBlocks& blocks, uint32_t seed) : blocks_(blocks), random_(seed) {
    for (int32_t b = 0; b < static_cast<int32_t>(blocks.program->block_count()); ++b) {
      definitions_.push_back(DefinitionsOf(blocks, b));
    }
  }

  // Steps of a program: the scope stays, all else begins anew.
  void Steps(int steps) {
    for (int i = 0; i < steps; ++i) {
      Frame root{.block = blocks_.program->root()};
      Run(&root);
      where_ = "fetch";
      for (const std::string& name : blocks_.fetches) Read(&root, name);
    }
  }

  // What was read after it was forgotten.
  const std::vector<std::string>& mistakes() const { return mistakes_; }
  int reads() const { return reads_; }

 private:
  Cell& CellOf(Frame* frame, const std::string& name) {
    std::deque<Frame*> frames{frame};
    while (!frames.empty()) {
      Frame* next = frames.front();
      frames.pop_front();
      if (next == nullptr) continue;
      const Var* var = next->block->FindLocalVar(name);
      if (var != nullptr) return var->persistable ? scope_[name] : next->cells[name];
      frames.push_back(next->forward);
      frames.push_back(next->parent);
    }
    Throw(ErrorCode::kNotFound, name);
  }

  // A name may mean another variable in the frame than the one of a definition.
  Cell& CellOf(Frame* frame, const Definition& definition) {
    const std::string& name = definition.var->name;
    return definition.var->persistable ? scope_[name] : RunOf(definition.block, frame)->cells[name];
  }

  void Read(Frame* frame, const std::string& name) {
    ++reads_;
    if (CellOf(frame, name).is_forgotten) mistakes_.push_back(StrCat(where_, " reads ", name));
  }

  void Write(Frame* frame, const std::string& name) {
    if (name != kArray) CellOf(frame, name).is_forgotten = false;
  }

  void Run(Frame* frame) {
    Forget(frame, -1);
    for (size_t i = 0; i < frame->block->ops().size(); ++i) {
      RunOp(frame, *frame->block->ops()[i], StrCat("block ", frame->block->index(), ", op #", i));
      Forget(frame, static_cast<int64_t>(i));
    }
  }

  void Forget(Frame* frame, int64_t position) {
    const BlockDefinitions& definitions = definitions_[static_cast<size_t>(frame->block->index())];
    for (const Definition& definition : definitions.all()) {
      const bool is_there =
          definitions.Before(static_cast<size_t>(position + 1), definition.var) == &definition;
      if (definition.last == position && is_there) {
        CellOf(frame, definition).is_forgotten = true;
      }
    }
  }

  void RunOp(Frame* frame, const Op& op, const std::string& where) {
    where_ = where;
    for (const std::string& name : op.Input("X")) Read(frame, name);
    if (op.type == "loop") Loop(frame, op);
    if (op.type == "loop_grad") LoopGrad(frame, op);
    const bool writes = op.type == "mix" || random_() % 2 == 0;
    for (const std::string& name : op.Output("Out")) {
      if (writes) Write(frame, name);
    }
  }

  void Loop(Frame* frame, const Op& op) {
    const Block* body = blocks_.program->block(op.SubBlocks()[0]);
    for (uint32_t i = random_() % 3; i > 0; --i) {
      frame->runs[body->index()].push_back(
          std::make_unique<Frame>(Frame{.block = body, .parent = RunOf(body->parent(), frame)}));
      Run(frame->runs[body->index()].back().get());
    }
  }

  void LoopGrad(Frame* frame, const Op& op) {
    const Block* gradient = blocks_.program->block(op.SubBlocks()[0]);
    std::vector<Frame*> forward_runs;
    for (Frame* owner : {frame, frame->forward}) {
      if (owner == nullptr) continue;
      for (const auto& run : owner->runs[gradient->forward_block_index]) {
        forward_runs.push_back(run.get());
      }
    }
    for (Frame* forward : forward_runs) {
      Frame* parent =
          gradient->parent() == forward->block ? forward : RunOf(gradient->parent(), frame);
      frame->runs[gradient->index()].push_back(
          std::make_unique<Frame>(Frame{.block = gradient, .parent = parent, .forward = forward}));
      Run(frame->runs[gradient->index()].back().get());
    }
  }

  // The run of the block in which that of an inner block begins.
  static Frame* RunOf(const Block* block, Frame* frame) {
    std::deque<Frame*> frames{frame};
    while (!frames.empty()) {
      Frame* next = frames.front();
      frames.pop_front();
      if (next == nullptr) continue;
      if (next->block == block) return next;
      frames.push_back(next->forward);
      frames.push_back(next->parent);
    }
    return nullptr;
  }

  const RandomBlocks& blocks_;
  std::mt19937 random_;
  std::vector<BlockDefinitions> definitions_;  // by block
  std::map<std::string, Cell> scope_;
  std::string where_;
  std::vector<std::string> mistakes_;
  int reads_ = 0;
};

TEST(RandomBlocks, HoldWhatIsReadWhenEverythingIsForgottenAfterItsLastUse) {
  int reads = 0;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    const RandomBlocks blocks = MakeRandomBlocks(seed);
    for (uint32_t run_seed = 0; run_seed < 4; ++run_seed) {
      ForgetfulRun run(blocks, run_seed);
      run.Steps(2);
      reads += run.reads();
      ASSERT_THAT(run.mistakes(), testing::IsEmpty())
          << "seed " << seed << "\n"
          << PrintProgram(*blocks.program) << "feeds " << Join(blocks.feeds, " ") << ", fetches "
          << Join(blocks.fetches, " ");
    }
  }
  EXPECT_GT(reads, 100000);
}

// ---- Liveness by the textbook

struct NaiveUse {
  bool reads = false;
  bool touches = false;
  bool writes = false;
  bool replaces = false;
};

// By block and name, as declared. Persistables of one name are those of the first block.
using VarPlace = std::pair<int32_t, std::string>;
using NaiveUses = std::map<VarPlace, NaiveUse>;

class Textbook {
 public:
  explicit Textbook(const RandomBlocks& blocks) : blocks_(blocks), program_(*blocks.program) {}

  // Variable, first, last, readers and updates of each definition.
  using Row = std::tuple<VarPlace, int64_t, int64_t, std::set<size_t>, std::set<size_t>>;

  std::set<Row> Definitions(int32_t block) const {
    std::vector<NaiveUses> uses;
    std::set<VarPlace> variables;
    for (const auto& op : program_.block(block)->ops()) {
      uses.push_back(UsesOfOp(block, *op));
      for (const auto& [variable, use] : uses.back()) variables.insert(variable);
    }
    for (const auto* names : {&blocks_.feeds, &blocks_.fetches}) {
      if (block != 0) break;
      for (const std::string& name : *names) variables.insert(Resolve(0, name));
    }
    std::set<Row> rows;
    for (const VarPlace& variable : variables) AddRows(block, variable, uses, &rows);
    return rows;
  }

 private:
  const Var& VarAt(const VarPlace& place) const {
    return *program_.block(place.first)->FindLocalVar(place.second);
  }

  std::vector<int32_t> Visible(int32_t block) const {
    std::vector<int32_t> seen{block};
    for (size_t i = 0; i < seen.size(); ++i) {
      const Block& next = *program_.block(seen[i]);
      for (int32_t other : {next.forward_block_index, next.parent_index()}) {
        if (other >= 0 && std::ranges::count(seen, other) == 0) seen.push_back(other);
      }
    }
    return seen;
  }

  VarPlace Resolve(int32_t block, const std::string& name) const {
    for (int32_t seen : Visible(block)) {
      const Var* var = program_.block(seen)->FindLocalVar(name);
      if (var == nullptr) continue;
      if (!var->persistable) return {seen, name};
      for (int32_t first = 0;; ++first) {
        const Var* same = program_.block(first)->FindLocalVar(name);
        if (same != nullptr && same->persistable) return {first, name};
      }
    }
    Throw(ErrorCode::kNotFound, name);
  }

  NaiveUses UsesOfOp(int32_t block, const Op& op) const {
    NaiveUses uses;
    for (const std::string& name : op.Input("X")) uses[Resolve(block, name)].reads = true;
    for (const std::string& name : op.Input("S")) uses[Resolve(block, name)].touches = true;
    for (const std::string& name : op.Output("Out")) uses[Resolve(block, name)].writes = true;
    for (int32_t inner : op.SubBlocks()) Merge(UsesOfRun(block, inner), &uses);
    for (auto& [variable, use] : uses) {
      use.replaces = use.writes && op.SubBlocks().empty() && variable.second != kArray;
    }
    return uses;
  }

  // What a run of `inner` uses, as far as `block` sees it.
  NaiveUses UsesOfRun(int32_t block, int32_t inner) const {
    NaiveUses all;
    for (const auto& op : program_.block(inner)->ops()) Merge(UsesOfOp(inner, *op), &all);
    const std::vector<int32_t> visible = Visible(block);
    std::erase_if(all, [&](const auto& entry) {
      const VarPlace& variable = entry.first;
      const bool seen = variable.first != inner && std::ranges::count(visible, variable.first) > 0;
      return !VarAt(variable).persistable && !seen;
    });
    return all;
  }

  static void Merge(const NaiveUses& from, NaiveUses* to) {
    for (const auto& [variable, use] : from) {
      NaiveUse& merged = (*to)[variable];
      merged.reads |= use.reads;
      merged.touches |= use.touches;
      merged.writes |= use.writes;
    }
  }

  bool IsGradientOf(int32_t block, int32_t forward) const {
    const int32_t next = program_.block(block)->forward_block_index;
    return next >= 0 && (next == forward || IsGradientOf(next, forward));
  }

  bool IsReadAfter(int32_t block, const VarPlace& variable) const {
    const int32_t forward = program_.block(block)->forward_block_index;
    for (int32_t other = 0; other < static_cast<int32_t>(program_.block_count()); ++other) {
      const bool shares_forward = forward >= 0 && other != block && IsGradientOf(other, forward);
      if (!shares_forward && !IsGradientOf(other, block)) continue;
      for (const auto& op : program_.block(other)->ops()) {
        NaiveUses uses = UsesOfOp(other, *op);
        if (uses[variable].reads) return true;
      }
    }
    return false;
  }

  bool IsNamed(const std::vector<std::string>& names, int32_t block,
               const VarPlace& variable) const {
    return block == 0 && std::ranges::any_of(names, [&](const std::string& name) {
             return Resolve(0, name) == variable;
           });
  }

  // What happens to one variable of a block.
  struct Story {
    std::vector<NaiveUse> uses;  // by op
    bool is_from_outside = false;
    bool is_fed = false;
    bool outlives = false;
  };

  Story StoryOf(int32_t block, const VarPlace& variable, const std::vector<NaiveUses>& uses) const {
    Story story;
    for (const NaiveUses& by_variable : uses) {
      const auto found = by_variable.find(variable);
      story.uses.push_back(found == by_variable.end() ? NaiveUse{} : found->second);
    }
    const bool is_of_forward = variable.first == program_.block(block)->forward_block_index;
    const bool is_persistable = VarAt(variable).persistable;
    story.is_from_outside = is_persistable || variable.first != block;
    story.is_fed = IsNamed(blocks_.feeds, block, variable);
    story.outlives = is_persistable || (story.is_from_outside && !is_of_forward) ||
                     IsNamed(blocks_.fetches, block, variable) || IsReadAfter(block, variable);
    return story;
  }

  // Returns by instant, from before the first op to after the last, whether the current value is
  // needed.
  static std::vector<bool> Needed(const Story& story) {
    std::vector<bool> needed(story.uses.size() + 1);
    needed.back() = story.outlives;
    for (size_t i = story.uses.size(); i-- > 0;) {
      const NaiveUse& use = story.uses[i];
      const bool goes_on = !use.replaces && (use.writes || needed[i + 1]);
      needed[i] = use.reads || goes_on;
    }
    return needed;
  }

  static bool BeginsOutside(const Story& story) {
    const auto first = std::ranges::find_if(
        story.uses, [](const NaiveUse& use) { return use.reads || use.touches || use.writes; });
    if (story.is_fed || first == story.uses.end()) return true;
    const bool is_updated = first->writes && !first->replaces;
    return first->reads || first->touches || (is_updated && story.is_from_outside);
  }

  static std::vector<int64_t> Starts(const Story& story) {
    std::vector<int64_t> starts;
    if (BeginsOutside(story)) starts.push_back(-1);
    for (size_t i = 0; i < story.uses.size(); ++i) {
      const NaiveUse& use = story.uses[i];
      const bool is_first = use.writes && starts.empty();
      if (use.replaces || is_first) starts.push_back(static_cast<int64_t>(i));
    }
    return starts;
  }

  void AddRows(int32_t block, const VarPlace& variable, const std::vector<NaiveUses>& uses,
               std::set<Row>* rows) const {
    const Story story = StoryOf(block, variable, uses);
    const std::vector<bool> needed = Needed(story);
    const std::vector<int64_t> starts = Starts(story);
    const auto count = static_cast<int64_t>(story.uses.size());
    for (size_t s = 0; s < starts.size(); ++s) {
      const int64_t end = s + 1 < starts.size() ? starts[s + 1] : count;
      int64_t last = starts[s];
      while (last < end && needed[static_cast<size_t>(last + 1)]) ++last;
      std::set<size_t> readers;
      std::set<size_t> updates;
      for (int64_t i = std::max<int64_t>(starts[s], 0); i <= std::min(end, count - 1); ++i) {
        const NaiveUse& use = story.uses[static_cast<size_t>(i)];
        // The op that makes a definition reads the one before.
        if (use.reads && i != starts[s]) readers.insert(static_cast<size_t>(i));
        if (use.writes && !use.replaces) updates.insert(static_cast<size_t>(i));
      }
      rows->insert({variable, starts[s], last, readers, updates});
    }
  }

  const RandomBlocks& blocks_;
  const Program& program_;
};

TEST(RandomBlocks, HaveTheDefinitionsOfTheTextbook) {
  size_t updated = 0;
  size_t outliving = 0;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    const RandomBlocks blocks = MakeRandomBlocks(seed);
    const Textbook textbook(blocks);
    for (int32_t b = 0; b < static_cast<int32_t>(blocks.program->block_count()); ++b) {
      const BlockDefinitions definitions = DefinitionsOf(blocks, b);
      std::set<Textbook::Row> rows;
      for (const Definition& definition : definitions.all()) {
        rows.insert({{definition.block->index(), definition.var->name},
                     definition.first,
                     definition.last,
                     {definition.readers.begin(), definition.readers.end()},
                     {definition.updates.begin(), definition.updates.end()}});
        updated += definition.updates.empty() ? 0 : 1;
        outliving += definition.outlives.read_by_gradient ? 1 : 0;
      }
      ASSERT_EQ(rows.size(), definitions.all().size());
      ASSERT_EQ(rows, textbook.Definitions(b))
          << "seed " << seed << ", block " << b << "\n"
          << PrintProgram(*blocks.program) << "feeds " << Join(blocks.feeds, " ") << ", fetches "
          << Join(blocks.fetches, " ");
    }
  }
  EXPECT_GT(updated, 1000u);
  EXPECT_GT(outliving, 1000u);
}

}  // namespace
}  // namespace skiff
