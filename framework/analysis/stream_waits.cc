// Both streams run in order. So an instruction that has waited once need not wait again for the
// same or for anything before it, and one number says what it waits for.
#include "framework/analysis/stream_waits.h"

#include <algorithm>

#include "framework/analysis/dependencies.h"
#include "framework/base/str_cat.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

bool IsBeside(const Instruction& instruction) {
  return instruction.stream == PlanStream::kCommunication;
}

// Returns, for each instruction, its number in the communication stream; -1 in the main stream.
std::vector<int32_t> NumbersInStream(const Plan& plan) {
  std::vector<int32_t> numbers;
  int32_t next = 0;
  for (const Instruction& instruction : plan.instructions) {
    numbers.push_back(IsBeside(instruction) ? next++ : -1);
  }
  return numbers;
}

// Returns, for each instruction in the main stream, the last of the other stream that must have
// ended, be it by an earlier wait.
std::vector<int32_t> NeededEnds(const Plan& plan) {
  const std::vector<int32_t> numbers = NumbersInStream(plan);
  const std::vector<std::vector<size_t>> before = DataDependencies(plan);
  std::vector<int32_t> needed(plan.instructions.size(), -1);
  int32_t last = -1;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    last = std::max(last, numbers[i]);
    if (numbers[i] >= 0) continue;
    for (const size_t earlier : before[i]) needed[i] = std::max(needed[i], numbers[earlier]);
    if (IsCollective(plan.instructions[i])) needed[i] = last;
  }
  return needed;
}

}  // namespace

bool HasCommunicationStream(const Plan& plan) {
  return std::ranges::any_of(plan.instructions, IsBeside);
}

std::vector<int32_t> StreamWaits(const Plan& plan) {
  if (!HasCommunicationStream(plan)) return std::vector<int32_t>(plan.instructions.size(), -1);
  std::vector<int32_t> waits = NeededEnds(plan);
  int32_t ended = -1;
  for (int32_t& wait : waits) {
    if (wait <= ended) wait = -1;
    ended = std::max(ended, wait);
  }
  return waits;
}

std::vector<size_t> StreamEnds(const Plan& plan) {
  const size_t count = plan.instructions.size();
  std::vector<size_t> ends;
  std::vector<size_t> running;  // in the communication stream
  for (size_t i = 0; i <= count; ++i) {
    ends.push_back(i);
    if (i == count) break;
    if (IsBeside(plan.instructions[i])) {
      ends[i] = count;
      running.push_back(i);
    }
    const auto ended = static_cast<size_t>(plan.instructions[i].waits_for + 1);
    for (size_t number = std::min(ended, running.size()); number > 0; --number) {
      // Those before it have ended earlier, or here.
      size_t& end = ends[running[number - 1]];
      if (end != count) break;
      end = i;
    }
  }
  return ends;
}

std::vector<std::string> StreamMistakes(const Plan& plan) {
  std::vector<std::string> messages;
  const auto report = [&](size_t i, const std::string& text) {
    messages.push_back(StrCat("instruction ", i, " (", plan.instructions[i].Name(), "): ", text));
  };
  const std::vector<int32_t> needed = NeededEnds(plan);
  int32_t given = 0;
  int32_t ended = -1;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (IsBeside(instruction)) {
      ++given;
      if (!IsCollective(instruction))
        report(i, "in the communication stream without being collective");
      if (instruction.waits_for >= 0) report(i, "waits, in the communication stream, for its own");
      continue;
    }
    if (instruction.waits_for >= given) {
      report(i, StrCat("waits for c", instruction.waits_for, " before that is given"));
    }
    ended = std::max(ended, instruction.waits_for);
    if (needed[i] > ended) {
      report(i, StrCat("doesn't wait for c", needed[i], ", with which it shares data"));
    }
    if (instruction.loop != nullptr && HasCommunicationStream(instruction.loop->body)) {
      report(i, "has a communication stream in its body");
    }
  }
  return messages;
}

}  // namespace skiff
