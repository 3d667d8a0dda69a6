#include "framework/executor/device/data_faults.h"

#include <algorithm>

#include "framework/analysis/dependencies.h"

namespace skiff {

DataFaults::DataFaults(const Plan& plan, DeviceLink* link) : link_(*link) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (!instruction.place.is_cpu() && MayNoteFault(instruction)) instructions_.push_back(i);
  }
  if (is_empty()) return;
  const auto bytes = static_cast<int64_t>(instructions_.size() * sizeof(uint64_t));
  words_ = std::make_unique<Buffer>(link_.device().allocator(), bytes);
  host_words_ = std::make_unique<Buffer>(link_.device().pinned_allocator(), bytes);
  collected_ = link_.device().MakeEvent();
}

uint64_t* DataFaults::WordOf(size_t instruction) const {
  const auto found = std::ranges::lower_bound(instructions_, instruction);
  if (found == instructions_.end() || *found != instruction) return nullptr;
  return static_cast<uint64_t*>(words_->data()) + (found - instructions_.begin());
}

void DataFaults::Reset() {
  if (is_empty()) return;
  static_assert(kNoDataFault == ~uint64_t{0});
  link_.stream().Fill(words_->data(), 0xFF, static_cast<size_t>(words_->bytes()));
}

void DataFaults::Collect() {
  if (is_empty()) return;
  link_.stream().Copy(host_words_->data(), Place::Cpu(), words_->data(), link_.place(),
                      static_cast<size_t>(words_->bytes()));
  link_.stream().Record(collected_.get());
}

std::optional<DataFaults::Found> DataFaults::Find() const {
  if (is_empty()) return std::nullopt;
  link_.Await(collected_.get());
  const auto* words = static_cast<const uint64_t*>(host_words_->data());
  for (size_t i = 0; i < instructions_.size(); ++i) {
    if (words[i] == kNoDataFault) continue;
    return Found{.instruction = instructions_[i], .fault = DataFaultOf(words[i])};
  }
  return std::nullopt;
}

}  // namespace skiff
