// The plan of a run, as data: the instructions, their order, and where each value is stored.
//
// A *value* is one definition of a variable: a variable that is written twice has two values, so no
// analysis of a plan ever reasons about names. Plan passes rewrite a Plan; the executor prepares
// and runs the plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"
#include "framework/plan/api/recomputed.h"
#include "framework/plan/value_id.h"
#include "memory/reuse_policy.h"

namespace skiff {

enum class Storage {
  kArena,        // a part of the plan's arena
  kScope,        // a persistable variable of the scope, in the scope's own storage
  kFeed,         // what the caller feeds: never written
  kKernelOwned,  // a tensor that the kernel makes in each run, since its shape depends on data
  kStack,  // in a loop's body: the part of a stack of the loop's plan that belongs to the iteration
};

struct PlanValue {
  std::string name;  // of the variable
  TensorMeta meta;
  Storage storage = Storage::kArena;
  // The device whose memory holds the value, or the elements of an array. Tensors that a kernel
  // makes itself are on the CPU, as feeds are.
  Place place = {};
  // The value that owns the storage, if this value has none of its own (in place, views).
  ValueId alias_of;
  // Bytes from the begin of the arena, for an arena value with a storage of its own; -1 until
  // storage is planned.
  int64_t offset = -1;
  // The user wants the value for itself: no other value shares the storage, and the value lives
  // from the first instruction to after the last.
  bool is_exclusive = false;
  // The user names the value as one to keep: it is neither fused away nor merged with another one.
  bool is_checkpoint = false;
};

// Returns the bytes that the value's storage takes, padding and row numbers included; 0 if only a
// run knows them (Storage::kKernelOwned).
int64_t StorageBytes(const PlanValue& value);

enum class InstructionKind {
  kOp,
  kCopy,   // from one input to the only output; their layouts may differ
  kFused,  // several element-wise ops that run together, block by block
  kLoop,   // runs a body: see loop.h
};

// How an instruction in the body of a loop, whose op has a RowRule, runs on the rows of several
// iterations at once.
enum class Batching {
  kNone,    // it doesn't
  kBefore,  // before the first of these iterations: all inputs are known then
  kAfter,   // after the last one: its outputs are sums over the rows, which the body doesn't read
};

// The two queues of instructions. Each runs its instructions in the order of the plan.
enum class PlanStream {
  kMain,
  // Of collective ops (OpDef::collective): an instruction begins when all instructions before it
  // have ended, and runs beside the ones after it.
  kCommunication,
};

struct Loop;

// How a fused instruction is cut; see fused_blocks.h.
struct BlockPartition {
  int64_t elements = 0;    // of a block; the last one may have fewer
  int row_axis = 0;        // of the shape that is cut: dims from here on are whole in each block
  int64_t part_count = 1;  // runs of blocks, each for one thread
};

struct Instruction {
  InstructionKind kind = InstructionKind::kOp;
  // The place of the kernel and its workspaces. A copy runs where its two values are, possibly two
  // places.
  Place place = {};
  // The op. For a copy, the op that needs it; for a fused instruction, the last of its ops.
  const Op* op = nullptr;
  const OpDef* def = nullptr;
  int32_t block = 0;    // of the op
  size_t position = 0;  // of the op in its block
  // Values by the index of OpContext::InputIndex/OutputIndex; none for @EMPTY@. For a loop: the
  // values that the body reads and produces; the links of Loop assign them.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  // By input: false if the op reads only the shape (SlotDef::shape_only), so that the data may be
  // gone. True for an input that gives an attribute (SlotDef::attribute) that each run may change.
  std::vector<bool> reads_data;
  // Whether only the kernel knows the rows and LoDs of the outputs (OpDef::sets_rows).
  bool sets_rows = false;
  Batching batching = Batching::kNone;
  PlanStream stream = PlanStream::kMain;
  // Of an instruction in the main stream: the last instruction of the communication stream, counted
  // from 0, that must have ended before this one begins; -1: there is none, or an earlier wait
  // includes it. The end of a run waits for all.
  int32_t waits_for = -1;
  // Bytes of each workspace and their offsets in the arena. The bytes are known once the kernel is
  // prepared, for a fused instruction from the start.
  std::vector<int64_t> workspace_bytes;
  std::vector<int64_t> workspace_offsets;
  // The ops of a fused instruction in the order in which they run. Its `inputs` are the values that
  // they read and none of them writes, each once; its `outputs` are the values that other
  // instructions read. Values of members that are in neither have no place in the arena.
  std::vector<Instruction> members;
  BlockPartition blocks;
  // Of a loop. Nobody changes it: to change a loop, give the instruction a new Loop.
  std::shared_ptr<const Loop> loop;

