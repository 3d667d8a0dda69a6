// The plan of a run, as data: what is computed in which order, and where each value lies.
//
// A *value* is one definition of a variable: a variable that is written twice has two values, so no
// analysis of a plan ever reasons about names. Plan passes rewrite a Plan; the executor prepares
// it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"
#include "memory/reuse_policy.h"

namespace skiff {

class KernelTuner;

enum class Storage {
  kArena,  // a slice of the plan's arena
  kScope,  // a persistable of the scope: its storage is the scope's
  kFeed,   // what the caller feeds: never written
};

struct PlanValue {
  std::string name;  // of the variable
  TensorMeta meta;
  Storage storage = Storage::kArena;
  // The value whose storage this one shares (in place, views); -1: none.
  int32_t alias_of = -1;
  // For an arena value that isn't an alias.
  int64_t offset = -1;
};

// What its storage takes, padding and row numbers included.
int64_t StorageBytes(const PlanValue& value);

enum class InstructionKind {
  kOp,
  kCopy,  // one input to one output; layouts may differ
  // Made behind all passes that rewrite arguments, of several ops that run block by block:
  kFused,   // element-wise ones
  kInStep,  // ListKernels: an update of parameters and what keeps their averages
};

// How a fused instruction is cut; see fused_blocks.h.
struct BlockPartition {
  int64_t elements = 0;    // of a block; the last one may have fewer
  int row_axis = 0;        // of the shape that is cut: dims from here on are whole in each block
  int64_t part_count = 1;  // runs of blocks, each for one thread
};

struct Instruction {
  InstructionKind kind = InstructionKind::kOp;
  // For a copy: the op that needs it; of what is fused: the last one; in step: the first one.
  const Op* op = nullptr;
  const OpDef* def = nullptr;
  size_t position = 0;  // of the op in its block
  // Values by the index of OpContext::InputIndex/OutputIndex; -1 for @EMPTY@.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  // By input: false where only the shape is read (SlotDef::shape_only), so that the data may be
  // gone.
  std::vector<bool> reads_data;
  // Bytes of each workspace and their offsets in the arena; known once the kernel is prepared, and
  // of what is fused (kFused) from the start.
  std::vector<int64_t> workspace_bytes;
  std::vector<int64_t> workspace_offsets;
  // Of what is fused: the ops in the order in which they run. `inputs` are the values whose data
  // they read and none of them writes, each once; `outputs` those that somebody else reads. Values
  // of the members that are in neither have no place in the arena. Of ops in step `outputs` are all
  // that they write.
  std::vector<Instruction> members;
  BlockPartition blocks;

  // The op's type, "copy", or "fused(type,type,...)".
  std::string Name() const;

  // The value in a slot of the op; -1 if there is none.
  int32_t InputIn(std::string_view slot, size_t i = 0) const;
  int32_t OutputIn(std::string_view slot, size_t i = 0) const;
};

// A run of instructions whose shapes are known before it starts. An op whose output shape depends
// on data ends a segment; one with ragged rows is planned for `row_capacity` rows. (Only static
// segments are made so far: one per plan, capacity 0.)
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  int64_t row_capacity = 0;
};

// What is computed again in the backward pass, so that it isn't kept from the forward pass on.
enum class Recompute {
  kNothing,
  kCheapOps,     // what takes a pass over memory: activations, normalizations, element-wise ops
  kCheckpoints,  // all between the checkpoints that the user names
  kBudget,       // what costs the least and makes the arena fit into a budget
  kLeastMemory,  // what makes the arena the smallest
};

// "nothing", "cheap_ops", "checkpoints", "budget", "least_memory".
std::string_view RecomputeName(Recompute recompute);
// Error (kInvalidArgument) naming those that there are.
Recompute ParseRecompute(std::string_view name);

// What a user asks of the passes that save memory.
struct MemoryOptions {
  ReusePolicy policy = ReusePolicy::kArena;
  // Variables whose values share storage with nothing.
  std::vector<std::string> skip;
  Recompute recompute = Recompute::kNothing;
  std::vector<std::string> checkpoints;  // variables of the forward pass; for kCheckpoints
  int64_t budget_bytes = 0;              // of the arena; for kBudget
  // Where tensors that lie flat (flatten_parameters) begin: at multiples of this, a power of two.
  // 4 packs float32 tensors without gaps.
  int64_t flat_alignment_bytes = 64;
  // Fills arena memory with NaN where nothing lives any more: what is read too late shows. For
  // tests.
  bool poison_dead_memory = false;
};

// Arena values that lie one behind the other, each at the next multiple of the alignment after the
// end of the one before. Each lives as it would elsewhere: what isn't written yet, or won't be read
// any more, is memory for others. Where a value lies on another one (alias_of), that one's storage
// takes its place, if it has as many bytes. Of what isn't in the arena, was dropped, or has a
// storage that is in the list or an earlier one already, nothing is placed: whoever wants the
// values contiguous must look whether they are (ContiguousSlices).
struct ContiguousValues {
  std::vector<int32_t> values;
  // A power of two, no less than an element; it may be less than that of other values. The first
  // value is aligned like those, too.
  int64_t alignment_bytes = 64;
};

struct Plan {
  Place place;
  std::vector<PlanValue> values;
  std::vector<Instruction> instructions;
  std::vector<Segment> segments;
  std::vector<int32_t> feeds;    // values, in the order of the signature
  std::vector<int32_t> fetches;  // values, in the order of the signature
  std::vector<ContiguousValues> contiguous;
  // How arena values and workspaces with disjoint lives share space.
  ReusePolicy reuse = ReusePolicy::kNone;
  int64_t planned_bytes = 0;   // of the arena
  int64_t max_live_bytes = 0;  // the lower bound
  int64_t unshared_bytes = 0;  // with a buffer for each value: what no reuse would take
  std::vector<std::shared_ptr<const Op>> made_ops;  // by passes; the others are the program's
  // From types of ops to the kernel that the user wants, wherever it takes the shapes. No pass puts
  // another op in the place of such an op.
  std::map<std::string, std::string, std::less<>> forced_kernels;
  MemoryOptions memory;
  // While the passes run: what knows the times of the other ops; nullptr: they go by rule.
  KernelTuner* tuner = nullptr;

  // The kernel that is forced on ops of this type; empty: none.
  std::string_view ForcedKernel(std::string_view type) const;

  // Makes one static segment of all instructions: after their number has changed.
  void CoverWithOneSegment();

  // The value whose storage `value` uses: itself, or the end of its alias_of chain.
  int32_t StorageOf(int32_t value) const;
};

// Values by slot, several of one in their order; -1 leaves a slot out.
using SlotValues = std::vector<std::pair<std::string, int32_t>>;

// An instruction of an op that the plan's program does not have. The op is made and kept by the
// plan, with role, name scope, creation site and position of `origin`, which it stands for.
Instruction MakeInstruction(Plan* plan, const OpDef& def, const Instruction& origin,
                            const AttributeMap& attrs, const SlotValues& inputs,
                            const SlotValues& outputs);

// The op context of an instruction, with its values' metas.
PrepareContext ContextOf(const Plan& plan, const Instruction& instruction);

// One line an instruction: outputs = name(inputs), a value as name#index, dtype, shape, layout if
// it isn't plain, and where it lies: @scope, @feed, =#index for a shared storage, @offset in the
// arena once that is planned. Then a line of the fetches, one for each list of contiguous values,
// and once storage is planned one of its bytes.
std::string PrintPlan(const Plan& plan);

}  // namespace skiff
