// How it works. A cutting divides the forward pass into segments and says what is kept. From it
// follows what runs again: start from the dropped values that the backward pass reads, and add
// writers until only kept values are read (FindReruns). Each rerun is placed right before its first
// reader, and the plan is rewritten with copies of the values. Nothing of this is estimated: every
// cutting becomes a plan, whose live bytes are computed with memory_reuse, and the best plan wins.
// Cuttings that rerun the same instructions are tried once.
#include "framework/transpiler/recompute_pass.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/plan/loop.h"
#include "framework/transpiler/fuse_elementwise_pass.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "framework/transpiler/replay.h"

namespace skiff {
namespace {

// Of kAlmostFree: the most that all of it may cost, as a share of a step, and how large a share of
// the live bytes it must save for a share of a step.
constexpr double kMostShare = 0.02;
constexpr double kSavingForCost = 8;
// Values below this share of what the forward pass hands to the backward pass are kept.
constexpr double kSmallShare = 1e-3;

// Returns the FLOP of a product of such factors that take as long as a byte of an op that makes a
// pass over memory. Of ResNet-50 and ERNIE on a Zen 5, by what recomputing cheap ops costs
// (docs/benchmarks.md): much of what such ops read is still in the caches. In half, where a kernel
// takes it as it is, twice as many.
double FlopPerByte(DType dtype) { return IsHalf(dtype) ? 12 : 6; }

// Returns the bytes that a pass over the value counts as: of half those of float32, as it computes
// as much for each element.
double PassBytes(const PlanValue& value) {
  return static_cast<double>(StorageBytes(value)) * (IsHalf(value.meta.dtype) ? 2 : 1);
}

bool IsProduct(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOp && instruction.def->flop != nullptr;
}

// Returns the time of an instruction, estimated as the bytes that memory delivers meanwhile.
double InstructionCost(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kLoop) {
    const Loop& loop = *instruction.loop;
    double cost = 0;
    for (const Instruction& of_body : loop.body.instructions)
      cost += InstructionCost(loop.body, of_body);
    return cost * static_cast<double>(std::max<int64_t>(loop.iterations, 1));
  }
  // A view is expected to share storage, so it moves no bytes.
  if (IsLoopBoundary(instruction) || !ViewPairs(plan, instruction).empty()) return 0;
  const auto has_known_shape = [&](ValueId value) {
    return !value || plan[value].meta.shape.is_known();
  };
  if (!std::ranges::all_of(instruction.inputs, has_known_shape) ||
      !std::ranges::all_of(instruction.outputs, has_known_shape)) {
    return 0;  // only a run knows it
  }
  double cost = 0;
  std::optional<DType> dtype;  // of the first input, a factor of a product
  for (size_t j = 0; j < instruction.inputs.size(); ++j) {
    const ValueId input = instruction.inputs[j];
    if (!input || !instruction.reads_data[j]) continue;
    cost += PassBytes(plan[input]);
    if (!dtype) dtype = plan[input].meta.dtype;
  }
  for (const ValueId output : instruction.outputs) {
    if (output) cost += PassBytes(plan[output]);
  }
  if (!IsProduct(instruction)) return cost;
  const double flop = instruction.def->flop(ContextOf(plan, instruction));
  return cost + flop / FlopPerByte(dtype.value_or(DType::kFloat32));
}

// A way to recompute.
struct Cutting {
  std::vector<size_t> cuts;  // instructions that begin a segment; ascending
  bool cheap_only = false;
  std::set<ValueId> kept;  // values, whatever reads them
};

// Which instructions run again, and where.
struct Reruns {
  std::vector<ValueId> dropped;  // what isn't kept of the values that the backward pass reads
  // By instruction of the forward pass that runs again, the one of the backward pass before which
  // it does so: the first that reads any of it, itself or through others that run again.
  std::map<size_t, size_t> positions;

