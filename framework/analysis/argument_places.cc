#include "framework/analysis/argument_places.h"

#include <map>
#include <string>

#include "framework/base/error.h"
#include "framework/op/host_slots.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

std::vector<Place> PlacesOf(const Instruction& instruction, const std::vector<SlotDef>& slots,
                            const std::vector<std::string>& (Op::*arguments)(std::string_view)
                                const,
                            size_t count) {
  std::vector<Place> places;
  if (instruction.kind == InstructionKind::kOp) {
    for (const SlotDef& slot : slots) {
      places.insert(places.end(), (instruction.op->*arguments)(slot.name).size(),
                    PlaceOfSlot(*instruction.def, *instruction.op, slot.name, instruction.place));
    }
  }
  places.resize(count, instruction.place);
  return places;
}

// Calls use(index, place) for each input of a loop whose data it reads.
template <typename Use>
void ForEachInputOfLoop(const Loop& loop, const Use& use) {
  const Plan& body = loop.body;
  const auto add = [&](int input, Place place) {
    if (input >= 0) use(static_cast<size_t>(input), place);
  };
  for (const LoopFeed& feed : loop.feeds) add(feed.input, body[feed.value].place);
  for (const LoopFetch& fetch : loop.fetches) add(fetch.input, body[fetch.value].place);
  for (const LoopStash& stash : loop.stashes) {
    if (loop.is_gradient) add(stash.index, body[stash.value].place);
  }
  if (loop.is_gradient) add(loop.history, Place::Cpu());
  add(loop.condition_input, Place::Cpu());
  add(loop.count_input, Place::Cpu());
}

template <typename Use>
void ForEachOutputOfLoop(const Loop& loop, const Use& use) {
  const Plan& body = loop.body;
  const auto add = [&](int output, Place place) {
    if (output >= 0) use(static_cast<size_t>(output), place);
  };
  for (const LoopFeed& feed : loop.feeds) add(feed.stack, body[feed.value].place);
  for (const LoopFetch& fetch : loop.fetches) add(fetch.output, body[fetch.value].place);
  for (const LoopStash& stash : loop.stashes) {
    if (!loop.is_gradient) add(stash.index, body[stash.value].place);
  }
  if (!loop.is_gradient) add(loop.history, Place::Cpu());
  add(loop.count_output, Place::Cpu());
}

void Check(const Plan& plan, const Instruction& instruction, ValueId value, Place expected) {
  if (!value) return;
  // An op of the host only looks at what the host knows of an array.
  if (plan[value].meta.is_array && instruction.def->is_on_host) return;
  SKIFF_ENFORCE(plan[value].place == expected, kFailedPrecondition, "\"", plan[value].name,
                "\" is on ", plan[value].place, ": ", instruction.Name(), " needs it on ",
                expected);
}

}  // namespace

std::vector<Place> InputPlaces(const Instruction& instruction) {
  std::vector<Place> places =
      PlacesOf(instruction, instruction.def->inputs, &Op::Input, instruction.inputs.size());
  if (instruction.kind != InstructionKind::kLoop) return places;
  ForEachInputOfLoop(*instruction.loop, [&](size_t input, Place place) { places[input] = place; });
  return places;
}

std::vector<Place> OutputPlaces(const Instruction& instruction) {
  std::vector<Place> places =
      PlacesOf(instruction, instruction.def->outputs, &Op::Output, instruction.outputs.size());
  if (instruction.kind != InstructionKind::kLoop) return places;
  ForEachOutputOfLoop(*instruction.loop,
                      [&](size_t output, Place place) { places[output] = place; });
  return places;
}

bool NeedsInputOnBoth(const Instruction& loop) {
  std::map<size_t, Place> needed;
  bool is_mixed = false;
  ForEachInputOfLoop(*loop.loop, [&](size_t input, Place place) {
    const auto [known, is_new] = needed.emplace(input, place);
    is_mixed = is_mixed || (!is_new && known->second != place);
  });
  return is_mixed;
}

void CheckPlaces(const Plan& plan) {
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kCopy) continue;
    const std::vector<Place> inputs = InputPlaces(instruction);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (instruction.reads_data[i]) Check(plan, instruction, instruction.inputs[i], inputs[i]);
    }
    const std::vector<Place> outputs = OutputPlaces(instruction);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Check(plan, instruction, instruction.outputs[i], outputs[i]);
    }
  }
}

}  // namespace skiff