  // Returns the op's type, "copy", or "fused(type,type,...)".
  std::string Name() const;

  // Returns the value of argument i of a slot of the op, or none if the op lacks that argument.
  ValueId InputIn(std::string_view slot, size_t i = 0) const;
  ValueId OutputIn(std::string_view slot, size_t i = 0) const;
};

// Arena values that are stored one after the other, each at the next multiple of the alignment.
// Each lives only as long as it would elsewhere: the bytes are free for other values before the
// first write and after the last read. A value with the storage of another value (alias_of)
// represents the storage, if both have the same size. Values outside the arena, dropped values, and
// storages that occurred before in this or an earlier list are passed over: a reader that needs the
// values contiguous must ask (ContiguousSlices).
struct ContiguousValues {
  std::vector<ValueId> values;
  // A power of two, at least an element; it may be less than the alignment of other values. The
  // first value is aligned like those, too.
  int64_t alignment_bytes = 64;
};

namespace ir {

struct Plan {
  Place place;  // of the program; on a device, some instructions may run on the CPU all the same
  ValueTable<PlanValue> values;
  std::vector<Instruction> instructions;
  std::vector<ValueId> feeds;    // in the order of the signature
  std::vector<ValueId> fetches;  // in the order of the signature
  std::vector<ContiguousValues> contiguous;
  // How arena values and workspaces with disjoint lives share space.
  ReusePolicy reuse = ReusePolicy::kNone;
  // Whether each of them ends at a page that nobody may access (MemoryOptions::guards).
  bool has_guards = false;
  int64_t planned_bytes = 0;       // of the arena
  int64_t max_live_bytes = 0;      // the lower bound for the arena
  int64_t unshared_bytes = 0;      // of an arena with a buffer for each value
  int64_t host_planned_bytes = 0;  // of a plan on a device: of its other arena, on the CPU
  Recomputed recomputed;           // for reports
  // By lowering and passes. All other ops are the program's.
  std::vector<std::shared_ptr<const Op>> made_ops;

  PlanValue& operator[](ValueId value) { return values[value]; }
  const PlanValue& operator[](ValueId value) const { return values[value]; }
  // The names of all values, in the order in which they were added.
  ValueIds ids() const { return ValueIds(values.size()); }

  // Returns the value whose storage `value` uses: itself, or the end of its alias_of chain.
  ValueId StorageOf(ValueId value) const;
};

}  // namespace ir

using ir::Plan;

// Values by slot. A slot may have several values, in order. A slot without a value is left out.
using SlotValues = std::vector<std::pair<std::string, ValueId>>;

// Returns Instruction::reads_data of an op, as its definition says.
std::vector<bool> ReadsData(const OpDef& def, const Op& op);

// Makes an instruction of an op that the program doesn't have. The plan owns the op, which takes
// role, name scope, creation site and position of `origin`, the instruction that it replaces.
// Throws an Error if the definition refuses the op, and (kInvalidArgument) if a value is given for
// a slot that the definition doesn't have.
Instruction MakeInstruction(Plan* plan, const OpDef& def, const Instruction& origin,
                            const AttributeMap& attrs, const SlotValues& inputs,
                            const SlotValues& outputs);

// Returns whether the instruction moves a value from one place to another.
bool IsTransfer(const Plan& plan, const Instruction& instruction);

// Returns the op context of an instruction, with its values' metas.
PrepareContext ContextOf(const Plan& plan, const Instruction& instruction);

}  // namespace skiff