  auto operator<=>(const Reruns&) const = default;
};

struct Outcome {
  Plan plan;
  int64_t added = 0;  // instructions
  double cost = 0;    // of these
  int64_t max_live_bytes = 0;
};

class Recomputation {
 public:
  Recomputation(const PassContext& context, const Plan& plan)
      : context_(context), plan_(plan), uses_(plan) {
    backward_ = plan.instructions.size();
    for (size_t i = plan.instructions.size(); i-- > 0;) {
      // Not every later instruction is of the backward pass (updates, metrics), but all that is
      // read from here on has to live at the same time as gradients.
      if ((plan.instructions[i].op->role() & kRoleBackward) != 0) backward_ = i;
    }
    if (!has_backward()) return;
    FindScopeWrites();
    FindHeld();
    kept_live_bytes_ = MostLiveBytes(plan);
    for (const Instruction& instruction : plan.instructions) {
      cost_of_step_ += InstructionCost(plan, instruction);
    }
  }

  bool has_backward() const { return backward_ < plan_.instructions.size(); }

  // Returns a cutting with a cut after each op of the forward pass that writes one of the
  // variables.
  Cutting CutAfter(const std::vector<std::string>& checkpoints) const {
    Cutting cutting;
    std::set<size_t> cuts;
    for (const std::string& name : checkpoints) {
      bool is_known = false;
      bool is_forward = false;
      for (const ValueId value : plan_.ids()) {
        if (ValueOf(value).name != name) continue;
        is_known = true;
        const bool is_dropped =
            uses_.WriterOf(value) == kNobody && ValueOf(value).storage == Storage::kArena;
        is_forward = is_forward || is_dropped;  // dead code: there is nothing to keep
        if (uses_.WriterOf(value) >= backward_) continue;
        is_forward = true;
        cuts.insert(uses_.WriterOf(value) + 1);
        cutting.kept.insert(value);
      }
      SKIFF_ENFORCE(is_known, kNotFound, "recompute: the program computes no checkpoint \"", name,
                    "\"");
      SKIFF_ENFORCE(is_forward, kInvalidArgument, "recompute: the checkpoint \"", name,
                    "\" is no value of the forward pass");
    }
    cutting.cuts.assign(cuts.begin(), cuts.end());
    return cutting;
  }

  // Returns cuts that few bytes cross, such that each segment holds about `segment_bytes` that only
  // it and the backward pass read.
  std::vector<size_t> CutsFor(int64_t segment_bytes) const {
    const std::vector<int64_t> crossing = CrossingBytes();
    std::vector<size_t> cuts;
    size_t begin = 0;
    int64_t inside = 0;
    for (size_t i = 0; i < backward_; ++i) {
      inside += held_bytes_[i];
      if (inside < segment_bytes) continue;
      // Takes the best cut in the second half (by bytes) of the segment: a cheaper cut in the first
      // half would make segments much shorter than asked for.
      size_t best = i + 1;
      int64_t bytes_after = 0;
      for (size_t cut = i + 1; cut > begin + 1 && 2 * bytes_after <= segment_bytes; --cut) {
        if (crossing[cut] < crossing[best]) best = cut;
        bytes_after += held_bytes_[cut - 1];
      }
      if (best >= backward_) break;
      cuts.push_back(best);
      begin = best;
      inside = 0;
      for (size_t j = best; j <= i; ++j) inside += held_bytes_[j];
    }
    return cuts;
  }

  int64_t held_bytes() const { return all_held_bytes_; }

  double cost_of_step() const { return cost_of_step_; }
  int64_t kept_live_bytes() const { return kept_live_bytes_; }

  // Returns the plan of a cutting, or none if a cutting that was tried before runs the same
  // instructions again.
  std::optional<Outcome> Try(const Cutting& cutting) {
    const Reruns reruns = RerunsOf(cutting);
    if (!tried_.insert(reruns).second) return std::nullopt;
    Outcome outcome = Rewrite(cutting, reruns);
    outcome.max_live_bytes = MostLiveBytes(outcome.plan);
    return outcome;
  }

