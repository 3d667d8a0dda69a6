// Decides which ops of a program compute in half, and which variables are half. The rules are
// OpDef::precision; docs/precision.md explains them.
//
// - An op whose rule is kLow computes in half.
// - An op whose rule is kFollow computes in half if its largest float inputs and all of its results
//   are half. Smaller inputs (such as a mask), parameters and constants take the dtype of the
//   inputs that they are combined with.
// - An op whose rule is kHigh computes in float32. Its results are half if its inputs are half and
//   all uses of the results end in ops with kLow: the op then rounds where the ops with kLow would
//   round.
// - A variable is half if all ops that write the variable compute in half. Ops that make constants
//   don't count. So a variable of a loop has one dtype, inside and outside. An array is half only
//   if, in addition, all ops that read it take half. A feed that an op overwrites stays float32.
// - A persistable that ops update stays float32, unless Names says otherwise and all ops that read
//   the persistable take half.
// - An op of which an attribute names float32 (AttrDef::names_dtype) stays float32.
// - What depends neither on an op with kLow nor on a parameter in half stays float32: learning
//   rates, counters, and values computed from feeds alone.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/precision/half_report.h"
#include "framework/precision/precision_options.h"

namespace skiff {

// An argument of an op that is a variable of float32, or an array of such tensors.
struct FloatArgument {
  const SlotDef* slot = nullptr;  // nullptr: the registry lacks the op
  std::string slot_name;
  size_t index = 0;     // within the slot
  size_t variable = 0;  // in PrecisionChoice::variables
  // For a value that a loop takes: the variable inside with the same dtype; -1: none.
  int like = -1;
};

struct FloatOp {
  enum class Mode {
    kUntouched,  // takes and makes float32 as it did
    kFloat32,
    kHalf,
  };

  Op* op = nullptr;
  const OpDef* def = nullptr;  // nullptr: the registry lacks it
  Block* block = nullptr;
  size_t position = 0;
  std::vector<FloatArgument> inputs;
  std::vector<FloatArgument> outputs;
  Mode mode = Mode::kUntouched;
  bool is_kept = false;  // by PrecisionOptions::keep_float32
};

struct FloatVariable {
  Var* var = nullptr;
  Block* block = nullptr;       // that declares it
  std::vector<size_t> writers;  // in PrecisionChoice::ops, in order
  std::vector<size_t> readers;
  // Whether an op that runs a block sets the variable: a variable inside, before each iteration, or
  // a variable outside, from variables inside.
  bool is_set_by_loop = false;
  size_t set_at = 0;  // the position in `block` from which it is there then
  size_t group = 0;   // variables of a group have the same dtype
  bool is_half = false;
  // Whether all uses of the variable end in ops that round it.
  bool is_rounded = false;
};

// Throws an Error (kNotFound) for an entry of PrecisionOptions::keep_float32 that fits no forward
// op of the program, which may have gradients and be rewritten already.
void CheckKeepFloat32(const Program& program, const std::vector<std::string>& entries);

class PrecisionChoice {
 public:
  struct Names {
    // Parameters that may become half.
    std::set<std::string> parameters;
    // Variables of the root block that stay float32, such as the loss.
    std::set<std::string> results;
    // Whether persistables that ops update, such as a cache of keys, may become half.
    bool may_round_states = false;
    // Whether entries of PrecisionOptions::keep_float32 that fit nothing are passed over.
    bool may_keep_nothing = false;
  };
  // All arguments must outlive the choice, which holds pointers into the program. Throws Error:
  // kFailedPrecondition if the program has gradient ops, kInvalidArgument if options.dtype isn't
  // half, kNotFound for an entry of keep_float32 that fits nothing, unless names.may_keep_nothing.
  PrecisionChoice(const OpRegistry& registry, const Program& program,
                  const PrecisionOptions& options, const Names& names);

  // The ops with float32 arguments. The ops of a block follow the op that runs it.
  const std::vector<FloatOp>& ops() const { return ops_; }
  const std::vector<FloatVariable>& variables() const { return variables_; }
  // Returns whether the op has half in the argument.
  bool IsHalfIn(const FloatOp& op, const FloatArgument& argument) const;
  // Returns why an op with FloatOp::Mode::kFloat32 has that mode.
  HalfReport::Float32Op WhyFloat32(const FloatOp& op) const;
  // Returns the op that runs the block, and its block; nullptr for the root.
  std::pair<Block*, size_t> RunnerOf(const Block* block) const;

 private:
  void AddBlock(Block* block);
  void AddOp(Block* block, size_t position);
  using FindSlot = std::function<const SlotDef*(const std::string&)>;
  std::vector<FloatArgument> ArgumentsOf(const Block& block, const Slots& given,
                                         const FindSlot& find);
  int Find(const Block& block, const std::string& name);
  void TieStates(const Op& op, const OpDef& def, FloatOp* node);
  void SetByLoop(int set, int from, size_t position);
  void MarkKept();
  std::vector<bool> FindSources() const;
  void Settle();
  FloatOp::Mode ModeOf(const FloatOp& op) const;
  const FloatVariable* ArrayWrittenBy(const FloatOp& op) const;
  // Returns nullptr if the largest inputs are half, else the largest input that isn't.
  const FloatVariable* Float32InputOf(const FloatOp& op) const;
  const FloatVariable* Float32OutputOf(const FloatOp& op) const;
  bool IsRounded(const FloatOp& op) const;
  void FindRounded();
  bool IsParameterForHalf(const FloatVariable& variable) const;
  bool IsStateForHalf(const FloatVariable& variable) const;
  bool IsConstant(const FloatVariable& variable) const;
  bool IsReadInHalf(const FloatVariable& variable) const;
  bool MayStayHalf(const FloatVariable& variable) const;

  const OpRegistry& registry_;
  const PrecisionOptions& options_;
  const Names& names_;
  std::vector<FloatOp> ops_;
  std::vector<FloatVariable> variables_;
  std::map<const Var*, size_t> index_;
  std::map<const Block*, std::pair<Block*, size_t>> runners_;
};

}  // namespace skiff
