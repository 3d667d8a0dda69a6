// ParseProgramText, with one function per rule of the text format.
#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/ir/text_attributes.h"
#include "framework/ir/text_escape.h"
#include "framework/ir/text_scanner.h"

namespace skiff {
namespace {

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : scan_(text) {}

  std::unique_ptr<Program> Parse() {
    program_ = std::make_unique<Program>();
    scan_.Word("program");
    Settings();
    scan_.Punctuation('{');
    while (scan_.TryWord("op_version")) OpVersion();
    while (!scan_.TryPunctuation('}')) NextBlock();
    if (next_block_ == 0) scan_.ThrowAt(0, "the program has no block, expected one at least");
    CheckForwardBlocks();
    if (!scan_.AtEnd()) scan_.ThrowExpected("the end of the text");
    return std::move(program_);
  }

 private:
  void Settings() {
    while (scan_.Peek() != '{') {
      if (scan_.TryWord("seed")) {
        scan_.Punctuation('=');
        program_->seed = scan_.Number<uint64_t>("a seed");
      } else if (scan_.TryWord("version")) {
        scan_.Punctuation('=');
        program_->version = scan_.Number<int64_t>("a version");
      } else {
        scan_.ThrowExpected("\"seed\", \"version\" or '{'");
      }
    }
  }

  void OpVersion() {
    std::string op = scan_.Name("an op type");
    scan_.Punctuation('=');
    program_->op_versions.emplace_back(std::move(op), scan_.Number<int32_t>("a version"));
  }

  void NextBlock() {
    scan_.Word("block");
    const size_t start = scan_.position();
    if (scan_.Number<int32_t>("a block index") != next_block_) {
      scan_.ThrowAt(start, StrCat("blocks must be in order: expected block ", next_block_));
    }
    Block* block = CreateBlock();
    scan_.Punctuation('{');
    while (!scan_.TryPunctuation('}')) VarOrOp(block);
  }

  // Reads parent=N forward=N, of which either may be missing.
  Block* CreateBlock() {
    int32_t parent = -1;
    if (scan_.TryWord("parent")) {
      scan_.Punctuation('=');
      parent = ParentIndex();
    }
    Block* block = next_block_ == 0 ? program_->root() : program_->AppendBlock(parent);
    ++next_block_;
    if (scan_.TryWord("forward")) {
      scan_.Punctuation('=');
      forward_positions_.emplace_back(scan_.position(), block);
      block->forward_block_index = scan_.Number<int32_t>("a block index");
    }
    return block;
  }

  // A forward block may come after the block that names it, so this check must wait for all blocks.
  void CheckForwardBlocks() const {
    for (const auto& [position, block] : forward_positions_) {
      const int32_t forward = block->forward_block_index;
      if (forward >= -1 && forward < next_block_) continue;
      scan_.ThrowAt(position, StrCat("block ", block->index(), " can't have the forward block ",
                                     forward, ": expected one in [-1, ", next_block_, ")"));
    }
  }

  int32_t ParentIndex() {
    const size_t start = scan_.position();
    const auto parent = scan_.Number<int32_t>("a block index");
    if (parent < -1 || parent >= next_block_) {
      scan_.ThrowAt(start, StrCat("block ", next_block_, " can't have the parent ", parent,
                                  ": expected one in [-1, ", next_block_, ")"));
    }
    return parent;
  }

  void VarOrOp(Block* block) {
    if (scan_.Peek() == '{') {
      block->AppendOp(ParseOp());
      return;
    }
    const size_t start = scan_.position();
    const bool is_parameter = scan_.TryWord("param");
    if (!is_parameter && !scan_.TryWord("var")) {
      scan_.ThrowExpected("a variable (\"var\" or \"param\"), an op ('{') or '}'");
    }
    Var var = ParseVar();
    var.is_parameter = is_parameter;
    if (var.name.empty()) scan_.ThrowAt(start, "a variable needs a name, found an empty one");
    if (block->FindLocalVar(var.name) != nullptr) {
      scan_.ThrowAt(start, StrCat("variable ", Quote(var.name), " is in the block already"));
    }
    block->CreateVar(std::move(var));
  }

  // `{` may begin the attributes of the variable or the next op. Only looking ahead tells
  // (IsOpNext).
  Var ParseVar() {
    Var var;
    var.name = scan_.Name("the name of a variable");
    var.kind = OptionalKind();
    var.dtype = ParseDType(&scan_);
    var.dims = ParseIntegers(&scan_);
    while (TryVarMark(&var)) {
    }
    if (scan_.Peek() == '{' && !IsOpNext(scan_)) var.attrs = ParseAttributes(&scan_);
    return var;
  }

  // A kind is a bare word like a dtype, and most variables have none: if the word isn't a kind, it
  // must be the dtype.
  VarKind OptionalKind() {
    try {
      const VarKind kind = VarKindFromName(scan_.PeekWord());
      scan_.AnyWord("a kind");
      return kind;
    } catch (const Error&) {
      return VarKind::kLoDTensor;
    }
  }

  // Marks may come in any order, though the printer has one.
  bool TryVarMark(Var* var) {
    if (scan_.TryWord("lod")) {
      scan_.Punctuation('=');
      var->lod_level = scan_.Number<int32_t>("a LoD level");
    } else if (scan_.TryWord("persistable")) {
      var->persistable = true;
    } else if (scan_.TryWord("stop_gradient")) {
      var->stop_gradient = true;
    } else if (scan_.TryWord("check_feed")) {
      var->need_check_feed = true;
    } else if (scan_.TryWord("not_trainable")) {
      var->trainable = false;
    } else if (scan_.TryWord("learning_rate_factor")) {
      scan_.Punctuation('=');
      var->learning_rate_factor = scan_.Float("a float");
    } else {
      return false;
    }
    return true;
  }

  Op ParseOp() {
    Op op;
    scan_.Punctuation('{');
    op.outputs = ParseSlots('}');
    scan_.Punctuation('=');
    op.type = scan_.Name("an op type");
    scan_.Punctuation('(');
    op.inputs = ParseSlots(')');
    op.is_target = scan_.TryWord("target");
    if (scan_.Peek() == '{' && !IsOpNext(scan_)) op.attrs = ParseAttributes(&scan_);
    return op;
  }

  Slots ParseSlots(char close) {
    Slots slots;
    scan_.Slots(close, [&](std::string slot) { slots.push_back({std::move(slot), Names()}); });
    return slots;
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    scan_.Punctuation('[');
    if (scan_.TryPunctuation(']')) return names;
    do {
      names.push_back(scan_.Name("the name of a variable"));
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(']');
    return names;
  }

  TextScanner scan_;
  std::unique_ptr<Program> program_;
  int32_t next_block_ = 0;
  std::vector<std::pair<size_t, const Block*>> forward_positions_;  // in the text
};

}  // namespace

std::unique_ptr<Program> ParseProgramText(std::string_view text) {
  return ProgramParser(text).Parse();
}

}  // namespace skiff