  // Returns the most live bytes once fuse_elementwise has run as well, which by default follows:
  // what fused ops hand to each other may make a peak where there will be none.
  int64_t MostLiveBytesOfFused(Plan plan) const {
    FuseElementwisePass().Apply(context_, &plan);
    return MostLiveBytesWithReuse(context_, std::move(plan));
  }

  // Returns the cutting with as many more values kept as it takes to cost no more than that: first
  // those that save the fewest bytes for their cost.
  Cutting Thinned(const Cutting& cutting, double most_cost) {
    std::vector<ValueId> dropped = RerunsOf(cutting).dropped;
    const auto saving_for_cost = [&](ValueId value) {
      return static_cast<double>(StorageBytes(ValueOf(value))) /
             std::max(InstructionCost(plan_, At(uses_.WriterOf(value))), 1.0);
    };
    std::ranges::stable_sort(dropped, std::less(), saving_for_cost);
    const auto keeping = [&](size_t count) {
      Cutting thinned = cutting;
      thinned.kept.insert(dropped.begin(), dropped.begin() + static_cast<std::ptrdiff_t>(count));
      return thinned;
    };
    // The more is kept, the less it costs.
    size_t too_few = 0;
    size_t enough = dropped.size();
    if (CostOf(keeping(0)) <= most_cost) return cutting;
    while (enough - too_few > 1) {
      const size_t middle = (too_few + enough) / 2;
      (CostOf(keeping(middle)) <= most_cost ? enough : too_few) = middle;
    }
    return keeping(enough);
  }

 private:
  static constexpr size_t kNobody = PlanUses::kNobody;

  int64_t MostLiveBytes(const Plan& plan) const {
    return context_.memory.recompute == Recompute::kAlmostFree
               ? MostLiveBytesOfFused(plan)
               : MostLiveBytesWithReuse(context_, plan);
  }

  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }
  const Instruction& At(size_t i) const { return plan_.instructions[i]; }
  // Returns the instruction of the forward pass that writes an arena value, or kNobody.
  size_t ForwardWriter(ValueId value) const {
    if (!value || ValueOf(value).storage != Storage::kArena) return kNobody;
    const size_t writer = uses_.WriterOf(value);
    return writer < backward_ ? writer : kNobody;
  }

