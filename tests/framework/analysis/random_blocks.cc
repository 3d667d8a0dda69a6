#include "tests/framework/analysis/random_blocks.h"

#include <random>
#include <utility>

namespace skiff {
namespace {

constexpr int kMaxBlocks = 10;
constexpr int kMaxDepth = 4;

OpDef Define(std::string type) {
  OpDef def;
  def.type = std::move(type);
  def.doc = "A test's op.";
  def.inputs = {{.name = "X", .duplicable = true, .dispensable = true},
                {.name = "S", .duplicable = true, .dispensable = true, .shape_only = true}};
  def.outputs = {{.name = "Out", .duplicable = true, .dispensable = true}};
  def.infer = [](OpContext&) {};
  def.no_gradient_reason = "nobody differentiates it";
  return def;
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  RandomBlocks Make() {
    RandomBlocks made;
    made.program = std::make_unique<Program>();
    program_ = made.program.get();
    for (const std::string& name : Names()) program_->root()->CreateVar(AnyVar(name));
    FillBlock(program_->root(), 1);
    made.feeds = AnyNames(2);
    made.fetches = AnyNames(2);
    return made;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  bool OneIn(int times) { return Below(times) == 0; }

  static const std::vector<std::string>& Names() {
    static const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
    return names;
  }

  std::vector<std::string> AnyNames(int limit) {
    std::vector<std::string> names;
    for (int i = Below(limit + 1); i > 0; --i) {
      names.push_back(Names()[static_cast<size_t>(Below(static_cast<int>(Names().size())))]);
    }
    return names;
  }

  Var AnyVar(const std::string& name) {
    Var var{.name = name, .dims = {1}};
    var.persistable = OneIn(8);
    if (name == "f") var.kind = VarKind::kLoDTensorArray;
    return var;
  }

  Block* NewBlock(int32_t parent) {
    Block* block = program_->AppendBlock(parent);
    for (const std::string& name : Names()) {
      if (OneIn(3)) block->CreateVar(AnyVar(name));
    }
    return block;
  }

  void FillBlock(Block* block, int depth) {
    for (int i = 2 + Below(5); i > 0; --i) {
      const bool room = depth < kMaxDepth && program_->block_count() < kMaxBlocks;
      if (room && OneIn(3)) {
        AddLoop(block, depth);
      } else if (room && OneIn(2)) {
        AddLoopGrad(block, depth);
      } else if (OneIn(12)) {
        RunAgain(block);
      } else {
        block->AppendOp(AnyOp("mix"));
      }
    }
  }

  Op AnyOp(const std::string& type) {
    Op op(type);
    op.SetInput("X", AnyNames(2)).SetInput("S", AnyNames(1)).SetOutput("Out", AnyNames(2));
    return op;
  }

  Block* AddSubBlock(const std::string& type, Block* block, int32_t parent) {
    Block* inner = NewBlock(parent);
    block->AppendOp(AnyOp(type).SetAttr("sub_block", BlockIndex{inner->index()}));
    return inner;
  }

  void AddLoop(Block* block, int depth) {
    Block* body = AddSubBlock("loop", block, block->index());
    FillBlock(body, depth + 1);
    bodies_.push_back({block, body});
  }

  // The bodies of the loops of a block.
  std::vector<Block*> BodiesIn(const Block* block) const {
    std::vector<Block*> bodies;
    for (const auto& [owner, body] : bodies_) {
      if (owner == block) bodies.push_back(body);
    }
    return bodies;
  }

  void AddLoopGrad(Block* block, int depth) {
    std::vector<Block*> bodies = BodiesIn(block);
    if (block->forward_block_index >= 0) {
      const std::vector<Block*> forward = BodiesIn(program_->block(block->forward_block_index));
      bodies.insert(bodies.end(), forward.begin(), forward.end());
    }
    if (bodies.empty()) return;
    const Block* forward = bodies[static_cast<size_t>(Below(static_cast<int>(bodies.size())))];
    // The parent that it has says nothing about whose gradient it is.
    const int32_t parents[] = {block->index(), 0, forward->index()};
    Block* gradient = AddSubBlock("loop_grad", block, parents[Below(3)]);
    gradient->forward_block_index = forward->index();
    FillBlock(gradient, depth + 1);
  }

  // A body of two loops.
  void RunAgain(Block* block) {
    const std::vector<Block*> bodies = BodiesIn(block);
    if (bodies.empty()) return;
    block->AppendOp(AnyOp("loop").SetAttr("sub_block", BlockIndex{bodies.front()->index()}));
  }

  std::mt19937 random_;
  Program* program_ = nullptr;
  std::vector<std::pair<const Block*, Block*>> bodies_;
};

}  // namespace

void RegisterBlockOps(OpRegistry& registry) {
  for (const char* type : {"mix", "loop", "loop_grad"}) registry.Add(Define(type));
}

RandomBlocks MakeRandomBlocks(uint32_t seed) { return Generator(seed).Make(); }

}  // namespace skiff