  void FindScopeWrites() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (IsLoopBoundary(At(i))) boundary_ = i;
      for (ValueId output : At(i).outputs) {
        if (!output || ValueOf(output).storage != Storage::kScope) continue;
        scope_writes_[ValueOf(output).name].insert(i);
      }
    }
  }

  // Sums up, by instruction of the forward pass, the bytes that it hands to the backward pass.
  void FindHeld() {
    held_bytes_.resize(backward_);
    for (const ValueId value : plan_.ids()) {
      const size_t writer = ForwardWriter(value);
      const std::vector<size_t>& readers = uses_.ReadersOf(value);
      if (writer == kNobody || readers.empty() || readers.back() < backward_) continue;
      const int64_t bytes = StorageBytes(ValueOf(value));
      held_bytes_[writer] += bytes;
      all_held_bytes_ += bytes;
    }
  }

  size_t LastForwardReader(ValueId value) const {
    const std::vector<size_t>& readers = uses_.ReadersOf(value);
    const auto backward = std::ranges::lower_bound(readers, backward_);
    return backward == readers.begin() ? kNobody : *std::prev(backward);
  }

  // Returns, by cut, the bytes that are written before it and read by the forward pass after it.
  // Sums up the changes at the first and last cut that each value crosses.
  std::vector<int64_t> CrossingBytes() const {
    std::vector<int64_t> crossing(backward_ + 2);
    for (const ValueId value : plan_.ids()) {
      const size_t writer = ForwardWriter(value);
      const size_t last = LastForwardReader(value);
      if (writer == kNobody || last == kNobody) continue;
      crossing[writer + 1] += StorageBytes(ValueOf(value));
      crossing[last + 1] -= StorageBytes(ValueOf(value));
    }
    for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    return crossing;
  }

  // ---- one cutting

  double CostOf(const Cutting& cutting) { return Rewrite(cutting, RerunsOf(cutting)).cost; }

  Reruns RerunsOf(const Cutting& cutting) {
    // Placing an instruction may show that it can't run again (its inputs in the scope have changed
    // by then). Its outputs must then be kept, which changes what else runs again. fixed_ only
    // grows, so this ends.
    fixed_.clear();
    Reruns reruns;
    do {
      fixed_grew_ = false;
      reruns = FindReruns(cutting);
    } while (fixed_grew_);
    return reruns;
  }

  static size_t SegmentOf(const Cutting& cutting, size_t i) {
    return static_cast<size_t>(std::ranges::upper_bound(cutting.cuts, i) - cutting.cuts.begin());
  }

  // Returns whether the instruction may run twice, as far as that depends on itself.
  bool CanRunAgain(const Cutting& cutting, size_t i) const {
    const Instruction& instruction = At(i);
    const bool is_one_op = instruction.kind == InstructionKind::kOp;
    const bool is_copy = instruction.kind == InstructionKind::kCopy;
    if ((!is_one_op && !is_copy) || instruction.sets_rows || fixed_.contains(i)) return false;
    if (cutting.cheap_only && IsProduct(instruction)) return false;
    if (context_.memory.recompute == Recompute::kAlmostFree && is_one_op &&
        !IsAlmostFree(instruction)) {
      return false;
    }
    if (is_copy) {
      return ValueOf(instruction.outputs[0]).storage == Storage::kArena;
    }
    if (MustRunOnce(instruction)) return false;
    const std::vector<ValueId> state = RunningState(instruction);
    return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
      return !output || ValueOf(output).storage == Storage::kArena ||
             std::ranges::count(state, output) > 0;
    });
  }

  bool IsAlmostFree(const Instruction& instruction) const {
    // What an update computes, such as weight decay, is fused with what reads it: it takes no
    // memory.
    if ((instruction.op->role() & kRoleOptimize) != 0) return false;
    // In half, products take half the time, and what computes much for each element doesn't:
    // ERNIE's gelus would take 3 % of a step. A replay computes less than the first time.
    const bool is_half = std::ranges::any_of(instruction.outputs, [&](ValueId output) {
      return output && IsHalf(ValueOf(output).meta.dtype);
    });
    return !is_half || !instruction.def->replayed_by.empty();
  }

  // Returns the inputs and outputs, alternating, through which an instruction advances running
  // statistics.
  static std::vector<ValueId> RunningState(const Instruction& instruction) {
    std::vector<ValueId> values;
    if (instruction.kind != InstructionKind::kOp) return values;
    for (const auto& [input, output] : instruction.def->running_state) {
      values.push_back(instruction.InputIn(input));
      values.push_back(instruction.OutputIn(output));
    }
    return values;
  }

  // Returns whether, at `position`, the scope still holds what instruction i has read there.
  bool ScopeIsAsBefore(size_t i, size_t position) const {
    const Instruction& instruction = At(i);
    const std::vector<ValueId> state = RunningState(instruction);
    return std::ranges::all_of(instruction.inputs, [&](ValueId input) {
      if (!input || ValueOf(input).storage != Storage::kScope) return true;
      const auto writes = scope_writes_.find(ValueOf(input).name);
      if (writes == scope_writes_.end()) return true;
      // Statistics that the instruction itself advances don't influence its other outputs.
      const bool is_state = std::ranges::count(state, input) > 0;
      // From one half of a loop's body to the other, all iterations run in between.
      if (i < boundary_ && boundary_ < position) {
        return is_state && writes->second == std::set<size_t>{i};
      }
      const auto next = is_state ? writes->second.upper_bound(i) : writes->second.lower_bound(i);
      return next == writes->second.end() || *next >= position;
    });
  }

  // Returns whether the value of the forward pass is kept.
  bool IsKept(const Cutting& cutting, ValueId value) const {
    const size_t writer = ForwardWriter(value);
    if (writer == kNobody || !CanRunAgain(cutting, writer)) return true;
    const size_t segment = SegmentOf(cutting, writer);
    const size_t last = LastForwardReader(value);
    const bool crosses = last != kNobody && SegmentOf(cutting, last) != segment;
    const std::vector<size_t>& readers = uses_.ReadersOf(value);
    const bool is_fetched = !readers.empty() && readers.back() == plan_.instructions.size();
    // Saved means, losses and the like: dropping them saves nothing, but would rerun costly ops.
    const bool is_small = static_cast<double>(StorageBytes(ValueOf(value))) <
                          kSmallShare * static_cast<double>(all_held_bytes_);
    return crosses || is_fetched || ValueOf(value).is_exclusive || cutting.kept.contains(value) ||
           is_small || segment == cutting.cuts.size() || ValueOf(value).alias_of;
  }

  Reruns FindReruns(const Cutting& cutting) {
    Reruns reruns;
    for (const ValueId value : plan_.ids()) {
      const std::vector<size_t>& readers = uses_.ReadersOf(value);
      if (readers.empty() || readers.back() < backward_ || IsKept(cutting, value)) continue;
      reruns.dropped.push_back(value);
    }
    std::vector<ValueId> wanted = reruns.dropped;
    while (!wanted.empty()) {
      const size_t writer = uses_.WriterOf(wanted.back());
      wanted.pop_back();
      if (!reruns.positions.emplace(writer, kNobody).second) continue;
      const Instruction& instruction = At(writer);
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        const ValueId input = instruction.inputs[j];
        if (input && instruction.reads_data[j] && !IsKept(cutting, input)) {
          wanted.push_back(input);
        }
      }
    }
    Place(cutting, &reruns.positions);
    return reruns;
  }

  // Sets where each instruction runs again: before its first reader, be it in the backward pass or
  // itself a rerun. From the last to the first, so that the positions of readers are known.
  void Place(const Cutting& cutting, std::map<size_t, size_t>* positions) {
    for (auto it = positions->rbegin(); it != positions->rend(); ++it) {
      for (const ValueId output : At(it->first).outputs) {
        if (!output || IsKept(cutting, output)) continue;
        for (const size_t reader : uses_.ReadersOf(output)) {
          const auto again = positions->find(reader);
          if (reader >= backward_) it->second = std::min(it->second, reader);
          if (again != positions->end()) it->second = std::min(it->second, again->second);
        }
      }
      if (ScopeIsAsBefore(it->first, it->second)) continue;
      fixed_.insert(it->first);
      fixed_grew_ = true;
    }
  }

  Outcome Rewrite(const Cutting& cutting, const Reruns& reruns) const {
    Outcome outcome{.plan = plan_};
    std::multimap<size_t, size_t> by_position;
    // In program order, so that reruns at one position keep it: writers come before readers.
    for (const auto& [original, position] : reruns.positions) {
      by_position.emplace(position, original);
    }
    Plan& plan = outcome.plan;
    std::vector<Instruction> rewritten;
    std::map<ValueId, ValueId> again;  // values of the forward pass -> the same, computed again
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const auto [begin, end] = by_position.equal_range(i);
      for (auto it = begin; it != end; ++it) {
        rewritten.push_back(RunAgain(cutting, it->second, &plan, &again));
        ++outcome.added;
        outcome.cost += InstructionCost(plan, rewritten.back());
      }
      Instruction& instruction = plan.instructions[i];
      if (i >= backward_) Redirect(again, &instruction);
      rewritten.push_back(std::move(instruction));
    }
    plan.instructions = std::move(rewritten);
    return outcome;
  }

  static void Redirect(const std::map<ValueId, ValueId>& again, Instruction* instruction) {
    for (size_t j = 0; j < instruction->inputs.size(); ++j) {
      const auto found = again.find(instruction->inputs[j]);
      if (found != again.end() && instruction->reads_data[j])
        instruction->inputs[j] = found->second;
    }
  }

  // The first run has already advanced the statistics in the scope. So the rerun reads the advanced
  // ones, which is right because its other outputs don't depend on them (ScopeIsAsBefore).
  void ReadMovedState(const Instruction& original, Instruction* copy) const {
    const std::vector<ValueId> state = RunningState(original);
    for (size_t i = 0; i + 1 < state.size(); i += 2) {
      const ValueId input = state[i];
      const ValueId output = state[i + 1];
      if (!input || !output || ValueOf(input).storage != Storage::kScope ||
          ValueOf(output).storage != Storage::kScope || ValueOf(input).name != ValueOf(output).name)
        continue;
      std::ranges::replace(copy->inputs, input, output);
    }
  }

  // Returns the instruction once more, with outputs of its own. It reads kept values as they are
  // and dropped ones from their reruns. All outputs are in the arena, so running statistics don't
  // advance twice.
  Instruction RunAgain(const Cutting& cutting, size_t original, Plan* plan,
                       std::map<ValueId, ValueId>* again) const {
    std::optional<Instruction> replay = Replay(cutting, original, plan);
    Instruction copy = replay ? *std::move(replay) : At(original);
    Redirect(*again, &copy);
    ReadMovedState(At(original), &copy);
    for (ValueId& output : copy.outputs) {
      if (!output) continue;
      PlanValue value = ValueOf(output);
      value.storage = Storage::kArena;
      value.meta.persistable = false;
      value.alias_of = {};
      const ValueId copied = plan->values.Add(std::move(value));
      if (!IsKept(cutting, output)) again->emplace(output, copied);
      output = copied;
    }
    return copy;
  }

  // Returns the replay of an instruction, if it computes all outputs that aren't kept from values
  // that are.
  std::optional<Instruction> Replay(const Cutting& cutting, size_t original, Plan* plan) const {
    const Instruction& instruction = At(original);
    std::optional<Instruction> replay = MakeReplay(context_, plan, instruction, instruction);
    if (!replay) return std::nullopt;
    const auto is_there = [&](ValueId output) {
      if (!output) return true;
      const bool is_read = std::ranges::count(replay->inputs, output) > 0;
      const bool is_made = std::ranges::count(replay->outputs, output) > 0;
      return IsKept(cutting, output) || (is_made && !is_read);
    };
    if (std::ranges::all_of(instruction.outputs, is_there)) return replay;
    plan->made_ops.pop_back();
    return std::nullopt;
  }

  const PassContext& context_;
  const Plan& plan_;
  const PlanUses uses_;
  size_t backward_ = 0;  // the first instruction of the backward pass
  std::map<std::string, std::set<size_t>> scope_writes_;
  size_t boundary_ = kNobody;        // between the halves of a loop's body
  std::vector<int64_t> held_bytes_;  // by instruction of the forward pass
  int64_t all_held_bytes_ = 0;
  int64_t kept_live_bytes_ = 0;  // at most, if nothing is computed again
  double cost_of_step_ = 1;      // in that case
  std::set<Reruns> tried_;
  // Instructions that turned out to be unable to run again.
  std::set<size_t> fixed_;
  bool fixed_grew_ = false;
};

// Returns ways to cut, from no cut to many segments. The number of segments grows geometrically:
// the best one is near the square root of the number of layers for uniform networks (Chen et al.),
// but unknown for others, and each try costs a plan.
std::vector<Cutting> Cuttings(const Recomputation& recomputation, bool cheap_only) {
  constexpr double kRatio = 1.15;
  constexpr double kMostSegments = 128;
  std::vector<Cutting> cuttings = {{.cuts = {}, .cheap_only = cheap_only}};
  for (double segments = 2; segments < kMostSegments; segments *= kRatio) {
    const auto bytes =
        static_cast<int64_t>(static_cast<double>(recomputation.held_bytes()) / segments);
    Cutting cutting{.cuts = recomputation.CutsFor(std::max<int64_t>(bytes, 1)),
                    .cheap_only = cheap_only};
    if (cutting.cuts != cuttings.back().cuts) cuttings.push_back(std::move(cutting));
  }
  return cuttings;
}

// Of the outcomes that meet the budget, the cheapest is best; if none does, the smallest, where
// `bytes_for_cost` weighs cost against bytes. Of equals, the first that was tried stays.
struct Goal {
  int64_t budget = -1;  // no plan meets it
  double bytes_for_cost = 0;

  bool IsBetter(const Outcome& a, const Outcome& b) const {
    const bool a_fits = a.max_live_bytes <= budget;
    const bool b_fits = b.max_live_bytes <= budget;
    if (a_fits != b_fits) return a_fits;
    if (a_fits) return a.cost < b.cost;
    const auto weighed = [&](const Outcome& outcome) {
      return static_cast<double>(outcome.max_live_bytes) + bytes_for_cost * outcome.cost;
    };
    return std::pair(weighed(a), a.cost) < std::pair(weighed(b), b.cost);
  }
};

Outcome BestOf(Recomputation* recomputation, const MemoryOptions& options) {
  Goal goal;
  std::vector<Cutting> cuttings = Cuttings(*recomputation, true);
  if (options.recompute == Recompute::kAlmostFree) {
    const double step = recomputation->cost_of_step();
    for (Cutting& cutting : cuttings) {
      cutting = recomputation->Thinned(cutting, kMostShare * step);
    }
    goal.bytes_for_cost =
        kSavingForCost * static_cast<double>(recomputation->kept_live_bytes()) / step;
  } else if (options.recompute != Recompute::kCheapOps) {
    std::ranges::move(Cuttings(*recomputation, false), std::back_inserter(cuttings));
  }
  if (options.recompute == Recompute::kBudget) goal.budget = options.budget_bytes;
  std::optional<Outcome> best;
  for (const Cutting& cutting : cuttings) {
    std::optional<Outcome> outcome = recomputation->Try(cutting);
    if (outcome && (!best || goal.IsBetter(*outcome, *best))) best = std::move(outcome);
  }
  return *std::move(best);
}

}  // namespace

PassReport RecomputePass::Apply(const PassContext& context, Plan* plan) const {
  const MemoryOptions& options = context.memory;
  if (options.recompute == Recompute::kNothing) {
    return {.pass = {}, .changes = 0, .summary = "not asked for"};
  }
  // Without reuse, nothing would be saved. On a device, nobody has measured what it costs.
  if (options.recompute == Recompute::kAlmostFree &&
      (options.policy == ReusePolicy::kNone || !plan->place.is_cpu())) {
    return {.pass = {}, .changes = 0, .summary = "not asked for"};
  }
  Recomputation recomputation(context, *plan);
  if (!recomputation.has_backward()) {
    return {.pass = {}, .changes = 0, .summary = "no backward pass"};
  }
  Outcome outcome;
  if (options.recompute == Recompute::kCheckpoints) {
    outcome = *recomputation.Try(recomputation.CutAfter(options.checkpoints));
  } else {
    outcome = BestOf(&recomputation, options);
  }
  if (outcome.added > 0) {
    outcome.plan.recomputed = {.instructions = outcome.added,
                               .saved_bytes = recomputation.MostLiveBytesOfFused(*plan) -
                                              recomputation.MostLiveBytesOfFused(outcome.plan),
                               .cost_share = outcome.cost / recomputation.cost_of_step()};
  }
  *plan = std::move(outcome.plan);
  return {.pass = {},
          .changes = outcome.added,
          .summary = StrCat(outcome.added, " instructions run again, ", outcome.max_live_bytes,
                            " bytes live at most")};
}

}  // namespace skiff
